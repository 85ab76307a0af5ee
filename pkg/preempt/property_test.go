package preempt_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/preempt"
)

func pick[T any](t *rapid.T, label string, of ...T) T { return rapid.SampledFrom(of).Draw(t, label) }

// rarely is true one time in n.
func rarely(t *rapid.T, label string, n int) bool { return rapid.IntRange(1, n).Draw(t, label) == n }

func moreChecks(t *testing.T, n string) {
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue {
		return
	}
	if err := f.Value.Set(n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
}

func drawNodes(t *rapid.T) (all []ledger.Facts) {
	for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
		f := facts(gpu.NodeID(fmt.Sprintf("n%d", i+1)), rapid.IntRange(1, 4).Draw(t, "cards"))
		f.CPU = pick[gpu.MilliCPU](t, "cpu", 0, 4000, 8000, 8000)
		f.Pods = pick(t, "pods", 0, 0, 0, 4)
		f.Unavailable = rarely(t, "away", 12)
		all = append(all, f)
	}
	return all
}

// drawResident is a pod that may mostly be ended; what it holds there may be room for.
func drawResident(t *rapid.T, id gpu.PodID, f ledger.Facts) resident {
	r := resident{cpu: pick[gpu.MilliCPU](t, "cpu", 500, 1000, 3000), lost: rarely(t, "hold not seen", 15), Pod: preempt.Pod{
		ID: id, Namespace: pick(t, "namespace", "red", "red", "rose", "blue"), Name: string(id), Node: f.ID,
		Priority: 10 * int32(rapid.IntRange(0, 3).Draw(t, "priority")), Created: now.Add(-time.Duration(rapid.IntRange(1, 3).Draw(t, "age")) * time.Minute),
		Preemptible: true, Ours: true, Bare: pick(t, "bare", false, true),
		Unit: pick(t, "unit", "", "", "", "", "", "", "u", "v"), Lineage: pick(t, "lineage", "l1", "l2", "l3", ""),
		Phase: preempt.Running,
	}}
	if rarely(t, "other phase", 8) {
		r.Phase = pick(t, "phase", preempt.Scheduled, preempt.Ending, preempt.Ending)
	}
	if rarely(t, "exempt", 6) {
		pick(t, "for",
			func(p *preempt.Pod) { p.Type = gpu.Training }, func(p *preempt.Pod) { p.Type = gpu.Inference },
			func(p *preempt.Pod) { p.Preemptible = false }, func(p *preempt.Pod) { p.Count = 1 }, func(p *preempt.Pod) { p.Ours = false },
			func(p *preempt.Pod) { p.System = true }, func(p *preempt.Pod) { p.Grace = time.Hour }, func(p *preempt.Pod) { p.Unmade = "too large" },
		)(&r.Pod)
	}
	switch r.Phase {
	case preempt.Running:
		r.Since = pick(t, "since", now.Add(-3*time.Minute), now.Add(-3*time.Minute), now.Add(-3*time.Minute), now.Add(-time.Minute), time.Time{})
	case preempt.Ending:
		r.Due = pick(t, "due", time.Time{}, now, now.Add(-2*time.Minute), now.Add(time.Hour))
	}
	for _, i := range rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "cards")[:pick(t, "how many", 0, 1, 1, 1, 1, 2, 2)] {
		if i >= len(f.Cards) {
			continue
		}
		s := gpu.Share{Card: f.Cards[i].ID, Vendor: gpu.Nvidia, Memory: 10, Cores: 100, Exclusive: true}
		if pick(t, "slice", false, true) {
			s.Exclusive, s.Memory, s.Cores = false, pick[gpu.MiB](t, "MiB", 2, 3, 5), 10
		}
		r.shares = append(r.shares, s)
	}
	return r
}

func drawAsker(t *rapid.T, id gpu.PodID) preempt.Asker {
	a := preempt.Asker{Lineage: pick(t, "lineage", "l1", "high", ""), Created: now, Request: gpu.Request{
		Pod: id, Namespace: pick(t, "namespace", "red", "red", "rose", "blue"), Name: string(id), NUMA: gpu.NoNUMA,
		Priority: pick[int32](t, "priority", 10, 20, 30, 40, 40, 40), CPU: pick[gpu.MilliCPU](t, "cpu", 0, 1000, 3500), Memory: 1,
		Type: pick(t, "type", "", "", "", gpu.Inference, gpu.Batch),
	}}
	if rarely(t, "never", 20) {
		a.Never = "it says so"
	} else if rarely(t, "training", 20) {
		a.Type = gpu.Training
	}
	for i := range pick(t, "asks", 0, 1, 1, 1, 1, 1, 1, 2) {
		ask := gpu.Ask{Container: fmt.Sprint(i), Number: i, Count: pick(t, "count", 1, 1, 2, 2, 3), Whole: true}
		if pick(t, "slice", false, false, true) {
			ask.Whole, ask.Memory, ask.Cores = false, pick[gpu.MiB](t, "MiB", 3, 5, 9), 10
		}
		a.Asks = append(a.Asks, ask)
	}
	return a
}

