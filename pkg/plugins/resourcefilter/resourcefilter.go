// Package resourcefilter is the plugin `resource-filter`: enough cards, memory,
// compute and slots for all containers of the pod at once.
//
// A whole card must be free; a slice needs a card that enforces its bounds and
// has the memory, the compute and a slot left. Two devices of one container are
// two cards of one vendor; slices of different containers may land on one card;
// an ordinary init container prefers cards that the pod holds anyway. It
// refuses with NodeNotRegistered (no cards at all), InsufficientGPUCount,
// InsufficientGPUMemory, InsufficientGPUCores, InsufficientGPUSlots or
// IsolationUnavailable, whichever took the last card needed; a pod with
// numa-bind with NUMAUnsatisfied where it would fit but for that. It has no
// arguments and cannot be disabled.
//
// The search is exact for pods with one asking container, and for others until
// it has tried 2,000 different arrangements of a node (fewer where more than 200
// nodes share the time); cards with the same room count as one.
package resourcefilter

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Name is the plugin's name in configuration, metrics and documents.
const Name = "resource-filter"

// Plugin implements pipeline.Pack.
type Plugin struct{}

var _ pipeline.Pack = Plugin{}

// Name returns "resource-filter".
func (Plugin) Name() string { return Name }

// Pack finds cards for every ask, or says what there is too little of.
func (Plugin) Pack(c *pipeline.Cycle, n *pipeline.Candidate) ([]gpu.Grant, pipeline.Verdict) {
	if c.Request.NUMABind {
		return packOnOneNUMA(c, n)
	}
	return find(c, n)
}

func find(c *pipeline.Cycle, n *pipeline.Candidate) ([]gpu.Grant, pipeline.Verdict) {
	asks := c.Request.Asks
	switch {
	case len(n.Node.Cards) == 0:
		return nil, pipeline.Verdict{Reason: gpu.NodeNotRegistered}
	case n.JudgeOnly && len(asks) == 1: // nearly every pod, on every node: no search, no memory
		if fits(&asks[0], n) {
			return nil, pipeline.Verdict{}
		}
		return nil, explain(c, n)
	}
	s := newSearch(c, n)
	switch {
	case !s.solve(0):
		return nil, explain(c, n)
	case n.JudgeOnly:
		return nil, pipeline.Verdict{}
	}
	return s.grants(), pipeline.Verdict{}
}

// fits reports whether enough cards of one vendor can take an ask that is the
// only one.
func fits(ask *gpu.Ask, n *pipeline.Candidate) bool {
	cards := n.Node.Cards
	for at, i := range n.Open {
		v := cards[i].Vendor
		if !ask.SuitsVendor(&cards[i].Card) || at > 0 && v == cards[n.Open[at-1]].Vendor {
			continue // or counted with the one before
		}
		able := 0
		for _, j := range n.Open[at:] {
			if d := (desk{card: &cards[j]}); cards[j].Vendor == v && ask.Suits(&cards[j].Card) && d.check(ask) == lackNothing {
				able++
			}
		}
		if able >= ask.Count {
			return true
		}
	}
	return false
}
