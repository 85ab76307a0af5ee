package scenario

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func after(seconds float64) time.Time {
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

// bound is a pod on a node with these cards, each as JSON.
func bound(name string, node int, cards ...string) *corev1.Pod {
	text := fmt.Sprintf(`{"version":1,"containers":[{"name":"main","cards":[%s]}]}`, strings.Join(cards, ","))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"heteroflow.io/allocation": text}},
		Spec:       corev1.PodSpec{NodeName: nodeName(node)},
	}
}

func whole(node, card int) string {
	return fmt.Sprintf(`{"uuid":"GPU-%s-nvidia-%d","cores":100,"exclusive":true}`, nodeName(node), card)
}

func slice(node, card, cores int) string {
	return fmt.Sprintf(`{"uuid":"GPU-%s-nvidia-%d","cores":%d}`, nodeName(node), card, cores)
}

func ended(pod *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.Phase = phase
	return pod
}

func TestUse(t *testing.T) {
	half := &Task{Name: "a", Cards: 2, Busy: 0.5}
	light := &Task{Name: "b", Cores: 50, Memory: 1, Busy: 0.8}
	other := &Task{Name: "c", Cores: 30, Memory: 1, Busy: 1}
	a, b, c := bound("a", 1, whole(1, 0), whole(1, 7)), bound("b", 0, slice(0, 3, 50)), bound("c", 0, slice(0, 3, 30))
	tests := map[string]struct {
		see  []*corev1.Pod
		gone []string
		want map[place]float64
		held int
	}{
		"nobody":                 {},
		"whole cards":            {see: []*corev1.Pod{a}, want: map[place]float64{{1, 0}: 0.5, {1, 7}: 0.5}, held: 2},
		"a slice":                {see: []*corev1.Pod{b}, want: map[place]float64{{0, 3}: 0.4}, held: 1},
		"two on a card":          {see: []*corev1.Pod{b, c}, want: map[place]float64{{0, 3}: 0.7}, held: 1},
		"seen twice":             {see: []*corev1.Pod{b, b}, want: map[place]float64{{0, 3}: 0.4}, held: 1},
		"one has ended":          {see: []*corev1.Pod{b, c, ended(b, corev1.PodSucceeded)}, want: map[place]float64{{0, 3}: 0.3}, held: 1},
		"one has failed":         {see: []*corev1.Pod{a, ended(a, corev1.PodFailed)}},
		"one is gone":            {see: []*corev1.Pod{a, b}, gone: []string{"a"}, want: map[place]float64{{0, 3}: 0.4}, held: 1},
		"one of an earlier run":  {see: []*corev1.Pod{bound("z", 0, whole(0, 0))}},
		"one that has no node":   {see: []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}},
		"one that nobody asked":  {gone: []string{"z"}},
		"ended when first seen":  {see: []*corev1.Pod{ended(a, corev1.PodSucceeded)}},
		"everything on one node": {see: []*corev1.Pod{b, bound("c", 0, slice(0, 4, 30))}, want: map[place]float64{{0, 3}: 0.4, {0, 4}: 0.3}, held: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tally := newTally(Floor{Nodes: 8})
			for _, task := range []*Task{half, light, other} {
				tally.Ask(task, noon)
			}
			for _, pod := range tc.see {
				tally.See(pod, after(1))
			}
			for _, name := range tc.gone {
				tally.Gone(name)
			}
			busy, held := tally.Use()
			want := make(use, 8)
			for at, u := range tc.want {
				want[at.node][at.card] = u
			}
			for node := range want {
				for card := range want[node] {
					if !near(busy[node][card], want[node][card]) {
						t.Errorf("card %d of node %d is busy %v, want %v", card, node, busy[node][card], want[node][card])
					}
				}
			}
			if held != tc.held || len(tally.Wrong()) > 0 {
				t.Errorf("%d cards are held, want %d; wrong: %v", held, tc.held, tally.Wrong())
			}
		})
	}
}

