package preempt_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// twenty nodes of two cards, each with two pods.
func twenty() (c cluster) {
	for i := range 20 {
		f := facts(gpu.NodeID(fmt.Sprintf("n%02d", i)), 2)
		c.nodes = append(c.nodes, f)
		for k := range 2 {
			c.residents = append(c.residents, on(f.ID, gpu.PodID(fmt.Sprintf("%s-%d", f.ID, k)), k).priority(int32(40-i)).age(i+k))
		}
	}
	return c
}

// named returns the Asker as another pod, which is of no lineage that anything is
// known of.
func named(a preempt.Asker, id gpu.PodID) preempt.Asker {
	a.Pod, a.Lineage = id, string(id)
	return a
}

// What was found about a node is not found out again while it stays as it is, by pods
// that are alike, in whichever round; of one that changes it is.
func TestMemory(t *testing.T) {
	c := twenty()
	l := c.books()
	p, asked := &preempt.Planner{}, 0
	plan := func(id gpu.PodID, a preempt.Asker, change ...func(*preempt.World)) (gpu.NodeID, int) {
		t.Helper()
		w := c.world(l)
		w.Trial = trials(&asked)
		for _, f := range change {
			f(w)
		}
		before := asked
		a = named(a, id)
		plan, outcome := p.Plan(w, &a)
		if outcome != preempt.Planned {
			t.Fatalf("%s: outcome %d", id, outcome)
		}
		return plan.Placement.Node, asked - before
	}
	if node, n := plan("first", wholes(1)); node != "n19" || n < 20 {
		t.Errorf("on %s with %d trials, want n19 with one of each node at least", node, n)
	}
	if node, n := plan("second", wholes(1)); node != "n19" || n > 3 {
		t.Errorf("on %s with %d trials, want n19 with those of the proof alone", node, n)
	}
	if node, n := plan("another kind", wholes(2)); node != "n19" || n < 20 {
		t.Errorf("on %s with %d trials, want n19, found anew", node, n)
	}
	exempt := func(w *preempt.World) { w.Pods["n19"] = nil }
	if node, n := plan("third", wholes(1), exempt); node != "n18" || n > 6 {
		t.Errorf("on %s with %d trials, want n18: nobody may be ended on n19 now", node, n)
	}
	l.Release("n03-0")
	l.Confirm(on("n03", "new", 0).placement())
	c.residents = append(c.residents, on("n03", "new", 0).priority(1))
	if node, n := plan("fourth", wholes(1)); node != "n03" || n > 6 {
		t.Errorf("on %s with %d trials, want n03, where a lesser one has come", node, n)
	}
	if _, n := plan("fifth", wholes(1), func(w *preempt.World) { w.Policy = "another" }); n <= 3 {
		t.Errorf("%d trials by another policy, want it found anew", n)
	}
	if _, n := plan("sixth", wholes(1), func(w *preempt.World) { w.Policy = nil }); n <= 3 {
		t.Errorf("%d trials where nobody says by what policy, want it found anew", n)
	}
}

// What nobody's going would make room for takes no trial at all, not even at first, and
// is in nobody's way.
func TestHopelessCostsNothing(t *testing.T) {
	c := twenty()
	w, asked := c.world(c.books()), 0
	w.Trial = trials(&asked)
	for name, a := range map[string]preempt.Asker{
		"cards": wholes(3), "memory": slice(10), "another vendor": asking(gpu.Ask{Count: 1, Whole: true, Vendor: gpu.Ascend}),
		"processors": func() preempt.Asker { a := wholes(1); a.CPU = 9000; return a }(),
		"together":   asking(gpu.Ask{Count: 1, Whole: true}, gpu.Ask{Count: 2, Memory: 1, Cores: 1}),
	} {
		if _, outcome := (&preempt.Planner{}).Plan(w, &a); outcome != preempt.Hopeless || asked > 0 {
			t.Errorf("%s: outcome %d, %d trials", name, outcome, asked)
		}
	}
}

// A search that was cut short goes on in the next round, and comes to what one comes
// to that is not.
func TestEarly(t *testing.T) {
	c := twenty()
	l := c.books()
	a, p := wholes(1), &preempt.Planner{Most: 3}
	want, _ := (&preempt.Planner{}).Plan(c.world(l), &a)
	for round := 1; ; round++ {
		got, outcome := p.Plan(c.world(l), &a)
		if outcome == preempt.Early && round < 10 {
			continue
		}
		if round != 7 {
			t.Errorf("done in round %d, want 7: 20 nodes, 3 a round", round)
		}
		if diff := cmp.Diff(want, got); diff != "" || outcome != preempt.Planned {
			t.Errorf("outcome %d, plan (-at once +bit by bit):\n%s", outcome, diff)
		}
		return
	}
}

