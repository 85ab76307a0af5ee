package topology

import (
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/tenancy"
	"heteroflow.io/heteroflow/pkg/topology"
)

func TestScore(t *testing.T) {
	here := topology.Location{Region: "eu", Zone: "eu-1", Rack: "r7"}
	wish := func(region, zone, rack string) gpu.Request {
		return gpu.Request{Region: region, Zone: zone, Rack: rack}
	}
	tests := map[string]struct {
		node topology.Location
		asks gpu.Request
		peer *topology.Location // where a member of the pod's group is
		want float64
	}{
		"no wish":                            {here, wish("", "", ""), nil, 50},
		"nothing is known of the node":       {topology.Location{}, wish("eu", "eu-1", "r7"), nil, 50},
		"the region":                         {here, wish("eu", "", ""), nil, 55},
		"the zone":                           {here, wish("", "eu-1", ""), nil, 65},
		"the rack":                           {here, wish("", "", "r7"), nil, 60},
		"all three: the most without a peer": {here, wish("eu", "eu-1", "r7"), nil, 80},
		"each counts by itself":              {here, wish("us", "eu-1", "r8"), nil, 65},
		"none of the wishes":                 {here, wish("us", "us-1", "r8"), nil, 50},
		"the region alone is known":          {topology.Location{Region: "eu"}, wish("eu", "eu-1", "r7"), nil, 55},
		"a peer's rack":                      {here, wish("", "", ""), &here, 65},
		"a peer's zone":                      {here, wish("", "", ""), &topology.Location{Zone: "eu-1", Rack: "r8"}, 55},
		"a rack of that name in another zone": {
			here, wish("", "", ""), &topology.Location{Zone: "eu-2", Rack: "r7"}, 50,
		},
		"a peer of whom nothing is known": {here, wish("", "", ""), &topology.Location{}, 50},
		"everything":                      {here, wish("eu", "eu-1", "r7"), &here, 95},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := ledger.New(tenancy.Separate{})
			if tc.peer != nil {
				l.SetNode(ledger.Facts{ID: "peer", Location: *tc.peer})
				l.Confirm(gpu.Placement{Pod: "p", Node: "peer", Group: "g"})
			}
			c := &pipeline.Cycle{Request: &tc.asks, Peers: pipeline.PeersOf("g", l.Snapshot())}
			if got := (Plugin{}).Score(c, &ledger.Node{Facts: ledger.Facts{Location: tc.node}}); got != tc.want {
				t.Errorf("score %v, want %v", got, tc.want)
			}
		})
	}
}
