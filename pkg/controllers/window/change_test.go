package window

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/window"
)

// asleep is a world in which the service has been paused, and settled so; and its leader.
func asleep(t *testing.T, is window.State) (*world, *Controller) {
	t.Helper()
	n := night{rule: dayNight(v1alpha1.TaskGroupPause), is: is}
	w := n.begin()
	c := w.leader()
	for _, at := range []time.Time{start(), closed(), closed().Add(time.Minute)} {
		w.at(c, at)
	}
	if s := w.status("chat"); w.is("chat").Replicas != 0 || s.Action == nil || s.Action.Phase != "Acted" {
		t.Fatalf("it does not sleep: %+v", s)
	}
	return w, c
}

// conditionOf is what the condition says.
func conditionOf(s v1alpha1.TaskGroupStatus, kind string) string {
	c := meta.FindStatusCondition(s.Conditions, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

func (w *world) expect(t *testing.T, name string, want window.State) {
	t.Helper()
	if diff := cmp.Diff(want, w.is(name)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// nothingLeft checks that the group is not kept by what was done.
func (w *world) nothingLeft(t *testing.T, name string) {
	t.Helper()
	if g := w.groups[name]; g != nil && (g.Status.Action != nil || len(g.Finalizers) > 0) {
		t.Errorf("%s keeps %+v, finalizers %v", name, g.Status.Action, g.Finalizers)
	}
}

func always(g *v1alpha1.TaskGroup) {
	g.Spec.Windows, g.Spec.WindowAction, g.Spec.Replicas = nil, "", nil
}

// What is edited while the service sleeps is seen at once.
func TestEditsByNight(t *testing.T) {
	later := func(g *v1alpha1.TaskGroup) { g.Spec.Windows[0].From = "10:00" }
	now := func(g *v1alpha1.TaskGroup) { g.Spec.Windows[0].To = "23:30" }
	tests := map[string]struct {
		edit  func(*v1alpha1.TaskGroup)
		want  window.State
		state string
		kept  string // from when
	}{
		"windows that open later":     {later, withHPA(0, 3, 10), "Paused", "09:00"},
		"windows that are open":       {now, withHPA(7, 3, 10), "Restored", ""},
		"no windows":                  {always, withHPA(7, 3, 10), "Restored", ""},
		"scale in place of pause":     {scaledTo(2), withHPA(2, 2, 2), "Scaled", "07:00"},
		"stop in place of pause":      {dayNight(v1alpha1.TaskGroupStop), withHPA(0, 3, 10), "Stopped", ""},
		"windows that cannot be read": {func(g *v1alpha1.TaskGroup) { g.Spec.Windows[0].TimeZone = "Mars/Base" }, withHPA(0, 3, 10), "Unreadable", "07:00"},
		"another label":               {func(g *v1alpha1.TaskGroup) { g.Labels = map[string]string{"a": "b"} }, withHPA(0, 3, 10), "Paused", "07:00"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, c := asleep(t, withHPA(7, 3, 10))
			w.group("chat", tc.edit)
			w.at(c, w.now().Add(time.Second))
			w.expect(t, "chat", tc.want)
			s := w.status("chat")
			from := ""
			if s.Kept != nil {
				from = s.Kept.From.UTC().Format("15:04")
			}
			if s.State != tc.state || from != tc.kept || s.ObservedGeneration != w.groups["chat"].Generation {
				t.Errorf("state %q, kept from %q, generation %d; want %q, %q, %d", s.State, from, s.ObservedGeneration, tc.state, tc.kept, w.groups["chat"].Generation)
			}
		})
	}
}

// A spec that cannot be read is told of by its fields; what was done stays, and is
// restored when the group is mended in a window, or deleted.
func TestUnreadable(t *testing.T) {
	broken := func(g *v1alpha1.TaskGroup) {
		g.Spec.Windows = []v1alpha1.TaskGroupWindow{{From: "25:00", To: "22:00", TimeZone: "Mars/Base"}}
		g.Spec.ScaleTargetRef.APIVersion = "a/b/c"
	}
	w, c := asleep(t, scaled(7))
	image := w.status("chat").Action
	w.group("chat", broken)
	w.at(c, opened())
	w.expect(t, "chat", scaled(0))
	s := w.status("chat")
	for _, field := range []string{"windows[0].from", "windows[0].timeZone", "scaleTargetRef.apiVersion"} {
		if accepted := conditionOf(s, v1alpha1.TaskGroupAccepted); !strings.HasPrefix(accepted, "False Unreadable") || !strings.Contains(accepted, field) {
			t.Errorf("Accepted = %s: no word of %s", accepted, field)
		}
	}
	if awake := conditionOf(s, v1alpha1.TaskGroupAwake); !strings.HasPrefix(awake, "Unknown Unreadable") {
		t.Errorf("Awake = %s", awake)
	}
	if diff := cmp.Diff(image, s.Action); diff != "" || s.Next != nil {
		t.Errorf("next %v, action (-want +got):\n%s", s.Next, diff)
	}
	if told := w.told[len(w.told)-1]; !strings.HasPrefix(told, "chat Warning Unreadable: scaleTargetRef.apiVersion") {
		t.Errorf("told %s", told)
	}
	t.Run("mended", func(t *testing.T) {
		w.group("chat", of("chat"), dayNight(v1alpha1.TaskGroupPause))
		w.at(c, w.now().Add(time.Second))
		w.expect(t, "chat", scaled(7))
		if accepted := conditionOf(w.status("chat"), v1alpha1.TaskGroupAccepted); accepted != "True Accepted: " {
			t.Errorf("Accepted = %s", accepted)
		}
	})
	t.Run("deleted", func(t *testing.T) {
		w, c := asleep(t, scaled(7))
		w.group("chat", broken)
		w.at(c, w.now().Add(time.Second))
		w.remove("chat")
		w.at(c, w.now().Add(time.Second))
		w.expect(t, "chat", scaled(7))
		if w.exists("chat") {
			t.Error("the group stays")
		}
	})
}

// A group that is deleted while its service sleeps restores it first.
func TestDeletedByNight(t *testing.T) {
	for name, is := range map[string]window.State{"plain": scaled(7), "HPA": withHPA(7, 0, 10), "KEDA": withKEDA(7, "3")} {
		t.Run(name, func(t *testing.T) {
			w, c := asleep(t, is)
			w.remove("chat")
			if !w.exists("chat") {
				t.Fatal("it goes before anything is restored")
			}
			w.at(c, w.now().Add(time.Second))
			w.expect(t, "chat", is)
			for range 8 { // KEDA may set the number once more that it was pinned to
				w.at(c, w.now().Add(watching))
			}
			w.expect(t, "chat", is)
			if w.exists("chat") {
				t.Errorf("it stays: %+v", w.status("chat"))
			}
		})
	}
	t.Run("stopped", func(t *testing.T) {
		n := nights()["stop"]
		w := n.begin()
		c := w.leader()
		w.at(c, closed())
		w.remove("chat")
		w.at(c, w.now().Add(time.Second))
		w.expect(t, "chat", scaled(0))
		if w.exists("chat") {
			t.Error("it stays")
		}
	})
	t.Run("awake", func(t *testing.T) {
		w := (&night{rule: dayNight(v1alpha1.TaskGroupPause), is: scaled(7)}).begin()
		w.at(w.leader(), start())
		if w.remove("chat"); w.exists("chat") {
			t.Error("it stays")
		}
	})
}

// For an inactive tenant nothing is woken; all is kept until it is active, also of a group
// that is deleted.
func TestInactiveTenant(t *testing.T) {
	w, c := asleep(t, withHPA(7, 3, 10))
	w.inactive = true
	w.at(c, opened())
	w.expect(t, "chat", withHPA(0, 3, 10))
	s := w.status("chat")
	if undisturbed := conditionOf(s, v1alpha1.TaskGroupUndisturbed); !strings.HasPrefix(undisturbed, "False TenantInactive: ") || s.Action == nil {
		t.Errorf("Undisturbed = %s, action %v", undisturbed, s.Action)
	}
	w.remove("chat")
	for range 5 {
		w.at(c, w.now().Add(time.Minute))
	}
	if !w.exists("chat") {
		t.Fatal("the group has gone, and nobody knows any more what there was")
	}
	warned := 0
	for _, told := range w.told {
		if strings.HasPrefix(told, "chat Warning TenantInactive") {
			warned++
		}
	}
	if warned != 1 {
		t.Errorf("told %v", w.told)
	}
	w.inactive = false
	w.at(c, w.now().Add(time.Minute))
	w.expect(t, "chat", withHPA(7, 3, 10))
	if w.exists("chat") {
		t.Error("the group stays")
	}
}

// A target that has gone cannot be restored: a group that is deleted, or has turned to
// another, does not wait for it. One that is made anew is another one.
func TestTargetGone(t *testing.T) {
	gone := func(t *testing.T) (*world, *Controller) {
		w, c := asleep(t, scaled(7))
		w.mu.Lock()
		delete(w.targets, "chat")
		w.mu.Unlock()
		w.at(c, w.now().Add(time.Minute))
		s := w.status("chat")
		if undisturbed := conditionOf(s, v1alpha1.TaskGroupUndisturbed); undisturbed != "False TargetMissing: there is no Deployment chat" || s.Kept != nil || s.Next != nil || s.State != "TargetMissing" {
			t.Fatalf("Undisturbed = %s, %+v", undisturbed, s)
		}
		return w, c
	}
	t.Run("and the group is deleted", func(t *testing.T) {
		w, c := gone(t)
		w.remove("chat")
		w.at(c, w.now().Add(time.Second))
		if w.exists("chat") {
			t.Error("it stays")
		}
	})
	t.Run("and the group turns to another", func(t *testing.T) {
		w, c := gone(t)
		w.target("other", scaled(4))
		w.group("chat", of("other"))
		w.at(c, w.now().Add(time.Second))
		w.expect(t, "other", scaled(0))
		w.at(c, opened())
		w.expect(t, "other", scaled(4))
		w.nothingLeft(t, "chat")
	})
	t.Run("and is made anew by night", func(t *testing.T) {
		w, c := gone(t)
		w.target("chat", scaled(3))
		w.at(c, w.now().Add(time.Minute))
		w.expect(t, "chat", scaled(0))
		w.at(c, opened())
		w.expect(t, "chat", scaled(3))
		w.nothingLeft(t, "chat")
		if !slices.ContainsFunc(w.told, func(s string) bool { return strings.HasPrefix(s, "chat Normal TargetRemade") }) {
			t.Errorf("told %v", w.told)
		}
	})
	t.Run("and is made anew by day", func(t *testing.T) {
		w, c := gone(t)
		w.target("chat", scaled(3))
		w.at(c, opened())
		w.expect(t, "chat", scaled(3))
		w.nothingLeft(t, "chat")
	})
}

// A group that turns to another target restores the one that it leaves.
func TestTargetChanged(t *testing.T) {
	w, c := asleep(t, withHPA(7, 3, 10))
	w.target("other", scaled(4))
	w.group("chat", of("other"))
	w.at(c, w.now().Add(time.Second))
	w.expect(t, "chat", withHPA(7, 3, 10))
	w.expect(t, "other", scaled(0))
	w.group("chat", func(g *v1alpha1.TaskGroup) { g.Spec.ScaleTargetRef = nil; always(g) })
	w.at(c, w.now().Add(time.Second))
	w.expect(t, "other", scaled(4))
	w.nothingLeft(t, "chat")
}

// What was left stopped is said to be so, whoever leads, until somebody gives it replicas.
func TestStayedStopped(t *testing.T) {
	stays := "True StayedStopped: left as it is: it was stopped from 7 replicas, and only a hand starts it again"
	for name, tc := range map[string]struct {
		edit func(*world)
		want string
	}{
		"nothing":         {func(*world) {}, stays},
		"other windows":   {func(w *world) { w.group("chat", func(g *v1alpha1.TaskGroup) { g.Spec.Windows[0].To = "23:00" }) }, stays},
		"no windows":      {func(w *world) { w.group("chat", always) }, stays},
		"replicas":        {func(w *world) { w.edit("chat", withReplicas(1)) }, "True InWindow: inside its windows"},
		"nobody's target": {func(w *world) { w.group("chat", always, func(g *v1alpha1.TaskGroup) { g.Spec.ScaleTargetRef = nil }) }, "True AlwaysOpen: nothing closes its windows"},
	} {
		t.Run(name, func(t *testing.T) {
			n := nights()["stop"]
			w := n.begin()
			c := w.leader()
			for _, at := range []time.Time{start(), closed(), closed().Add(time.Minute), opened(), opened().Add(time.Minute)} {
				w.at(c, at)
			}
			w.at(w.leader(), w.now().Add(time.Minute))
			w.nothingLeft(t, "chat")
			tc.edit(w)
			c = w.leader()
			w.run(c, 3*time.Minute)
			if got := conditionOf(w.status("chat"), v1alpha1.TaskGroupAwake); got != tc.want {
				t.Errorf("Awake = %s, want %s", got, tc.want)
			}
			if n := strings.Count(strings.Join(w.told, "\n"), "Normal StayedStopped"); n != 1 {
				t.Errorf("told %d times: %v", n, w.told)
			}
			w.edit("chat", withReplicas(3))
			w.run(c, 2*time.Minute)
			w.edit("chat", withReplicas(0)) // and that is no stop
			w.run(c, 2*time.Minute)
			if got := w.status("chat").State; got == "StayedStopped" {
				t.Error("it is said once more")
			}
		})
	}
}

// What others change while the service sleeps is theirs: it is reported and left alone,
// now and when the windows open. The rest is restored.
func TestEditedByHand(t *testing.T) {
	w, c := asleep(t, withHPA(7, 3, 10))
	w.edit("chat", func(s *window.State) { s.Replicas = 2 })
	w.at(c, w.now().Add(time.Minute))
	w.expect(t, "chat", withHPA(2, 3, 10))
	undisturbed := conditionOf(w.status("chat"), v1alpha1.TaskGroupUndisturbed)
	if !strings.HasPrefix(undisturbed, "False EditedByHand: ") || !strings.Contains(undisturbed, "replicas is 2 and was set to 0") {
		t.Errorf("Undisturbed = %s", undisturbed)
	}
	if k := w.status("chat").Kept; k == nil || len(k.Members) != 5 {
		t.Errorf("kept: %+v, want what the 5 had who have not come back", k)
	}
	writes := len(w.writes)
	for range 5 {
		w.at(c, w.now().Add(time.Minute))
	}
	if len(w.writes) != writes {
		t.Errorf("it writes %v", w.writes[writes:])
	}
	w.at(c, opened())
	w.expect(t, "chat", withHPA(2, 3, 10))
	w.nothingLeft(t, "chat")
	if n := strings.Count(strings.Join(w.told, "\n"), "Warning EditedByHand"); n != 1 {
		t.Errorf("told %d times: %v", n, w.told)
	}
}