// A card is busy once, whatever is said of it.
func TestUseIsAtMostAll(t *testing.T) {
	tally := newTally(Floor{Nodes: 8})
	for _, name := range []string{"a", "b"} {
		tally.Ask(&Task{Name: name, Cards: 1, Busy: 0.8}, noon)
		tally.See(bound(name, 0, whole(0, 0)), noon)
	}
	if busy, _ := tally.Use(); busy[0][0] != 1 {
		t.Errorf("busy %v, want 1", busy[0][0])
	}
}

func TestWhatCannotBe(t *testing.T) {
	unreadable := bound("a", 0)
	unreadable.Annotations["heteroflow.io/allocation"] = "{"
	tests := map[string]*corev1.Pod{
		"an unknown node":        {ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{NodeName: "elsewhere"}},
		"an unknown card":        bound("a", 0, `{"uuid":"GPU-of-nobody"}`),
		"an unreadable decision": unreadable,
	}
	for name, pod := range tests {
		tally := newTally(Floor{Nodes: 8})
		tally.Ask(&Task{Name: "a", Cards: 1}, noon)
		tally.See(pod, noon)
		if got := tally.Wrong(); len(got) != 1 || !strings.HasPrefix(got[0], "pod a: ") {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestCount(t *testing.T) {
	p := Plan{Floor: Floor{Nodes: 32}, Fill: 10 * time.Second, Wait: 5 * time.Second}
	late := 20 * time.Second
	tally := newTally(p.Floor)
	arrive := func(name, kind, group string, at time.Duration, node int, took float64) {
		tally.Ask(&Task{Name: name, Kind: kind, Group: group, At: at, Cards: 1}, after(0))
		if node >= 0 {
			tally.See(bound(name, node, whole(node, 0)), after(took))
		}
	}
	arrive("early", "single", "", 9*time.Second, -1, 0)
	arrive("good", "single", "", late, 0, 1)
	arrive("just-in-time", "single", "", late, 0, 5)
	arrive("too-late", "single", "", late, 0, 5.1)
	arrive("never", "several", "", late, -1, 0)
	arrive("slice", "slice", "", late, 1, 1)
	for i, node := range []int{0, 7, 8, -1} { // racks 0, 0, 1
		arrive(fmt.Sprintf("g-%d", i), "group", "g", late, node, 1)
	}
	arrive("h-0", "group", "h", late, 3, 1) // by itself
	arrive("h-1", "group", "h", late, 3, 9)
	arrive("old-0", "group", "old", 0, 3, 1)
	arrive("old-1", "group", "old", 0, 3, 1)

	var got Outcome
	tally.Count(p, &got)
	want := Outcome{
		Kinds: map[string]Count{"single": {2, 3}, "several": {0, 1}, "slice": {1, 1}, "group": {4, 6}},
		Pairs: Count{1, 3}, Members: Count{2, 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	if got := got.Whole(); got != (Count{6, 10}) {
		t.Errorf("whole cards %v, want 6 of 10", got)
	}
	if tally.Bound("never") || !tally.Bound("too-late") || tally.Bound("nobody") {
		t.Error("who is bound is not known")
	}
}

func TestTogether(t *testing.T) {
	tests := map[string]struct {
		racks          map[int]int
		pairs, members Count
	}{
		"none":              {nil, Count{}, Count{}},
		"one by itself":     {map[int]int{3: 1}, Count{}, Count{}},
		"all in one":        {map[int]int{3: 8}, Count{28, 28}, Count{8, 8}},
		"each in its own":   {map[int]int{0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1}, Count{0, 28}, Count{1, 8}},
		"half and half":     {map[int]int{0: 4, 1: 4}, Count{12, 28}, Count{4, 8}},
		"all but one":       {map[int]int{0: 7, 1: 1}, Count{21, 28}, Count{7, 8}},
		"of those that are": {map[int]int{0: 2, 1: 1}, Count{1, 3}, Count{2, 3}},
	}
	for name, tc := range tests {
		if pairs, members := together(tc.racks); pairs != tc.pairs || members != tc.members {
			t.Errorf("%s: %v and %v, want %v and %v", name, pairs, members, tc.pairs, tc.members)
		}
	}
}
