// Package network is the plugin `network`: the members of a group under one leaf
// switch, or in one rack.
//
// It rates a node 100 if a member of the pod's group is placed under the same leaf
// switch or in the same rack, and 40 otherwise; 50 for the first of a group, and where
// neither the rack nor the switch is known both of the node and of a member. For a pod
// without a group it does not count. It has no arguments and refuses nothing.
package network

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Name is the plugin's name in configuration, metrics and documents.
const Name = "network"

// Plugin implements pipeline.Score.
type Plugin struct{}

var (
	_ pipeline.Score     = Plugin{}
	_ pipeline.Concerned = Plugin{}
)

// Name returns "network".
func (Plugin) Name() string { return Name }

// Concerns reports whether the pod has a group.
func (Plugin) Concerns(r *gpu.Request) bool { return r.Group != "" }

const (
	together = 100
	apart    = 40
)

// Score is 100 near a member, 40 away from all, and 50 where that is not known.
func (Plugin) Score(c *pipeline.Cycle, n *ledger.Node) float64 {
	if !c.Peers.Tell(n.Location) {
		return pipeline.Neutral
	}
	if near := c.Peers.Near(n.Location); near.Rack || near.Switch {
		return together
	}
	return apart
}
