package rebuild

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/metrics"
)

// service is a world with a service of three pods on three of five nodes.
func service() *world {
	w := newWorld()
	w.group("chat")
	w.node("n1", "n2", "n3", "n4", "n5")
	w.pod("chat-1", "chat", "n1")
	w.pod("chat-2", "chat", "n2")
	w.pod("chat-3", "chat", "n3")
	return w
}

// Whatever becomes of the node, the pods there are replaced after the grace, and neither
// before nor otherwise.
func TestLostNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(*world)
		want    []string
	}{
		"nothing":             {func(*world) {}, nil},
		"not ready":           {func(w *world) { w.fails("n1") }, []string{"chat-1"}},
		"says that it is not": {func(w *world) { w.turn("n1", corev1.ConditionFalse) }, []string{"chat-1"}},
		"gone":                {func(w *world) { w.remove("n1") }, []string{"chat-1"}},
		"never said anything": {func(w *world) { w.fails("n1"); w.nodes["n1"].Status.Conditions = nil }, []string{"chat-1"}},
		"the pod serves":      {func(w *world) { w.fails("n1"); w.says(w.pods["ns/chat-1"], true) }, nil},
		"gone, the pod is still said to be ready": {func(w *world) { w.remove("n1"); w.says(w.pods["ns/chat-1"], true) }, []string{"chat-1"}},
		"another node":        {func(w *world) { w.fails("n5") }, nil},
		"no service any more": {func(w *world) { w.fails("n1"); delete(w.groups, "ns/chat") }, nil},
		"of another namespace": {func(w *world) {
			w.fails("n1")
			g := w.groups["ns/chat"]
			delete(w.groups, "ns/chat")
			g.Namespace = "other"
			w.groups["other/chat"] = g
		}, nil},
		"of another type":            {func(w *world) { w.fails("n1"); w.groups["ns/chat"].Spec.Type = "training" }, nil},
		"of no group":                {func(w *world) { w.fails("n1"); w.pods["ns/chat-1"].Annotations = nil }, nil},
		"has finished":               {func(w *world) { w.fails("n1"); w.pods["ns/chat-1"].Status.Phase = corev1.PodFailed }, nil},
		"is going":                   {func(w *world) { w.fails("n1"); w.asks(w.pods["ns/chat-1"]) }, nil},
		"nobody owns it":             {func(w *world) { w.fails("n1"); ownedBy("")(w.pods["ns/chat-1"]) }, nil},
		"a DaemonSet does":           {func(w *world) { w.fails("n1"); ownedBy("DaemonSet")(w.pods["ns/chat-1"]) }, nil},
		"its node does":              {func(w *world) { w.fails("n1"); ownedBy("Node")(w.pods["ns/chat-1"]) }, nil},
		"a StatefulSet does":         {func(w *world) { w.fails("n1"); ownedBy("StatefulSet")(w.pods["ns/chat-1"]) }, []string{"chat-1"}},
		"a budget keeps it":          {func(w *world) { w.fails("n1"); w.blocked = true }, nil},
		"spaces in the name":         {func(w *world) { w.fails("n1"); w.pods["ns/chat-1"].Annotations[codec.AnnotationTaskGroup] = " chat " }, []string{"chat-1"}},
		"bound by nobody":            {func(w *world) { w.fails("n1"); w.pods["ns/chat-1"].Spec.NodeName = "" }, nil},
		"two of its nodes":           {func(w *world) { w.fails("n1"); w.remove("n2") }, []string{"chat-1"}}, // one at once
		"most of its nodes":          {func(w *world) { w.fails("n1", "n2") }, nil},
		"most nodes":                 {func(w *world) { w.fails("n1", "n4", "n5") }, nil},
		"half of all nodes":          {func(w *world) { w.node("n6"); w.fails("n1", "n4", "n5") }, []string{"chat-1"}},
		"gone, most nodes not ready": {func(w *world) { w.remove("n1"); w.fails("n2", "n4", "n5") }, []string{"chat-1"}},
		"most nodes are gone":        {func(w *world) { w.remove("n1", "n4", "n5") }, []string{"chat-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := service()
			w.rounds(1)
			tc.happens(w)
			w.rounds(5)
			w.want(t, "within the grace")
			w.rounds(3)
			w.want(t, "after it", tc.want...)
		})
	}
}

