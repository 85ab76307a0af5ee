package soak

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// found are the violations of each kind.
type found struct{ Oversold, Neighbours, Overquota int64 }

// scene is a truth in which things happen one after the other, or at once.
type scene struct{ *truth }

// town: red and green share with blue, not with one another; "alone" is of no
// Tenant, "torn" of two. red has 3 devices and 700 MiB.
func town() scene {
	w := tenancy.World{
		Tenants: []tenancy.Tenant{
			{Name: "red", Groups: []string{"g"}, Limits: []gpu.Limit{
				{Name: "cards", Measure: gpu.Devices, Most: 3}, {Name: "memory", Measure: gpu.Memory, Vendor: gpu.Nvidia, Most: 700},
			}},
			{Name: "blue", Groups: []string{"g", "h"}}, {Name: "green", Groups: []string{"h"}}, {Name: "off", Inactive: true},
		},
		Namespaces: []tenancy.Namespace{
			{Name: "r1", Claims: []string{"red"}}, {Name: "r2", Claims: []string{"red", "red"}}, {Name: "b", Claims: []string{"blue"}},
			{Name: "g", Claims: []string{"green"}}, {Name: "o", Claims: []string{"off"}}, {Name: "alone"}, {Name: "torn", Claims: []string{"red", "blue"}},
			{Name: "lost", Claims: []string{"nobody"}},
		},
		Quotas: []tenancy.Quota{{Namespace: "b", Name: "whole", Limits: []gpu.Limit{{Name: "gpu", Measure: gpu.WholeCards, Most: 0}}}},
	}
	cards := map[gpu.CardID]*gpu.Card{}
	for _, c := range facts(0, "", 0).Cards {
		cards[c.ID] = &c
	}
	return scene{newTruth(cards, newEra(w, map[gpu.NodeID]string{"node-for-red": "red", "node-for-alone": "alone"}))}
}

// placed is a pod of the namespace with a share of the card of that number.
func placed(namespace string, card int, share gpu.Share) gpu.Placement {
	c := facts(0, "", 0).Cards[card]
	share.Card, share.Vendor = c.ID, c.Vendor
	return gpu.Placement{Namespace: namespace, Node: "node-0", Grants: []gpu.Grant{{Shares: []gpu.Share{share}}}}
}

func mib(n gpu.MiB) gpu.Share { return gpu.Share{Memory: n} }

// binds is a bind from its start to its end.
func (s scene) binds(name gpu.PodID, p gpu.Placement) {
	s.ends(s.begin(), name, p)
}

func (s scene) ends(b body, name gpu.PodID, p gpu.Placement) {
	p.Pod = name
	s.enter(s.decided(b, p))
}

func (s scene) forces(name gpu.PodID, p gpu.Placement) {
	p.Pod = name
	b := newBody(p)
	b.forced = true
	s.enter(b)
}

// changes has another world come, made from the one before.
func (s scene) changes(f func(*tenancy.World)) {
	w := s.now().world
	w.Tenants = append([]tenancy.Tenant(nil), w.Tenants...)
	f(&w)
	s.announce(newEra(w, s.now().labels))
	s.come()
}

