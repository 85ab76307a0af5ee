package preempt_test

import (
	"testing"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// closedTown is the town while nothing new may come from anywhere.
type closedTown struct{ town }

func (closedTown) Owner(namespace string) (gpu.TenantID, gpu.Reason) {
	return gpu.TenantID(namespace), gpu.TenantInactive
}

// TestForgets: what does not show in a node that a plan depends on is not remembered
// beyond its time. Between two plans for pods that are alike one thing changes.
func TestForgets(t *testing.T) {
	tests := map[string]struct {
		before, after preempt.Outcome
		residents     []resident
		cards         int
		rules         town
		world         func(w *preempt.World) // of both rounds
		first         func(l *ledger.Ledger, w *preempt.World, a *preempt.Asker)
		change        func(l *ledger.Ledger, w *preempt.World, a *preempt.Asker)
	}{
		"a limit is raised": {before: preempt.Hopeless, after: preempt.Planned, cards: 1, rules: town{devices: map[string]int64{"red": 0}},
			residents: []resident{on("n1", "a", 0).but(func(r *resident) { r.Namespace = "blue" })},
			change: func(l *ledger.Ledger, _ *preempt.World, _ *preempt.Asker) {
				l.Govern(town{devices: map[string]int64{"red": 2}})
			}},
		"the namespace is closed": {before: preempt.Planned, after: preempt.Hopeless, cards: 1, residents: []resident{on("n1", "a", 0)},
			change: func(l *ledger.Ledger, _ *preempt.World, _ *preempt.Asker) { l.Govern(closedTown{}) }},
		"who is ending is overdue": {before: preempt.Waits, after: preempt.Planned, cards: 2,
			residents: []resident{on("n1", "a", 0).ending().but(func(r *resident) { r.Due = now }), on("n1", "b", 1)},
			change:    func(_ *ledger.Ledger, w *preempt.World, _ *preempt.Asker) { w.Now = now.Add(2 * time.Minute) }},
		"who asks had its victim ended before": {before: preempt.Planned, after: preempt.Hopeless, cards: 1, residents: []resident{on("n1", "a", 0)},
			change: func(_ *ledger.Ledger, w *preempt.World, a *preempt.Asker) {
				a.Lineage, w.History = "other", []preempt.Eviction{{By: "other", Of: "a", At: now}}
			}},
		"the hour is half spent": {before: preempt.Planned, after: preempt.Hopeless, cards: 2,
			residents: []resident{sliceOn("n1", "a", 0, 3), sliceOn("n1", "b", 0, 3), on("n1", "c", 1).priority(60)},
			world:     func(w *preempt.World) { w.Rules.PerHour = 2 },
			change: func(_ *ledger.Ledger, w *preempt.World, _ *preempt.Asker) {
				w.History = []preempt.Eviction{{Tenant: "red", At: now}}
			}},
		"the namespace is opened": {before: preempt.Hopeless, after: preempt.Planned, cards: 1, residents: []resident{on("n1", "a", 0)},
			first:  func(l *ledger.Ledger, _ *preempt.World, _ *preempt.Asker) { l.Govern(closedTown{}) },
			change: func(l *ledger.Ledger, _ *preempt.World, _ *preempt.Asker) { l.Govern(town{}) }},
		"another asks": {before: preempt.Hopeless, after: preempt.Planned, cards: 1, residents: []resident{on("n1", "a", 0)},
			first: func(_ *ledger.Ledger, w *preempt.World, a *preempt.Asker) {
				a.Lineage, w.History = "other", []preempt.Eviction{{By: "other", Of: "a", At: now}}
			},
			change: func(_ *ledger.Ledger, _ *preempt.World, a *preempt.Asker) { a.Lineage = "high" }},
		"another hour begins": {before: preempt.Hopeless, after: preempt.Planned, cards: 2,
			residents: []resident{sliceOn("n1", "a", 0, 3), sliceOn("n1", "b", 0, 3), on("n1", "c", 1).priority(60)},
			world:     func(w *preempt.World) { w.Rules.PerHour = 2 },
			first: func(_ *ledger.Ledger, w *preempt.World, _ *preempt.Asker) {
				w.History = []preempt.Eviction{{Tenant: "red", At: now}}
			},
			change: func(*ledger.Ledger, *preempt.World, *preempt.Asker) {}},
		"a member elsewhere becomes known": {before: preempt.Hopeless, after: preempt.Planned, cards: 1,
			residents: []resident{on("n1", "a", 0).unit("u"), on("n2", "b", 0).unit("u")},
			world:     func(w *preempt.World) { w.Suits = func(_ *preempt.Asker, n gpu.NodeID) bool { return n == "n1" } },
			first:     func(l *ledger.Ledger, _ *preempt.World, _ *preempt.Asker) { l.Release("b") },
			change:    func(l *ledger.Ledger, _ *preempt.World, _ *preempt.Asker) { l.Confirm(on("n2", "b", 0).placement()) }},
		"a member elsewhere is not known any more": {before: preempt.Planned, after: preempt.Hopeless, cards: 1,
			residents: []resident{on("n1", "a", 0).unit("u"), on("n2", "b", 0).unit("u")},
			world:     func(w *preempt.World) { w.Suits = func(_ *preempt.Asker, n gpu.NodeID) bool { return n == "n1" } },
			change:    func(l *ledger.Ledger, _ *preempt.World, _ *preempt.Asker) { l.Release("b") }},
	}
	nothing := func(*ledger.Ledger, *preempt.World, *preempt.Asker) {}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := cluster{nodes: []ledger.Facts{facts("n1", tc.cards), facts("n2", 1)}, residents: tc.residents, rules: tc.rules}
			if tc.world == nil {
				tc.world = func(*preempt.World) {}
			}
			if last := tc.residents[len(tc.residents)-1]; last.Node == "n1" {
				c.residents = append(c.residents, on("n2", "stays", 0).priority(60))
			}
			l, a, p := c.books(), wholes(1), &preempt.Planner{}
			if tc.first == nil {
				tc.first = nothing
			}
			tc.first(l, &preempt.World{}, &a)
			w := c.world(l)
			tc.world(w)
			tc.first(l, w, &a)
			if _, got := p.Plan(w, &a); got != tc.before {
				t.Fatalf("outcome %d, want %d", got, tc.before)
			}
			tc.change(l, &preempt.World{}, &a)
			w = c.world(l)
			tc.world(w)
			tc.change(l, w, &a)
			if _, got := p.Plan(w, &a); got != tc.after {
				t.Errorf("afterwards outcome %d, want %d", got, tc.after)
			}
		})
	}
}

// Who is ended within a round counts for the hour.
func TestTheHourWithinARound(t *testing.T) {
	c := cluster{nodes: []ledger.Facts{facts("n1", 1), facts("n2", 1)}, residents: []resident{on("n1", "a", 0), on("n2", "b", 0)}}
	l := c.books()
	w, p := c.world(l), &preempt.Planner{}
	w.Rules.PerHour = 1
	first, second := named(wholes(1), "first"), named(wholes(1), "second")
	plan, outcome := p.Plan(w, &first)
	if outcome != preempt.Planned {
		t.Fatalf("outcome %d", outcome)
	}
	l.Confirm(plan.Placement)
	w.State = l.Snapshot()
	if _, outcome := p.Plan(w, &second); outcome != preempt.Hopeless {
		t.Errorf("outcome %d, want nobody ended beyond the one within the hour", outcome)
	}
}
