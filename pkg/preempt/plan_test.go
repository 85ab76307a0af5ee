package preempt_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// TestPlan has one row for each rule: with victims, the plan is made; without, the
// outcome says why there is none.
func TestPlan(t *testing.T) {
	one := []ledger.Facts{facts("n1", 2)}
	full := []resident{on("n1", "a", 0), on("n1", "b", 1)}
	onlyB := func(change func(*resident)) []resident { // a may not be ended for what it is
		return []resident{on("n1", "a", 0).but(change), on("n1", "b", 1).priority(40)}
	}
	tests := map[string]struct {
		nodes     []ledger.Facts
		residents []resident
		rules     town
		asker     preempt.Asker
		change    func(*preempt.World)
		want      preempt.Outcome
		node      gpu.NodeID
		victims   []gpu.PodID
	}{
		"fits without anybody ended": {nodes: one, residents: full[:1], asker: wholes(1), want: preempt.FitsNow},
		"the lowest priority first": {nodes: one, residents: []resident{on("n1", "a", 0).priority(20), on("n1", "b", 1)}, asker: wholes(1),
			node: "n1", victims: []gpu.PodID{"b"}},
		"the latest of equal priority": {nodes: one, residents: []resident{on("n1", "a", 0).age(50), on("n1", "b", 1).age(40)}, asker: wholes(1),
			node: "n1", victims: []gpu.PodID{"b"}},
		"by UID in the end":       {nodes: one, residents: full, asker: wholes(1), node: "n1", victims: []gpu.PodID{"a"}},
		"as many as it takes":     {nodes: one, residents: full, asker: wholes(2), node: "n1", victims: []gpu.PodID{"a", "b"}},
		"more than the node has":  {nodes: one, residents: full, asker: wholes(3), want: preempt.Hopeless},
		"equal priority is safe":  {nodes: one, residents: []resident{on("n1", "a", 0, 1).priority(50)}, asker: wholes(1), want: preempt.Hopeless},
		"higher priority is safe": {nodes: one, residents: []resident{on("n1", "a", 0, 1).priority(60)}, asker: wholes(1), want: preempt.Hopeless},
		"training preempts nobody": {nodes: one, residents: full, want: preempt.Exempt,
			asker: func() preempt.Asker { a := wholes(1); a.Type = gpu.Training; return a }()},
		"inference may preempt": {nodes: one, residents: full, node: "n1", victims: []gpu.PodID{"a"},
			asker: func() preempt.Asker { a := wholes(1); a.Type = gpu.Inference; return a }()},
		"who says never": {nodes: one, residents: full, want: preempt.Exempt,
			asker: func() preempt.Asker { a := wholes(1); a.Never = "preemptionPolicy"; return a }()},
		"switched off":        {nodes: one, residents: full, asker: wholes(1), want: preempt.Exempt, change: func(w *preempt.World) { w.Rules.Stage = preempt.Disabled }},
		"training is safe":    {nodes: one, residents: onlyB(func(r *resident) { r.Type = gpu.Training }), asker: wholes(1), node: "n1", victims: []gpu.PodID{"b"}},
		"inference is safe":   {nodes: one, residents: onlyB(func(r *resident) { r.Type = gpu.Inference }), asker: wholes(1), node: "n1", victims: []gpu.PodID{"b"}},
		"the silent are safe": {nodes: one, residents: onlyB(func(r *resident) { r.Preemptible = false }), asker: wholes(1), node: "n1", victims: []gpu.PodID{"b"}},
		"once is enough":      {nodes: one, residents: onlyB(func(r *resident) { r.Count = 1 }), asker: wholes(1), node: "n1", victims: []gpu.PodID{"b"}},
		"others' are safe":    {nodes: one, residents: onlyB(func(r *resident) { r.Ours = false }), asker: wholes(1), node: "n1", victims: []gpu.PodID{"b"}},
		"the system is safe":  {nodes: one, residents: onlyB(func(r *resident) { r.System = true }), asker: wholes(1), node: "n1", victims: []gpu.PodID{"b"}},
		"who does not run yet": {nodes: one, residents: onlyB(func(r *resident) { r.Phase = preempt.Scheduled }), asker: wholes(1),
			node: "n1", victims: []gpu.PodID{"b"}},
		"who runs, at the other stage": {nodes: one, residents: []resident{on("n1", "a", 0), on("n1", "b", 1).but(func(r *resident) { r.Phase = preempt.Scheduled })},
			change: func(w *preempt.World) { w.Rules.Stage = preempt.OfScheduled }, asker: wholes(1), node: "n1", victims: []gpu.PodID{"b"}},
		"who cannot be made anew": {nodes: one, residents: onlyB(func(r *resident) { r.Bare, r.Unmade = true, "too large" }), asker: wholes(1), node: "n1", victims: []gpu.PodID{"b"}},
		"who has nobody": {nodes: one, residents: onlyB(func(r *resident) { r.Bare = true }), change: func(w *preempt.World) { w.Rules.Bare = false },
			asker: wholes(1), node: "n1", victims: []gpu.PodID{"b"}},
		"a bare one": {nodes: one, residents: onlyB(func(r *resident) { r.Bare = true }), asker: wholes(1), node: "n1", victims: []gpu.PodID{"a"}},
		"the young": {nodes: one, residents: onlyB(func(r *resident) { r.Since = now.Add(-time.Minute) }),
			change: func(w *preempt.World) { w.Rules.MinRuntime = 2 * time.Minute }, asker: wholes(1), node: "n1", victims: []gpu.PodID{"b"}},
		"old enough": {nodes: one, residents: onlyB(func(r *resident) { r.Since = now.Add(-2 * time.Minute) }),
			change: func(w *preempt.World) { w.Rules.MinRuntime = 2 * time.Minute }, asker: wholes(1), node: "n1", victims: []gpu.PodID{"a"}},
		"kept by a budget": {nodes: one, residents: full, change: func(w *preempt.World) { w.Blocked = map[gpu.PodID]time.Time{"a": now.Add(1)} },
			asker: wholes(1), node: "n1", victims: []gpu.PodID{"b"}},
		"kept no more": {nodes: one, residents: full, change: func(w *preempt.World) { w.Blocked = map[gpu.PodID]time.Time{"a": now} },
			asker: wholes(1), node: "n1", victims: []gpu.PodID{"a"}},
		"ended for the same one lately": {nodes: one, residents: full, asker: wholes(1), node: "n1", victims: []gpu.PodID{"b"},
			change: func(w *preempt.World) {
				w.History = []preempt.Eviction{{By: "high", Of: "a", At: now.Add(-9 * time.Minute)}}
			}},
		"ended it lately": {nodes: one, residents: full, asker: wholes(1), node: "n1", victims: []gpu.PodID{"b"},
			change: func(w *preempt.World) {
				w.History = []preempt.Eviction{{By: "a", Of: "high", At: now.Add(-9 * time.Minute)}}
			}},
		"ended for it long ago": {nodes: one, residents: full, asker: wholes(1), node: "n1", victims: []gpu.PodID{"a"},
			change: func(w *preempt.World) {
				w.History = []preempt.Eviction{{By: "high", Of: "a", At: now.Add(-10 * time.Minute)}}
			}},
		"enough of the tenant within the hour": {nodes: one, residents: full, asker: wholes(1), want: preempt.Hopeless, change: func(w *preempt.World) {
			w.Rules.PerHour, w.History = 1, []preempt.Eviction{{Tenant: "red", At: now.Add(-59 * time.Minute)}}
		}},
		"another hour": {nodes: one, residents: full, asker: wholes(1), node: "n1", victims: []gpu.PodID{"a"}, change: func(w *preempt.World) {
			w.Rules.PerHour, w.History = 1, []preempt.Eviction{{Tenant: "red", At: now.Add(-time.Hour)}, {Tenant: "blue", At: now}}
		}},
		"no more at once than within the hour": {nodes: one, residents: full, asker: wholes(2), want: preempt.Hopeless,
			change: func(w *preempt.World) { w.Rules.PerHour = 1 }},

		"who is not needed is spared": {nodes: one, asker: wholes(1), node: "n1", victims: []gpu.PodID{"b"},
			residents: []resident{sliceOn("n1", "a", 0, 3), sliceOn("n1", "x", 0, 3).priority(60), on("n1", "b", 1).priority(20)}},
		"a slice fits where one of three goes": {nodes: []ledger.Facts{facts("n1", 1)}, asker: slice(3), node: "n1", victims: []gpu.PodID{"c"},
			residents: []resident{sliceOn("n1", "a", 0, 3).age(3), sliceOn("n1", "b", 0, 3).age(2), sliceOn("n1", "c", 0, 3).age(1)}},
		"tenants that may not sit together": {nodes: []ledger.Facts{facts("n1", 1)}, asker: slice(3), node: "n1", victims: []gpu.PodID{"b"},
			residents: []resident{sliceOn("n1", "b", 0, 3).but(func(r *resident) { r.Namespace = "blue" })}},
		"processors alone": {nodes: one, asker: asking(), node: "n1", victims: []gpu.PodID{"a"},
			residents: []resident{on("n1", "a", 0).but(func(r *resident) { r.cpu = 7500 })}},
		"processors besides a free card": {nodes: one, asker: wholes(1), node: "n1", victims: []gpu.PodID{"a"},
			residents: []resident{on("n1", "a", 0).but(func(r *resident) { r.cpu = 7500 })}},
		"the number of pods": {nodes: []ledger.Facts{func() ledger.Facts { f := facts("n1", 2); f.Pods = 1; return f }()}, residents: full[:1],
			asker: wholes(1), node: "n1", victims: []gpu.PodID{"a"}},
		"a quota that the victim's going leaves room in": {nodes: one, residents: full[:1], rules: town{devices: map[string]int64{"red": 1}},
			asker: wholes(1), node: "n1", victims: []gpu.PodID{"a"}},
		"a quota that nobody's going leaves room in": {nodes: one, asker: wholes(1), rules: town{devices: map[string]int64{"red": 0}}, want: preempt.Hopeless,
			residents: []resident{on("n1", "a", 0, 1).but(func(r *resident) { r.Namespace = "blue" })}},
		"kube-scheduler keeps it off": {nodes: one, residents: full, asker: wholes(1), want: preempt.Hopeless,
			change: func(w *preempt.World) { w.Suits = func(*preempt.Asker, gpu.NodeID) bool { return false } }},
		"nothing is known of its hold": {nodes: one, residents: []resident{on("n1", "a", 0).but(func(r *resident) { r.lost = true }), on("n1", "b", 0, 1).priority(60)},
			asker: wholes(1), want: preempt.Hopeless},

		"the node with fewest victims": {nodes: []ledger.Facts{facts("n1", 1), facts("n2", 1)}, asker: wholes(1), node: "n2", victims: []gpu.PodID{"b"},
			residents: []resident{sliceOn("n1", "a", 0, 3), sliceOn("n1", "c", 0, 3), on("n2", "b", 0).priority(40)}},
		"the node with lesser victims": {nodes: []ledger.Facts{facts("n1", 1), facts("n2", 1)}, asker: wholes(1), node: "n2", victims: []gpu.PodID{"b"},
			residents: []resident{on("n1", "a", 0).priority(11), on("n2", "b", 0)}},
		"the first of equal nodes": {nodes: []ledger.Facts{facts("n1", 1), facts("n2", 1)}, asker: wholes(1), node: "n1", victims: []gpu.PodID{"b"},
			residents: []resident{on("n2", "a", 0), on("n1", "b", 0)}},
		"11 small pods, one card": {nodes: []ledger.Facts{facts("n1", 11)}, asker: wholes(1), node: "n1", victims: []gpu.PodID{"k"}, residents: eleven()},

		"a unit goes whole": {nodes: one, residents: []resident{full[0].unit("u"), full[1].unit("u")}, asker: wholes(1), node: "n1", victims: []gpu.PodID{"a", "b"}},
		"a unit counts wherever it is": {nodes: []ledger.Facts{facts("n1", 1), facts("n2", 1), facts("n3", 1)}, asker: wholes(1), node: "n3", victims: []gpu.PodID{"c"},
			residents: []resident{on("n1", "a", 0).unit("u"), on("n2", "b", 0).unit("u"), on("n3", "c", 0).priority(30)}},
		"a unit on two nodes": {nodes: []ledger.Facts{facts("n1", 1), facts("n2", 1)}, asker: wholes(1), node: "n1", victims: []gpu.PodID{"b", "a"},
			residents: []resident{on("n1", "a", 0).unit("u").priority(11), on("n2", "b", 0).unit("u")}},
		"one member of a unit is exempt": {nodes: []ledger.Facts{facts("n1", 1), facts("n2", 1)}, asker: wholes(1), want: preempt.Hopeless,
			residents: []resident{on("n1", "a", 0).unit("u"), on("n2", "b", 0).unit("u").but(func(r *resident) { r.Type = gpu.Training })}},
		"one member of a unit is of higher priority": {nodes: []ledger.Facts{facts("n1", 1), facts("n2", 1)}, asker: wholes(1), want: preempt.Hopeless,
			residents: []resident{on("n1", "a", 0).unit("u"), on("n2", "b", 0).unit("u").priority(50)}},

		"waits for who is going":         {nodes: one, residents: []resident{full[0], full[1].ending()}, asker: wholes(1), want: preempt.Waits},
		"waits rather than end a second": {nodes: []ledger.Facts{facts("n1", 3)}, residents: []resident{full[0].ending(), full[1], on("n1", "c", 2)}, asker: wholes(2), want: preempt.Waits},
		"does not wait for ever": {nodes: one, residents: []resident{on("n1", "a", 0).ending().but(func(r *resident) { r.Due = now.Add(-time.Hour) }), full[1]},
			asker: wholes(1), node: "n1", victims: []gpu.PodID{"b"}},
		"does not wait for hours": {nodes: one, residents: []resident{on("n1", "a", 0).ending().but(func(r *resident) { r.Due = now.Add(time.Hour) }), full[1]},
			asker: wholes(1), node: "n1", victims: []gpu.PodID{"b"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := cluster{tc.nodes, tc.residents, tc.rules}
			w := c.world(c.books())
			if tc.change != nil {
				tc.change(w)
			}
			plan, got := (&preempt.Planner{}).Plan(w, &tc.asker)
			if got != tc.want {
				t.Fatalf("outcome %d, want %d", got, tc.want)
			}
			if got != preempt.Planned {
				return
			}
			mustHold(t, w, &plan)
			if diff := cmp.Diff(tc.victims, ids(plan.Victims)); diff != "" || plan.Placement.Node != tc.node {
				t.Errorf("on %s, victims (-want +got):\n%s", plan.Placement.Node, diff)
			}
			if diff := cmp.Diff(tc.victims, plan.IDs()); diff != "" {
				t.Errorf("IDs (-want +got):\n%s", diff)
			}
		})
	}
}

// eleven pods on a card each, the last one the latest.
func eleven() (all []resident) {
	for i := range 11 {
		all = append(all, on("n1", gpu.PodID("abcdefghijk"[i:i+1]), i).age(60-i).but(func(r *resident) { r.cpu = 100 }))
	}
	return all
}
