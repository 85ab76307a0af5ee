package scenario

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	begin = time.Unix(1_000_000, 0)
	small = Plan{Floor: row, Load: 1, Fill: 10 * time.Second, Length: time.Minute, Wait: 5 * time.Second}
)

// bound is a pod with an allocation of these cards of the node: of each so much
// of its compute, 100 for all of it.
func bound(name string, node, cores int, cards ...int) *corev1.Pod {
	list := ""
	for i, card := range cards {
		if i > 0 {
			list += ","
		}
		list += fmt.Sprintf(`{"uuid":%q,"cores":%d,"exclusive":%t}`, row.cards(nodeName(node))[card].UUID, cores, cores == 100)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			"heteroflow.io/allocation": `{"containers":[{"cards":[` + list + `]}]}`,
		}},
		Spec: corev1.PodSpec{NodeName: nodeName(node)},
	}
}

func ended(pod *corev1.Pod) *corev1.Pod {
	pod.Status.Phase = corev1.PodSucceeded
	return pod
}

func TestUse(t *testing.T) {
	tally := newTally(row)
	for _, name := range []string{"whole", "slice", "other", "gone", "done", "waits"} {
		tally.Ask(&Task{Name: name, Busy: 0.5}, begin)
	}
	tally.See(bound("whole", 2, 100, 0, 1), begin)
	tally.See(bound("slice", 3, 30, 7), begin)
	tally.See(bound("other", 3, 30, 7), begin)
	tally.See(bound("gone", 4, 100, 0), begin)
	tally.Gone("gone")
	tally.See(ended(bound("done", 5, 100, 0)), begin)
	tally.See(bound("of an earlier run", 6, 100, 0), begin)

	want := make(use, row.Nodes)
	want[2][0], want[2][1], want[3][7] = 0.5, 0.5, 0.3
	busy, held := tally.Use()
	if diff := cmp.Diff(want, busy); diff != "" {
		t.Errorf("use (-want +got):\n%s", diff)
	}
	if held != 3 {
		t.Errorf("%d cards are held, want 3", held)
	}
	if wrong := tally.Wrong(); len(wrong) > 0 {
		t.Errorf("wrong: %q", wrong)
	}
}

func TestUseIsAtMostAll(t *testing.T) {
	tally := newTally(row)
	for _, name := range []string{"a", "b"} {
		tally.Ask(&Task{Name: name, Busy: 1}, begin)
		tally.See(bound(name, 0, 80, 0), begin)
	}
	if busy, _ := tally.Use(); busy[0][0] != 1 {
		t.Errorf("the card is %.2f busy", busy[0][0])
	}
}

func TestWrong(t *testing.T) {
	elsewhere, unknown := bound("elsewhere", 0, 100, 0), bound("unknown", 0, 100, 0)
	elsewhere.Spec.NodeName = "moon"
	unknown.Annotations["heteroflow.io/allocation"] = `{"containers":[{"cards":[{"uuid":"x"}]}]}`
	bare := bound("bare", 0, 100)
	bare.Annotations = nil
	tally := newTally(row)
	for _, pod := range []*corev1.Pod{elsewhere, unknown, bare} {
		tally.Ask(&Task{Name: pod.Name}, begin)
		tally.See(pod, begin)
		tally.See(pod, begin) // once is enough
	}
	want := []string{
		`pod elsewhere: is on node "moon", which is none of ours`,
		`pod unknown: holds card "x", which is none of ours`,
		`pod bare: its allocation: unexpected end of JSON input`,
	}
	if diff := cmp.Diff(want, tally.Wrong()); diff != "" {
		t.Errorf("wrong (-want +got):\n%s", diff)
	}
}

// TestCount: what came while the cluster filled counts for nothing, and who is
// late is as who never came.
func TestCount(t *testing.T) {
	tally := newTally(row)
	seen := func(task Task, node int, after time.Duration) {
		asked := begin.Add(task.At)
		tally.Ask(&task, asked)
		if node >= 0 {
			tally.See(bound(task.Name, node, 100, 0), asked.Add(after))
		}
	}
	late, filled := small.Wait+time.Millisecond, small.Fill
	seen(Task{Name: "early", Kind: "single", Cards: 1}, 0, 0)
	seen(Task{Name: "just", Kind: "single", Cards: 1, At: filled}, 0, small.Wait)
	seen(Task{Name: "late", Kind: "single", Cards: 1, At: filled}, 0, late)
	seen(Task{Name: "never", Kind: "several", Cards: 8, At: filled}, -1, 0)
	for i, took := range []time.Duration{100, 1500, 4000} {
		seen(Task{Name: fmt.Sprint("part", i), Kind: "slice", At: filled}, 1, took*time.Millisecond)
	}
	for i, node := range []int{0, 7, 8, 16} { // two in the first rack, one in each of two others
		seen(Task{Name: fmt.Sprint("g", i), Kind: "group", Group: "g", Cards: 1, At: filled}, node, 0)
	}
	seen(Task{Name: "g4", Kind: "group", Group: "g", Cards: 1, At: filled}, 1, late)
	seen(Task{Name: "h0", Kind: "group", Group: "h", Cards: 1, At: filled}, 1, 0)

	o := Outcome{}
	tally.Count(small, &o)
	want := Outcome{
		Kinds:   map[string]Count{"single": {1, 2}, "several": {0, 1}, "slice": {3, 3}, "group": {5, 6}},
		Seconds: 1.5,
		Pairs:   Count{1, 6},
		Members: Count{2, 4},
	}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	if got, want := o.Whole(), (Count{6, 9}); got != want {
		t.Errorf("whole cards: %v, want %v", got, want)
	}
}