// Plans of one round see each other: what one claims no other counts on, and nobody is
// ended for two.
func TestWithinARound(t *testing.T) {
	big := on("n1", "big", 0, 1).priority(5)
	c := cluster{nodes: []ledger.Facts{facts("n1", 3)}, residents: []resident{big, on("n1", "small", 2)}}
	l := c.books()
	w, p := c.world(l), &preempt.Planner{}
	first, second, third := named(wholes(1), "first"), named(wholes(2), "second"), named(wholes(1), "third")
	plan, _ := p.Plan(w, &first)
	if diff := cmp.Diff([]gpu.PodID{"big"}, ids(plan.Victims)); diff != "" {
		t.Fatalf("victims of the first (-want +got):\n%s", diff)
	}
	if again, _ := p.Plan(w, &second); !slices.Contains(ids(again.Victims), "big") {
		t.Errorf("victims %v: a plan that was not carried out binds nobody", ids(again.Victims))
	}
	l.Confirm(plan.Placement)
	w.State = l.Snapshot()
	if _, outcome := p.Plan(w, &third); outcome != preempt.Waits {
		t.Errorf("outcome %d, want to wait for the other card of who is going already", outcome)
	}
	if _, outcome := p.Plan(w, &second); outcome != preempt.Waits {
		t.Errorf("outcome %d, want to wait: with who is going one more will do", outcome)
	}
	if why := preempt.Bars(w, &second, &big.Pod); why != "it is ending already" {
		t.Errorf("bars the victim: %q", why)
	}
	if preempt.Certify(w, &preempt.Plan{Asker: second, Placement: plan.Placement, Victims: plan.Victims}) == nil {
		t.Error("a plan is certified that ends somebody a second time")
	}
}

// In the rounds after, the victims are pods that are ending, and the claim is a hold of a
// pod that is not bound.
func TestBesideAClaim(t *testing.T) {
	going := on("n1", "a", 0).ending()
	c := cluster{nodes: []ledger.Facts{facts("n1", 2)}, residents: []resident{going, on("n1", "b", 1)}}
	l := c.books()
	l.Confirm(on("n1", "preemptor", 0).placement())
	w, a := c.world(l), wholes(1)
	plan, outcome := (&preempt.Planner{}).Plan(w, &a)
	if diff := cmp.Diff([]gpu.PodID{"b"}, ids(plan.Victims)); diff != "" || outcome != preempt.Planned {
		t.Fatalf("outcome %d, victims (-want +got):\n%s", outcome, diff)
	}
	mustHold(t, w, &plan)
	if s := plan.Placement.Grants[0].Shares[0].Card; s != "n1/1" {
		t.Errorf("placed on %s, which is claimed", s)
	}
}

// In what order pods happen to be given makes no difference.
func TestInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, l := drawCluster(t)
		w, a := drawWorld(t, c, l), drawAsker(t, "asker")
		other := &preempt.World{
			State: w.State, Pods: map[gpu.NodeID][]preempt.Pod{}, History: w.History, Blocked: w.Blocked, Now: w.Now, Rules: w.Rules,
			Suits: w.Suits, Trial: w.Trial,
		}
		for node, pods := range w.Pods {
			other.Pods[node] = rapid.Permutation(pods).Draw(t, "order")
		}
		one, x := (&preempt.Planner{}).Plan(w, &a)
		two, y := (&preempt.Planner{}).Plan(other, &a)
		if diff := cmp.Diff(one, two); diff != "" || x != y {
			t.Fatalf("outcomes %d and %d, plans:\n%s", x, y, diff)
		}
	})
}

// clumsy finds no cards on a node that it says is fit.
type clumsy struct{ preempt.Trial }

func (c clumsy) Place(in ledger.Snapshot, node gpu.NodeID) (gpu.Placement, bool) {
	p, ok := c.Trial.Place(in, node)
	return p, ok && node != "n19"
}

func TestRejected(t *testing.T) {
	c := twenty()
	w, a := c.world(c.books()), wholes(1)
	inner := w.Trial
	w.Trial = func(r *gpu.Request, in ledger.Snapshot) preempt.Trial { return clumsy{inner(r, in)} }
	w.Suits = func(_ *preempt.Asker, n gpu.NodeID) bool { return n != "n00" }
	w.Pods["n01"] = nil
	plan, outcome := (&preempt.Planner{}).Plan(w, &a)
	if outcome != preempt.Planned || plan.Placement.Node != "n18" {
		t.Fatalf("outcome %d on %s, want n18: no cards can be chosen on n19", outcome, plan.Placement.Node)
	}
	const dearer = "as many would have to be ended there at the least, and of no lower priority"
	want := []preempt.Rejection{
		{Node: "n00", Why: "kube-scheduler's own rules keep the pod off it"},
		{Node: "n01", Why: "it would not fit even if all were ended who may be"},
		{Node: "n02", Why: dearer}, {Node: "n03", Why: dearer}, {Node: "n04", Why: dearer},
	}
	if diff := cmp.Diff(want, plan.Rejected); diff != "" {
		t.Errorf("rejected (-want +got):\n%s", diff)
	}
}

// A policy that spares all who run for less than an hour lets each of them go when its
// time has come, whatever was remembered before.
func TestTimeAlone(t *testing.T) {
	c := cluster{nodes: []ledger.Facts{facts("n1", 1)}, residents: []resident{on("n1", "a", 0).but(func(r *resident) { r.Since = now })}}
	l, p, a := c.books(), &preempt.Planner{}, wholes(1)
	for _, tc := range []struct {
		after time.Duration
		want  preempt.Outcome
	}{{0, preempt.Hopeless}, {time.Hour - 1, preempt.Hopeless}, {time.Hour, preempt.Planned}} {
		w := c.world(l)
		w.Now, w.Rules.MinRuntime = now.Add(tc.after), time.Hour
		if _, got := p.Plan(w, &a); got != tc.want {
			t.Errorf("after %s outcome %d, want %d", tc.after, got, tc.want)
		}
	}
}