// What is told, and to whom.
func TestWhatIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(*world)
		want    []string
	}{
		"evicted": {func(w *world) { w.fails("n1") }, []string{
			"Pod ns/chat-1 Rebuilding: evicted so that ReplicaSet rs makes another elsewhere: node n1 has not been ready since 2026-11-30T12:00:10Z",
			"TaskGroup ns/chat Rebuilding: pod chat-1 is evicted so that ReplicaSet rs makes another elsewhere: node n1 has not been ready since 2026-11-30T12:00:10Z",
		}},
		"gone": {func(w *world) { w.remove("n1") }, []string{ // seen a period later
			"Pod ns/chat-1 Rebuilding: evicted so that ReplicaSet rs makes another elsewhere: node n1 has been gone since 2026-11-30T12:00:20Z",
			"TaskGroup ns/chat Rebuilding: pod chat-1 is evicted so that ReplicaSet rs makes another elsewhere: node n1 has been gone since 2026-11-30T12:00:20Z",
		}},
		"nobody owns it": {func(w *world) { w.fails("n1"); ownedBy("")(w.pods["ns/chat-1"]) }, []string{
			"Pod ns/chat-1 NotRebuilt: not evicted though node n1 has not been ready since 2026-11-30T12:00:10Z: no controller owns it, so that nobody would make another",
		}},
		"a DaemonSet owns it": {func(w *world) { w.fails("n1"); ownedBy("DaemonSet")(w.pods["ns/chat-1"]) }, []string{
			"Pod ns/chat-1 NotRebuilt: not evicted though node n1 has not been ready since 2026-11-30T12:00:10Z: DaemonSet rs would make another on that very node",
		}},
		"a budget keeps it": {func(w *world) { w.fails("n1"); w.blocked = true }, []string{
			"Pod ns/chat-1 RebuildBlocked: not evicted though node n1 has not been ready since 2026-11-30T12:00:10Z: evict: the pod may not be evicted now: the budget",
		}},
		"most nodes": {func(w *world) { w.fails("n1", "n4", "n5") }, []string{
			"TaskGroup ns/chat RebuildHalted: no pod is evicted from a node that is not ready: 3 of the 5 nodes of the cluster are not, as when the control plane is cut off from them; it goes on by itself when at most half are",
		}},
		"most of its nodes": {func(w *world) { w.fails("n1", "n2") }, []string{
			"TaskGroup ns/chat RebuildHalted: no pod is evicted from a node that is not ready: 2 of the 3 nodes on which its pods are are not, as when the control plane is cut off from them; it goes on by itself when at most half are",
		}},
		"most of other nodes": {func(w *world) { w.fails("n4", "n5"); w.node("n6") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := service()
			w.rounds(1)
			tc.happens(w)
			w.rounds(100)
			if diff := cmp.Diff(tc.want, w.told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// The next goes when the one before has its place, and not while it has none.
func TestOneAtATime(t *testing.T) {
	for name, tc := range map[string]struct {
		atOnce, rounds int
		places         bool
		want           int
	}{
		"each has its place, the first":  {1, 1, true, 1},
		"within half a minute":           {1, 3, true, 1},
		"the next":                       {1, 4, true, 2},
		"the one after it":               {1, 7, true, 3},
		"all":                            {1, 30, true, 4},
		"two at once":                    {2, 1, true, 2},
		"all by twos":                    {2, 4, true, 4},
		"there is no place":              {1, 30, false, 1},
		"for five minutes":               {1, 31, false, 2},
		"two at once without a place":    {2, 30, false, 2},
		"all that there are, of as many": {9, 1, true, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.group("chat")
			w.node("n1", "n2", "n3")
			for i := range 4 {
				w.pod(fmt.Sprint("old-", i), "chat", "n1")
			}
			w.pod("other", "chat", "n2")
			w.fails("n1")
			w.now = w.now.Add(time.Hour)
			w.c.Rules.AtOnce = tc.atOnce
			for range tc.rounds {
				w.rounds(1)
				w.remakes(5, "chat", tc.places)
			}
			if len(w.evicted) != tc.want {
				t.Errorf("evicted %v, want %d", w.evicted, tc.want)
			}
		})
	}
}

// A new leader takes those who are on their way into account, and those who were evicted
// by somebody else.
func TestAnotherLeaderCountsThemToo(t *testing.T) {
	w := newWorld()
	w.group("chat")
	w.node("n1", "n2", "n3")
	w.pod("a", "chat", "n1")
	w.pod("b", "chat", "n1")
	w.fails("n1")
	w.now = w.now.Add(time.Hour)
	w.rounds(1)
	w.want(t, "by the first", "a")
	w.lead()
	w.rounds(2)
	w.want(t, "by the second within half a minute", "a")
	w.rounds(1)
	w.want(t, "by the second", "a", "b")
}

// A group is not held up by what another waits for.
func TestGroupsGoOnByThemselves(t *testing.T) {
	w := newWorld()
	w.group("a")
	w.group("b")
	w.node("n1", "n2", "n3")
	w.pod("a-1", "a", "n1")
	w.pod("b-1", "b", "n1")
	w.pod("a-2", "a", "")
	w.fails("n1")
	w.now = w.now.Add(2 * time.Minute)
	w.rounds(1)
	w.want(t, "one waits", "b-1")
}

// Those whose nodes are lost for longest come first, then by name; who was looked at in
// vain is behind.
func TestOrder(t *testing.T) {
	w := newWorld()
	w.group("chat")
	w.node("n1", "n2", "n3", "n4", "n5", "n6", "n7")
	w.pod("c", "chat", "n1")
	w.pod("b", "chat", "n2")
	w.pod("a", "chat", "n2", serving)
	w.pod("x", "chat", "n3")
	w.pod("y", "chat", "n4")
	w.pod("z", "chat", "n5")
	w.fails("n1")
	w.now = w.now.Add(time.Second)
	w.fails("n2")
	serving(w.pods["ns/a"])
	w.now = w.now.Add(time.Hour)
	for range 12 {
		w.rounds(1)
		w.remakes(6, "chat", true)
	}
	w.want(t, "in order", "c", "b")
	if n := w.counts[metrics.RebuildServes]; n == 0 || n > 12 {
		t.Errorf("%d looks at one who serves, in 12 rounds", n)
	}
}

// Whatever happens between the look and the eviction, nobody is evicted who has become
// another.
func TestWhatHappensMeanwhile(t *testing.T) {
	pod := func(w *world) *corev1.Pod { return w.pods["ns/chat-1"] }
	for name, happens := range map[string]func(*world){
		"the node is back":    func(w *world) { w.turn("n1", corev1.ConditionTrue) },
		"it was back":         func(w *world) { w.turn("n1", corev1.ConditionTrue); w.turn("n1", corev1.ConditionUnknown) },
		"the node is gone":    func(w *world) { w.remove("n1") },
		"the pod serves":      func(w *world) { w.says(pod(w), true) },
		"the pod is gone":     func(w *world) { delete(w.pods, "ns/chat-1") },
		"another of its name": func(w *world) { w.says(w.pod("chat-1", "chat", "n1"), false) },
		"it is asked to go":   func(w *world) { w.asks(pod(w)) },
		"it has finished":     func(w *world) { pod(w).Status.Phase = corev1.PodSucceeded; w.write(pod(w)) },
		"it is of another group": func(w *world) {
			pod(w).Annotations = map[string]string{codec.AnnotationTaskGroup: "other"}
			w.write(pod(w))
		},
	} {
		for when, late := range map[string]bool{"before it is read": false, "after it is read": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				w := service()
				w.fails("n1")
				w.now = w.now.Add(time.Hour)
				w.see()
				if late {
					w.meddle = func() { happens(w) }
				} else {
					happens(w)
				}
				w.c.round(quiet())
				w.want(t, name)
				if w.counts[metrics.RebuildOvertaken]+w.counts[metrics.RebuildServes] != 1 {
					t.Errorf("counted %v", w.counts)
				}
			})
		}
	}
}

// Since when a node was not ready is not forgotten when it is taken away.
func TestANodeThatIsTakenAwayAtLast(t *testing.T) {
	w := service()
	w.fails("n1", "n4", "n5") // which halts it
	w.rounds(10)
	w.want(t, "not ready")
	w.remove("n1")
	w.rounds(1)
	w.want(t, "gone", "chat-1")
}

// An API server that does not answer is left in peace, and one that answers no is asked
// about the others.
func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		fail error
		want int // looks in one round
	}{
		"no answer":    {errors.New("connection refused"), 1},
		"too many":     {apierrors.NewTooManyRequests("slow down", 1), 1},
		"out of order": {apierrors.NewInternalError(errors.New("etcd")), 1},
		"no right":     {apierrors.NewForbidden(resource("pods"), "x", errors.New("no")), 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.node("n1", "n2", "n3")
			for _, g := range []string{"a", "b", "c"} {
				w.group(g)
				w.pod(g, g, "n1")
			}
			w.fails("n1")
			w.now = w.now.Add(time.Hour)
			w.fail = tc.fail
			w.rounds(1)
			if n := w.counts[metrics.RebuildFailed]; n != tc.want {
				t.Errorf("%d faults, want %d", n, tc.want)
			}
			w.fail = nil
			w.rounds(1)
			slices.Sort(w.evicted) // who was tried in vain comes last
			w.want(t, "when it answers", "a", "b", "c")
		})
	}
}

