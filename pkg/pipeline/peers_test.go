package pipeline

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/topology"
)

// anyone is rules under which nobody is in another's way.
type anyone struct{ ledger.Rules }

func (anyone) Owner(string) (gpu.TenantID, gpu.Reason) { return "t", "" }
func (anyone) Accounts(string) []gpu.Account           { return nil }
func (anyone) Boundary() ledger.Boundary               { return nil }

// group is a cluster whose nodes are at these places, with a member of the group g
// on each of those nodes.
func group(t *testing.T, places map[gpu.NodeID]topology.Location, on ...gpu.NodeID) ledger.Snapshot {
	t.Helper()
	l := ledger.New(anyone{})
	for id, place := range places {
		l.SetNode(ledger.Facts{ID: id, Location: place})
	}
	for _, id := range on {
		l.Confirm(gpu.Placement{Pod: gpu.PodID("on-" + id), Node: id, Group: "g"})
	}
	return l.Snapshot()
}

func TestPeers(t *testing.T) {
	in := func(zone, rack string) topology.Location { return topology.Location{Zone: zone, Rack: rack} }
	places := map[gpu.NodeID]topology.Location{
		"n1": in("z1", "r1"), "n2": in("z1", "r1"), "n3": in("z1", "r2"), "n4": in("z2", "r1"), "n5": {}, "n6": in("", "r3"),
	}
	tests := map[string]struct {
		of   gpu.GroupID
		on   []gpu.NodeID
		near map[gpu.NodeID]topology.Shared // of nodes that are near in any way
		any  bool
		rack bool // Tell, of a rack
	}{
		"nobody is placed":           {of: "g"},
		"of another group":           {of: "h", on: []gpu.NodeID{"n1"}},
		"of no group":                {of: "", on: []gpu.NodeID{"n1"}},
		"on a node that is gone":     {of: "g", on: []gpu.NodeID{"n9"}},
		"on a node nobody has named": {of: "g", on: []gpu.NodeID{"n5"}, any: true},
		"in a rack": {of: "g", on: []gpu.NodeID{"n1"}, any: true, rack: true, near: map[gpu.NodeID]topology.Shared{
			"n1": {Zone: true, Rack: true}, "n2": {Zone: true, Rack: true}, "n3": {Zone: true}, // n4's rack is of another zone
		}},
		"in a rack of an unknown zone": {of: "g", on: []gpu.NodeID{"n6"}, any: true, rack: true, near: map[gpu.NodeID]topology.Shared{"n6": {Rack: true}}},
		"several, each near in its way": {of: "g", on: []gpu.NodeID{"n3", "n4", "n9", "n6"}, any: true, rack: true, near: map[gpu.NodeID]topology.Shared{
			"n1": {Zone: true}, "n2": {Zone: true}, "n3": {Zone: true, Rack: true}, "n4": {Zone: true, Rack: true}, "n6": {Rack: true},
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := PeersOf(tc.of, group(t, places, tc.on...))
			near := map[gpu.NodeID]topology.Shared{}
			for id, place := range places {
				if s := p.Near(place); s != (topology.Shared{}) {
					near[id] = s
				}
				if want := tc.any && slices.Contains(tc.on, id); p.On(id) != want {
					t.Errorf("On(%s) = %t", id, p.On(id))
				}
			}
			if len(tc.near) == 0 {
				tc.near = map[gpu.NodeID]topology.Shared{}
			}
			if diff := cmp.Diff(tc.near, near); diff != "" {
				t.Errorf("near (-want +got):\n%s", diff)
			}
			if tell := p.Tell(in("z1", "r9")); p.Any() != tc.any || tell != tc.rack || p.Tell(topology.Location{Zone: "z1", Switch: "s"}) {
				t.Errorf("Any %t, Tell %t", p.Any(), tell)
			}
		})
	}
}

// Found by name is as good as compared with every member, one by one.
func TestNearIsThatOfAnyMember(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	some := func(of string) string { return []string{"", of + "1", of + "2", "same"}[random.IntN(4)] }
	place := func() topology.Location {
		return topology.Location{Region: some("eu"), Zone: some("z"), Rack: some("r"), Switch: some("s")}
	}
	for range 2000 {
		places, on := map[gpu.NodeID]topology.Location{}, []gpu.NodeID{"a", "b", "c"}[:random.IntN(4)]
		for _, id := range on {
			places[id] = place()
		}
		l := place()
		var want topology.Shared
		for _, member := range places {
			s := topology.Near(member, l)
			want.Region, want.Zone, want.Rack, want.Switch = want.Region || s.Region, want.Zone || s.Zone, want.Rack || s.Rack, want.Switch || s.Switch
		}
		if got := PeersOf("g", group(t, places, on...)).Near(l); got != want {
			t.Fatalf("members at %v: near %v is %+v, want %+v", places, l, got, want)
		}
	}
}