// drawCluster has pods that came one after the other, where there was room.
func drawCluster(t *rapid.T) (cluster, *ledger.Ledger) {
	c := cluster{nodes: drawNodes(t)}
	if rarely(t, "quotas", 3) {
		c.rules.devices = map[string]int64{}
		for _, namespace := range []string{"red", "rose", "blue"} {
			if pick(t, "quota", false, true) {
				c.rules.devices[namespace] = int64(rapid.IntRange(0, 4).Draw(t, "devices"))
			}
		}
	}
	l := ledger.New(c.rules)
	for _, f := range c.nodes {
		l.SetNode(f)
		for i := range rapid.IntRange(2, 9).Draw(t, "pods") {
			c.admit(l, drawResident(t, gpu.PodID(fmt.Sprintf("%s-%d", f.ID, i)), f))
		}
	}
	if pick(t, "unseen", false, true) { // a hold of a pod that nobody has heard of
		stranger := on(c.nodes[0].ID, "stranger", 0)
		_ = l.Reserve(stranger.placement())
	}
	return c, l
}

func (c *cluster) admit(l *ledger.Ledger, r resident) {
	if r.lost || l.Reserve(r.placement()) == nil {
		c.residents = append(c.residents, r)
	}
}

func drawWorld(t *rapid.T, c cluster, l *ledger.Ledger) *preempt.World {
	w := c.world(l)
	w.Rules = preempt.Rules{
		Stage:      pick(t, "stage", preempt.OfRunning, preempt.OfRunning, preempt.OfRunning, preempt.OfRunning, preempt.OfRunning, preempt.OfRunning, preempt.OfScheduled),
		MinRuntime: pick(t, "min runtime", 0, 0, 0, 2*time.Minute), PerHour: pick(t, "per hour", 0, 0, 0, 1, 2, 4), MaxGrace: pick(t, "max grace", 0, 0, time.Minute),
		Cooldown: 10 * time.Minute, Bare: !rarely(t, "no bare pods", 5),
	}
	for range rapid.IntRange(0, 3).Draw(t, "history") {
		w.History = append(w.History, preempt.Eviction{
			By: pick(t, "by", "l1", "l2", "high"), Of: pick(t, "of", "l1", "l3", "high"), Tenant: pick[gpu.TenantID](t, "tenant", "red", "blue"),
			At: now.Add(-time.Duration(pick(t, "ago", 1, 9, 11, 59, 61)) * time.Minute),
		})
	}
	if rarely(t, "off", 25) {
		w.Rules.Stage = preempt.Disabled
	}
	if len(c.residents) > 0 && rarely(t, "blocked", 4) {
		w.Blocked = map[gpu.PodID]time.Time{pick(t, "who", c.residents...).ID: pick(t, "until", now, now.Add(time.Minute))}
	}
	if rarely(t, "picky", 4) {
		out := pick(t, "keeps off", c.nodes...).ID
		w.Suits = func(_ *preempt.Asker, n gpu.NodeID) bool { return n != out }
	}
	return w
}

// TestAsByTheLetter: whatever the cluster, the planner says what section 9 says, read
// literally, and proves it; and one that remembers all that came before says the same.
func TestAsByTheLetter(t *testing.T) {
	moreChecks(t, "2500")
	outcomes := map[preempt.Outcome]int{}
	rapid.Check(t, func(t *rapid.T) {
		c, l := drawCluster(t)
		old := &preempt.Planner{}
		for step := range rapid.IntRange(1, 4).Draw(t, "rounds") {
			w := drawWorld(t, c, l)
			going := map[gpu.PodID]bool{}
			for i := range rapid.IntRange(1, 3).Draw(t, "askers") {
				a := drawAsker(t, gpu.PodID(fmt.Sprintf("asker-%d-%d", step, i)))
				outcome, node, victims := newNaive(w, &a, going).plan()
				plan, got := old.Plan(w, &a)
				outcomes[got]++
				if got != outcome {
					t.Fatalf("outcome %d, by the letter %d: on %s %v", got, outcome, node, ids(victims))
				}
				mustBeAlike(t, w, &a, &plan, got)
				if got != preempt.Planned {
					continue
				}
				if diff := cmp.Diff(victims, plan.Victims); diff != "" || node != plan.Placement.Node {
					t.Fatalf("on %s, by the letter on %s (-letter +got):\n%s", plan.Placement.Node, node, diff)
				}
				mustHold(t, w, &plan)
				mustBeNeeded(t, w, &plan)
				if pick(t, "carried out", false, true) {
					carryOut(t, w, l, &plan, going)
				}
			}
			change(t, &c, l)
		}
	})
	t.Logf("outcomes: %v", outcomes)
	if total := outcomes[preempt.Planned] + outcomes[preempt.Hopeless]; total > 2000 {
		for o := preempt.Planned; o <= preempt.Exempt; o++ {
			if outcomes[o] < 50 {
				t.Errorf("outcome %d is hardly tried", o)
			}
		}
	}
}