// A round looks at so many, and the others have their turn in the next ones.
func TestARoundIsBounded(t *testing.T) {
	w := newWorld()
	w.group("chat")
	w.node("n1", "n2", "n3")
	for i := range 500 {
		w.pod(fmt.Sprintf("p-%03d", i), "chat", "n1", serving)
	}
	w.fails("n1")
	for _, p := range w.pods {
		serving(p)
	}
	last := w.pods["ns/p-499"]
	last.Status.Conditions = nil
	w.now = w.now.Add(time.Hour)
	w.rounds(1)
	if n := w.counts[metrics.RebuildServes]; n != mostLooks {
		t.Errorf("%d looks in a round, want %d", n, mostLooks)
	}
	w.rounds(2)
	w.want(t, "in the third round", "p-499")
}

// The owner of a pod may be somebody later.
func TestAnAdoptedPodIsRebuilt(t *testing.T) {
	w := service()
	owners := w.pods["ns/chat-1"].OwnerReferences
	ownedBy("")(w.pods["ns/chat-1"])
	w.fails("n1")
	w.now = w.now.Add(time.Hour)
	w.rounds(60)
	w.want(t, "an orphan")
	w.pods["ns/chat-1"].OwnerReferences = owners
	w.rounds(61)
	w.want(t, "adopted", "chat-1")
	if n := w.counts[metrics.RebuildUnowned]; n != 1 {
		t.Errorf("%d pods counted as not owned", n)
	}
}

