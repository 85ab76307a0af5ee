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

// find finds cards for every ask. Where links are in the way alone, the reason is
// that of links.
func find(c *pipeline.Cycle, n *pipeline.Candidate) ([]gpu.Grant, pipeline.Verdict) {
	if !n.Linked {
		return look(c, n)
	}
	grants, v := look(c, n)
	if v.OK() {
		return grants, v
	}
	anyhow := pipeline.Candidate{Node: n.Node, Open: n.Open, JudgeOnly: true}
	if _, v := look(c, &anyhow); !v.OK() {
		return nil, v
	}
	return nil, unlinked(c, n)
}

func look(c *pipeline.Cycle, n *pipeline.Candidate) ([]gpu.Grant, pipeline.Verdict) {
	asks := c.Request.Asks
	switch {
	case len(n.Node.Cards) == 0:
		return nil, pipeline.Verdict{Reason: gpu.NodeNotRegistered}
	case len(asks) == 1: // nearly every pod, on every node: no search
		var room [gpu.MostCards]int // on the stack
		cards := first(&asks[0], n, room[:0])
		switch {
		case cards == nil:
			return nil, explain(c, n)
		case n.JudgeOnly:
			return nil, pipeline.Verdict{}
		}
		return []gpu.Grant{grant(&asks[0], n.Node, cards)}, pipeline.Verdict{}
	}
	s := newSearch(c, n)
	switch {
	case !s.solve(0):
		return nil, explain(c, n)
	case n.JudgeOnly:
		return nil, pipeline.Verdict{}
	}
	return s.grants(n.Node), pipeline.Verdict{}
}

// first returns the first open cards that may go together and can take the ask,
// nothing else of the pod being on them; nil where there are too few.
func first(ask *gpu.Ask, n *pipeline.Candidate, got []int) []int {
	for at, i := range n.Open {
		lead := deskOf(n, i)
		if !ask.SuitsVendor(&lead.card.Card) || tried(&lead, ask, n, at) {
			continue
		}
		got = got[:0]
		for _, j := range n.Open[at:] {
			if d := deskOf(n, j); !lead.with(&d, ask) || !ask.Suits(&d.card.Card) || d.check(ask) != lackNothing {
				continue
			}
			if got = append(got, j); len(got) == ask.Count {
				return got
			}
		}
	}
	return nil
}

// tried reports whether the card was looked at with the one before it.
func tried(d *desk, ask *gpu.Ask, n *pipeline.Candidate, at int) bool {
	if at == 0 {
		return false
	}
	before := deskOf(n, n.Open[at-1])
	return before.with(d, ask)
}
