// Package topology is the plugin `topology`: a node where the pod wants to be, and
// near those it works with.
//
// It rates a node 50; 5 more in the region that the pod prefers, 15 in the zone, 10
// in the rack, each for itself. For a pod of a group it is 10 more in the rack of a
// member that is placed, 5 in its zone. What is not known of a node adds nothing,
// and takes nothing off. For other pods it does not count. It has no arguments and
// refuses nothing.
package topology

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/topology"
)

// Name is the plugin's name in configuration, metrics and documents.
const Name = "topology"

// Plugin implements pipeline.Score.
type Plugin struct{}

var (
	_ pipeline.Score     = Plugin{}
	_ pipeline.Concerned = Plugin{}
)

// Name returns "topology".
func (Plugin) Name() string { return Name }

// Concerns reports whether the pod would rather be anywhere.
func (Plugin) Concerns(r *gpu.Request) bool {
	return r.Region != "" || r.Zone != "" || r.Rack != "" || r.Group != ""
}

// What being at the same place is worth.
const (
	wishedRegion = 5
	wishedZone   = 15
	wishedRack   = 10
	peersZone    = 5
	peersRack    = 10
)

// Score is 50 to 95.
func (Plugin) Score(c *pipeline.Cycle, n *ledger.Node) float64 {
	r := c.Request
	wished := topology.Matching(topology.Location{Region: r.Region, Zone: r.Zone, Rack: r.Rack}, n.Location)
	peers := c.Peers.Near(n.Location)
	return pipeline.Neutral +
		when(wished.Region, wishedRegion) + when(wished.Zone, wishedZone) + when(wished.Rack, wishedRack) +
		when(peers.Zone, peersZone) + when(peers.Rack, peersRack)
}

func when(is bool, worth float64) float64 {
	if is {
		return worth
	}
	return 0
}
