package window

import (
	"strings"
	"testing"
	"time"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/window"
)

func TestSpecFaults(t *testing.T) {
	two := int32(2)
	window1 := []v1alpha1.TaskGroupWindow{{From: "08:00", To: "22:00"}}
	target := &v1alpha1.TaskGroupTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "chat"}
	tests := map[string]struct {
		spec v1alpha1.TaskGroupSpec
		want []string // fields; none: it can be read
	}{
		"nothing":            {v1alpha1.TaskGroupSpec{}, nil},
		"a target alone":     {v1alpha1.TaskGroupSpec{ScaleTargetRef: target}, nil},
		"windows":            {v1alpha1.TaskGroupSpec{ScaleTargetRef: target, Windows: window1, WindowAction: "pause"}, nil},
		"scale":              {v1alpha1.TaskGroupSpec{ScaleTargetRef: target, Windows: window1, WindowAction: "scale", Replicas: &two}, nil},
		"no target":          {v1alpha1.TaskGroupSpec{Windows: window1, WindowAction: "pause"}, []string{"scaleTargetRef: is missing"}},
		"no action":          {v1alpha1.TaskGroupSpec{ScaleTargetRef: target, Windows: window1}, []string{"windowAction"}},
		"no replicas":        {v1alpha1.TaskGroupSpec{ScaleTargetRef: target, Windows: window1, WindowAction: "scale"}, []string{"replicas"}},
		"no version":         {v1alpha1.TaskGroupSpec{ScaleTargetRef: &v1alpha1.TaskGroupTarget{APIVersion: "apps/", Kind: "Deployment", Name: "chat"}}, []string{"scaleTargetRef.apiVersion"}},
		"no kind, no name":   {v1alpha1.TaskGroupSpec{ScaleTargetRef: &v1alpha1.TaskGroupTarget{APIVersion: "v1"}}, []string{"scaleTargetRef.kind", "scaleTargetRef.name"}},
		"another path":       {v1alpha1.TaskGroupSpec{ScaleTargetRef: &v1alpha1.TaskGroupTarget{APIVersion: "v1", Kind: "X", Name: "../secrets/x"}}, []string{"scaleTargetRef.name"}},
		"all of it":          {v1alpha1.TaskGroupSpec{Windows: []v1alpha1.TaskGroupWindow{{From: "8"}, {Start: "x", End: "y"}}, WindowAction: "sleep"}, []string{"scaleTargetRef", "windows[0].from", "windows[0].to", "windows[1].start", "windows[1].end", "windowAction"}},
		"a zone of nowhere":  {v1alpha1.TaskGroupSpec{ScaleTargetRef: target, Windows: []v1alpha1.TaskGroupWindow{{From: "08:00", To: "22:00", TimeZone: "Mars/Base"}}, WindowAction: "stop"}, []string{"windows[0].timeZone"}},
		"a zone of anywhere": {v1alpha1.TaskGroupSpec{ScaleTargetRef: target, Windows: []v1alpha1.TaskGroupWindow{{From: "08:00", To: "22:00", TimeZone: "Local"}}, WindowAction: "stop"}, []string{"windows[0].timeZone"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := read(&tc.spec)
			if len(tc.want) == 0 && got.fault != nil {
				t.Errorf("fault: %v", got.fault)
			}
			for _, field := range tc.want {
				if got.fault == nil || !strings.Contains(got.fault.Error(), field) {
					t.Errorf("fault = %v, no word of %s", got.fault, field)
				}
			}
		})
	}
}

func TestSame(t *testing.T) {
	a := v1alpha1.TaskGroupTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "chat"}
	for name, tc := range map[string]struct {
		b    v1alpha1.TaskGroupTarget
		want bool
	}{
		"itself":          {a, true},
		"another version": {v1alpha1.TaskGroupTarget{APIVersion: "apps/v1beta2", Kind: "Deployment", Name: "chat"}, true},
		"another group":   {v1alpha1.TaskGroupTarget{APIVersion: "extensions/v1", Kind: "Deployment", Name: "chat"}, false},
		"no group":        {v1alpha1.TaskGroupTarget{APIVersion: "v1", Kind: "Deployment", Name: "chat"}, false},
		"another kind":    {v1alpha1.TaskGroupTarget{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "chat"}, false},
		"another name":    {v1alpha1.TaskGroupTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "talk"}, false},
	} {
		if got := same(&a, &tc.b); got != tc.want {
			t.Errorf("%s: same = %v", name, got)
		}
	}
}

// What comes next is what the schedule says, though it is seldom asked: also of the
// transition after it, when time goes on, and when the clock is put back.
func TestNextIsRemembered(t *testing.T) {
	never := func(g *v1alpha1.TaskGroup) {
		g.Spec.Windows = []v1alpha1.TaskGroupWindow{{Start: "0 0 * * *", End: "0 0 * * *"}}
		g.Spec.WindowAction = v1alpha1.TaskGroupPause
	}
	for name, windows := range map[string]func(*v1alpha1.TaskGroup){"day and night": dayNight(v1alpha1.TaskGroupPause), "nothing ever": never, "no windows": always} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TaskGroup{}
			of("chat")(g)
			windows(g)
			s := read(&g.Spec)
			if s.fault != nil {
				t.Fatal(s.fault)
			}
			at := start()
			for i := range 200 {
				at = at.Add(67 * time.Minute)
				if i%50 == 49 {
					at = at.AddDate(0, 0, -2)
				}
				next, ok := s.next(at)
				if want, wanted := s.rule.Schedule.Next(at); ok != wanted || next != want {
					t.Fatalf("after %s comes %v %t, want %v %t", at, next, ok, want, wanted)
				}
				if again, more := s.next(next.At); ok && !more || more && !again.At.After(next.At) {
					t.Fatalf("after %v comes %v %t", next, again, more)
				}
				if len(s.found) > mostFound {
					t.Fatalf("%d are remembered", len(s.found))
				}
			}
		})
	}
}

// A schedule that takes long is not gone through in each pass.
func TestNextIsNotLookedForAgain(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		after time.Duration
		found bool
	}{
		"at once": {0, true}, "right before": {time.Hour - 1, true}, "at it": {time.Hour, false}, "before it was looked for": {-1, false},
		"a day after none was found": {24 * time.Hour, false},
	} {
		s := &spec{found: []found{{after: at, next: window.Transition{At: at.Add(time.Hour), Opens: true}, ok: true}, {after: at.Add(time.Hour)}}}
		if _, ok := s.next(at.Add(tc.after)); ok != tc.found {
			t.Errorf("%s: %t", name, ok)
		}
	}
}
