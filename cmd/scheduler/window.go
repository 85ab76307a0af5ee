package main

import (
	"time"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/controllers/window"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/metrics"
)

// sleeper is what has inference services sleep outside their windows.
func (p *program) sleeper(c clients, counts *metrics.Metrics) *window.Controller {
	return &window.Controller{
		Groups: p.cluster.TaskGroups(), Changed: p.cluster.TaskGroupsChanged,
		Client:  window.GroupAPI{Client: c.kinds.HeteroflowV1alpha1()},
		Targets: &window.TargetAPI{Client: c.deeds, Dynamic: c.any, Now: time.Now},
		Group:   codec.GroupOf, Members: p.members,
		Encode: codec.EncodeClaim, Decode: codec.DecodeMember,
		Inactive: func(namespace string) bool {
			directory := p.directory()
			if directory == nil { // nobody knows
				return true
			}
			_, closed := directory.Owner(namespace)
			return closed != ""
		},
		Budget: func() ledger.Budget { return p.directory() },
		Tell:   p.events.Tell, Meter: counts, Now: time.Now,
	}
}

// members are what those of the group hold that have a node.
func (p *program) members(group gpu.GroupID) (all []gpu.Placement) {
	s := p.books.Ledger.Snapshot()
	for _, id := range s.Members(group) {
		n, known := s.Node(id)
		if !known {
			continue
		}
		for _, h := range n.Holds {
			if h.Group == group && (h.State == ledger.Bound || h.State == ledger.Draining) {
				all = append(all, h.Placement)
			}
		}
	}
	return all
}