// mustBeAlike: a planner that knows nothing, in a world that nobody has looked at, says
// the same. Plans of this round that are being carried out are part of the world.
func mustBeAlike(t *rapid.T, w *preempt.World, a *preempt.Asker, plan *preempt.Plan, outcome preempt.Outcome) {
	again, got := (&preempt.Planner{}).Plan(w, a)
	if got != outcome {
		t.Fatalf("outcome %d, without memory %d", outcome, got)
	}
	if diff := cmp.Diff(again, *plan); diff != "" {
		t.Fatalf("plan (-without memory +with):\n%s", diff)
	}
}

// mustBeNeeded checks, without the planner's own proof, that the victims suffice and
// that none is superfluous, a unit being one.
func mustBeNeeded(t *rapid.T, w *preempt.World, p *preempt.Plan) {
	n := newNaive(w, &p.Asker, nil)
	byUnit := map[string][]preempt.Pod{}
	for _, v := range p.Victims {
		key := v.Unit
		if key == "" {
			key = "pod " + string(v.ID)
		}
		byUnit[key] = append(byUnit[key], v)
	}
	entries := slices.Collect(maps.Values(byUnit))
	after := n.without(w.State, entries)
	if !n.fits(after, p.Placement.Node) {
		t.Fatalf("the victims %v do not suffice", ids(p.Victims))
	}
	if _, err := after.With(p.Placement); err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		if n.fits(n.without(w.State, slices.Delete(slices.Clone(entries), i, i+1)), p.Placement.Node) {
			t.Fatalf("%v need not go", ids(entries[i]))
		}
	}
}

// carryOut does what the controller does: the claim stands in the books beside those
// who are to go.
func carryOut(t *rapid.T, w *preempt.World, l *ledger.Ledger, p *preempt.Plan, going map[gpu.PodID]bool) {
	l.Confirm(p.Placement)
	w.State = l.Snapshot()
	for _, v := range p.Victims {
		if going[v.ID] {
			t.Fatalf("%s is ended twice", v.ID)
		}
		going[v.ID] = true
	}
}

// change lets a few things happen between two rounds.
func change(t *rapid.T, c *cluster, l *ledger.Ledger) {
	for range rapid.IntRange(0, 3).Draw(t, "changes") {
		f := pick(t, "node", c.nodes...)
		switch pick(t, "what", "gone", "gone", "comes", "quota", "facts", "is other") {
		case "gone":
			if len(c.residents) > 0 {
				i := rapid.IntRange(0, len(c.residents)-1).Draw(t, "who")
				l.Release(c.residents[i].ID)
				c.residents = slices.Delete(slices.Clone(c.residents), i, i+1)
			}
		case "comes":
			id := gpu.PodID(fmt.Sprintf("%s-later-%d", f.ID, rapid.IntRange(0, 1<<30).Draw(t, "id")))
			c.admit(l, drawResident(t, id, f))
		case "quota":
			c.rules = town{devices: map[string]int64{"red": int64(rapid.IntRange(0, 4).Draw(t, "devices"))}}
			l.Govern(c.rules)
		case "facts":
			f.Unavailable = !f.Unavailable
			l.SetNode(f)
		case "is other":
			if len(c.residents) > 0 {
				c.residents = slices.Clone(c.residents)
				r := &c.residents[rapid.IntRange(0, len(c.residents)-1).Draw(t, "who")]
				r.Preemptible, r.Unit = !r.Preemptible, pick(t, "unit", "", "u")
			}
		}
	}
}

// TestNoPlanIsMissed: where the planner finds nobody, no choice of those who may be
// ended on any node would do.
func TestNoPlanIsMissed(t *testing.T) {
	moreChecks(t, "1500")
	hopeless := 0
	rapid.Check(t, func(t *rapid.T) {
		c, l := drawCluster(t)
		w, a := drawWorld(t, c, l), drawAsker(t, "asker")
		w.Rules.PerHour = 0
		if _, got := (&preempt.Planner{}).Plan(w, &a); got != preempt.Hopeless {
			return
		}
		hopeless++
		n := newNaive(w, &a, nil)
		for id := range w.State.Nodes() {
			if w.Suits != nil && !w.Suits(&a, id) {
				continue
			}
			all := n.candidates(id)
			for set := range 1 << len(all) {
				some := slices.DeleteFunc(slices.Clone(all), func(e []preempt.Pod) bool {
					i := slices.IndexFunc(all, func(o []preempt.Pod) bool { return o[0].ID == e[0].ID })
					return set>>i&1 == 0
				})
				if n.fits(n.without(n.settled(id), some), id) {
					t.Fatalf("on %s it fits without %v", id, some)
				}
			}
		}
	})
	t.Logf("%d were hopeless", hopeless)
}