func TestTruthFinds(t *testing.T) {
	apart := func(w *tenancy.World) { w.Tenants[1].Groups = nil }
	on := func(node gpu.NodeID, p gpu.Placement) gpu.Placement { p.Node = node; return p }
	tests := map[string]struct {
		do   func(s scene)
		want found
	}{
		"nothing where all is well": {do: func(s scene) {
			s.binds("a", placed("r1", 0, mib(300)))
			s.binds("b", placed("b", 0, mib(300)))
			s.binds("c", placed("r2", 1, mib(300)))
			s.binds("d", placed("alone", 2, gpu.Share{Memory: 1000, Cores: 100, Exclusive: true}))
		}},
		"too much memory":  {func(s scene) { s.binds("a", placed("b", 0, mib(500))); s.binds("b", placed("b", 0, mib(401))) }, found{Oversold: 1}},
		"too much compute": {func(s scene) { s.binds("a", placed("b", 0, gpu.Share{Cores: 101})) }, found{Oversold: 1}},
		"too many": {func(s scene) {
			for _, id := range []gpu.PodID{"a", "b", "c", "d", "e"} {
				s.binds(id, placed("b", 0, mib(1)))
			}
		}, found{Oversold: 1}},
		"beside a whole one": {func(s scene) {
			s.binds("a", placed("alone", 0, gpu.Share{Exclusive: true}))
			s.binds("b", placed("alone", 0, mib(1)))
		}, found{Oversold: 1}},
		"room that has been left": {do: func(s scene) {
			s.binds("a", placed("b", 0, mib(500)))
			s.leave("a")
			s.binds("b", placed("b", 0, mib(900)))
		}},
		"room that an orphan still has": {func(s scene) {
			s.binds("a", placed("b", 0, mib(500)))
			s.orphan("a", time.Unix(3, 0))
			s.endOrphans(func(b *body) bool { return b.until.Unix() <= 2 })
			s.binds("b", placed("b", 0, mib(900)))
		}, found{Oversold: 1}},
		"beside somebody of no common group": {func(s scene) { s.binds("a", placed("r1", 0, mib(1))); s.binds("b", placed("g", 0, mib(1))) }, found{Neighbours: 1}},
		"a third between two": {func(s scene) {
			s.binds("a", placed("r1", 0, mib(1)))
			s.binds("b", placed("b", 0, mib(1)))
			s.binds("c", placed("g", 0, mib(1)))
		}, found{Neighbours: 1}},
		"whom two claim, beside its own": {func(s scene) { s.binds("a", placed("torn", 0, mib(1))); s.binds("b", placed("torn", 0, mib(1))) }, found{Neighbours: 1}},
		"two who have come at once": {func(s scene) {
			one, other := s.begin(), s.begin()
			s.ends(one, "a", placed("r1", 0, mib(1)))
			s.ends(other, "b", placed("g", 0, mib(1)))
		}, found{Neighbours: 1}},
		"on a divided card": {func(s scene) {
			s.binds("a", placed("r1", 0, mib(1)))
			s.binds("b", placed("b", 0, mib(1)))
			s.changes(apart)
			s.binds("c", placed("b", 0, mib(1)))
		}, found{Neighbours: 1}},
		"not who was there before": {do: func(s scene) {
			s.binds("a", placed("r1", 0, mib(1)))
			s.binds("b", placed("b", 0, mib(1)))
			s.changes(apart)
		}},
		"not who was decided on before": {do: func(s scene) {
			s.binds("a", placed("r1", 0, mib(1)))
			b := s.begin()
			s.changes(apart)
			s.ends(b, "b", placed("b", 0, mib(1)))
		}},
		"who is on another's node": {func(s scene) { s.binds("a", on("node-for-red", placed("b", 0, mib(1)))) }, found{Neighbours: 1}},
		"not who is on its own": {do: func(s scene) {
			s.binds("a", on("node-for-red", placed("r2", 0, mib(1))))
			s.binds("b", on("node-for-alone", placed("alone", 1, mib(1))))
		}},
		"whose namespace is closed":       {func(s scene) { s.binds("a", placed("o", 0, mib(1))) }, found{Overquota: 1}},
		"whose namespace is not there":    {func(s scene) { s.binds("a", placed("unheard-of", 0, mib(1))) }, found{Overquota: 1}},
		"whose tenant does not exist":     {func(s scene) { s.binds("a", placed("lost", 0, mib(1))) }, found{Overquota: 1}},
		"past a namespace's quota":        {func(s scene) { s.binds("a", placed("b", 0, gpu.Share{Exclusive: true})) }, found{Overquota: 1}},
		"past a tenant's, from two sides": {func(s scene) { s.binds("a", placed("r1", 0, mib(400))); s.binds("b", placed("r2", 1, mib(301))) }, found{Overquota: 1}},
		"past that of either of two who claim it": {func(s scene) {
			s.binds("a", placed("r1", 0, mib(400)))
			s.binds("b", placed("torn", 1, mib(301)))
		}, found{Overquota: 1}},
		"two past a limit at once": {func(s scene) {
			one, other := s.begin(), s.begin()
			s.ends(one, "a", placed("r1", 0, mib(400)))
			s.ends(other, "b", placed("r2", 1, mib(301)))
		}, found{Overquota: 1}},
		"not what a limit was lowered under": {do: func(s scene) {
			s.binds("a", placed("r1", 0, mib(400)))
			s.changes(func(w *tenancy.World) {
				w.Tenants[0].Limits = []gpu.Limit{{Name: "cards", Measure: gpu.Devices, Most: 0}}
			})
		}},
		"what is taken of it then": {func(s scene) {
			s.binds("a", placed("r1", 0, mib(400)))
			s.changes(func(w *tenancy.World) {
				w.Tenants[0].Limits = []gpu.Limit{{Name: "cards", Measure: gpu.Devices, Most: 1}}
			})
			s.binds("b", placed("r1", 1, mib(1)))
		}, found{Overquota: 1}},
		"not what somebody else has bound":  {do: func(s scene) { s.forces("a", placed("o", 0, mib(950))) }},
		"nor beside it, if nobody knew yet": {do: func(s scene) { s.forces("a", placed("g", 0, mib(900))); s.binds("b", placed("r1", 0, mib(1))) }},
		"but beside it, since it is known": {func(s scene) {
			s.forces("a", placed("g", 0, mib(900)))
			s.learn("a")
			s.binds("b", placed("r1", 0, mib(1)))
		}, found{Oversold: 1, Neighbours: 1}},
		"not a pod without cards": {do: func(s scene) { s.binds("a", gpu.Placement{Namespace: "o", Node: "node-for-red"}) }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := town()
			tc.do(s)
			if diff := cmp.Diff(tc.want, found{s.oversold, s.neighbours, s.overquota}); diff != "" {
				t.Errorf("found (-want +got):\n%s%v", diff, s.wrong)
			}
		})
	}
}

func TestResultIsTheLastLine(t *testing.T) {
	r := Result{Ops: 3, Pods: 2}
	if got := r.String(); got != "soak: ops=3 pods=2 oversold=0 neighbours=0 overquota=0 leaked=0" || !r.OK() {
		t.Errorf("%s, ok: %t", got, r.OK())
	}
	for _, r := range []Result{{Oversold: 1}, {Neighbours: 1}, {Overquota: 1}, {Leaked: 1}} {
		if r.OK() {
			t.Errorf("%s is taken for well", r)
		}
	}
}