// When most nodes are back it goes on, and when it happens again that is told again.
func TestAHaltEnds(t *testing.T) {
	w := service()
	w.fails("n1", "n4", "n5")
	w.rounds(20)
	if w.halted != 1 || len(w.tells(ReasonHalted)) != 1 {
		t.Errorf("%d halted, told %v", w.halted, w.told)
	}
	w.turn("n4", corev1.ConditionTrue)
	w.rounds(1)
	w.want(t, "at most half", "chat-1")
	w.remakes(3, "chat", true)
	if w.halted != 0 {
		t.Errorf("%d halted", w.halted)
	}
	w.fails("n2", "n4")
	w.rounds(10)
	w.want(t, "again", "chat-1")
	if n := len(w.tells(ReasonHalted)); n != 2 {
		t.Errorf("told %d times:\n%s", n, strings.Join(w.told, "\n"))
	}
}

// All nodes there are, though these be few, are not given up; half of two are.
func TestFewNodes(t *testing.T) {
	w := newWorld()
	w.group("chat")
	w.node("n1", "n2")
	w.pod("a", "chat", "n1")
	w.pod("b", "chat", "n2")
	w.fails("n1", "n2")
	w.rounds(20)
	w.want(t, "all nodes")
	w.turn("n2", corev1.ConditionTrue)
	w.rounds(1)
	w.want(t, "half of them", "a")
}

