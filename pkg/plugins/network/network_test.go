package network

import (
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/tenancy"
	"heteroflow.io/heteroflow/pkg/topology"
)

func TestScore(t *testing.T) {
	rack := func(zone, name string) topology.Location { return topology.Location{Zone: zone, Rack: name} }
	tests := map[string]struct {
		node  topology.Location
		peers []topology.Location
		want  float64
	}{
		"no group, or the first of it":    {rack("z", "r1"), nil, 50},
		"in a member's rack":              {rack("z", "r1"), []topology.Location{rack("z", "r1")}, 100},
		"in another":                      {rack("z", "r2"), []topology.Location{rack("z", "r1")}, 40},
		"in that of one of two":           {rack("z", "r2"), []topology.Location{rack("z", "r1"), rack("z", "r2")}, 100},
		"of that name in another zone":    {rack("y", "r1"), []topology.Location{rack("z", "r1")}, 40},
		"zones are not known":             {rack("", "r1"), []topology.Location{rack("z", "r1")}, 100},
		"the node's rack is not known":    {rack("z", ""), []topology.Location{rack("z", "r1")}, 50},
		"the members' rack is not known":  {rack("z", "r1"), []topology.Location{rack("z", "")}, 50},
		"that of one of them":             {rack("z", "r2"), []topology.Location{rack("z", ""), rack("z", "r1")}, 40},
		"under one switch, racks unknown": {topology.Location{Switch: "s"}, []topology.Location{{Switch: "s"}}, 100},
		"under one switch in two racks":   {topology.Location{Switch: "s", Rack: "r1"}, []topology.Location{{Switch: "s", Rack: "r2"}}, 100},
		"a rack here, a switch there":     {rack("z", "r1"), []topology.Location{{Zone: "z", Switch: "s"}}, 50},
		"under another":                   {topology.Location{Switch: "s"}, []topology.Location{{Switch: "t"}}, 40},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := ledger.New(tenancy.Separate{})
			for i, place := range tc.peers {
				id := gpu.NodeID(rune('a' + i))
				l.SetNode(ledger.Facts{ID: id, Location: place})
				l.Confirm(gpu.Placement{Pod: gpu.PodID(id), Node: id, Group: "g"})
			}
			c := &pipeline.Cycle{Request: &gpu.Request{Group: "g"}, Peers: pipeline.PeersOf("g", l.Snapshot())}
			if got := (Plugin{}).Score(c, &ledger.Node{Facts: ledger.Facts{Location: tc.node}}); got != tc.want {
				t.Errorf("score %v, want %v", got, tc.want)
			}
		})
	}
}