// Pods that are left over on dead nodes do not make others count as lost with them.
func TestLeftoversDoNotHalt(t *testing.T) {
	w := service()
	w.fails("n1")
	w.now = w.now.Add(time.Hour)
	w.rounds(1)
	w.want(t, "the first", "chat-1")
	p := w.pod("chat-4", "chat", "n3")
	w.fails("n2")
	w.rounds(10)
	w.want(t, "the second", "chat-1", "chat-2")
	if p.DeletionTimestamp != nil || w.halted != 0 {
		t.Errorf("%d halted", w.halted)
	}
}

// A clock that is put back makes neither two go at once nor nobody ever.
func TestTheClockIsPutBack(t *testing.T) {
	w := service()
	w.pod("chat-4", "chat", "n1")
	w.fails("n1")
	w.now = w.now.Add(time.Hour)
	w.rounds(1)
	w.want(t, "the first", "chat-1")
	w.now = w.now.Add(-time.Minute)
	w.rounds(2)
	w.want(t, "put back", "chat-1")
	w.rounds(8)
	w.want(t, "later", "chat-1", "chat-4")

	w = service()
	w.remove("n1")
	w.rounds(2)
	w.now = w.now.Add(-time.Hour)
	w.rounds(6)
	w.want(t, "within the grace that begins anew")
	w.rounds(1)
	w.want(t, "after it", "chat-1")

	w = service()
	owners := w.pods["ns/chat-1"].OwnerReferences
	w.pods["ns/chat-1"].OwnerReferences = nil
	w.fails("n1")
	w.now = w.now.AddDate(1, 0, 0)
	w.rounds(1)
	w.now = w.now.AddDate(-1, 0, 0)
	w.pods["ns/chat-1"].OwnerReferences = owners
	w.rounds(int((unownedRest+time.Minute)/period) + 3)
	w.want(t, "adopted after the clock was put back by a year", "chat-1")
}

// What is remembered is of what is there.
func TestNothingIsRememberedForEver(t *testing.T) {
	w := service()
	ownedBy("")(w.pods["ns/chat-1"])
	w.remove("n1")
	w.fails("n2")
	w.rounds(30)
	m := &w.c.memory
	if len(m.missed)*len(m.tried)*len(m.rests)*len(m.told) == 0 {
		t.Fatalf("nothing was tried: %+v", m)
	}
	clear(w.pods)
	w.rounds(5)
	if n := len(m.missed) + len(m.evicted) + len(m.tried) + len(m.rests) + len(m.told) + len(m.halted); n != 0 {
		t.Errorf("remembered: %+v", m)
	}
}

// The loop takes a round every ten seconds, and tells nothing that is not so any more
// when it ends.
func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		fails   []string
		runs    time.Duration
		evicted []string
		halts   bool
	}{
		"before the grace ends": {[]string{"n1"}, 59 * time.Second, nil, false},
		"after it":              {[]string{"n1"}, 61 * time.Second, []string{"chat-1"}, false},
		"halted":                {[]string{"n1", "n4", "n5"}, 10 * time.Minute, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := service()
				w.c.Now = time.Now
				w.now = time.Now()
				w.fails(tc.fails...)
				w.see()
				ctx, stop := context.WithTimeout(quiet(), tc.runs)
				defer stop()
				if err := w.c.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Run = %v", err)
				}
				w.want(t, name, tc.evicted...)
				if got := len(w.tells(ReasonHalted)) == 1; got != tc.halts || w.halted != 0 {
					t.Errorf("halted: %v, %d are when it has ended", got, w.halted)
				}
			})
		})
	}
}
