package nvlink

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/topology"
)

// Place puts the cards first that the containers should get which want several,
// one container's after the other's: in the order in which they are placed.
func (Plugin) Place(c *pipeline.Cycle, n *pipeline.Candidate) {
	if !n.Node.Links.Known() {
		return
	}
	free, front := available(n.Node), 0
	for _, a := range pipeline.HardestFirst(c.Request) {
		switch {
		case a.Role == gpu.Init && len(c.Request.Asks) > 1: // goes where the others are
		case a.Count > 1:
			set := best(c.Request, n, a, n.Open[front:], free)
			bringForward(n.Open[front:], set)
			if a.Whole {
				front += set.Len()
			}
		}
	}
}

// best returns the cards that the ask should get of those that are left: of one
// vendor, with numa-bind of one NUMA node, and none if too few can take it.
func best(r *gpu.Request, n *pipeline.Candidate, a *gpu.Ask, left []int, free topology.Set) (cards topology.Set) {
	raw, all := 0, n.Node.Cards
	for at, i := range left {
		with := func(j int) bool {
			return all[i].Vendor == all[j].Vendor && (!r.NUMABind || all[i].NUMA == all[j].NUMA)
		}
		if slices.ContainsFunc(left[:at], with) {
			continue
		}
		var room [topology.MostCards]int
		open := room[:0]
		for _, j := range left[at:] {
			if with(j) && takes(&all[j], a) {
				open = append(open, j)
			}
		}
		choice, ok := n.Node.Links.Tightest(topology.Ask{Open: open, Free: free, Count: a.Count})
		if ok && (cards == 0 || choice.Raw > raw) {
			cards, raw = choice.Cards, choice.Raw
		}
	}
	return cards
}

// takes reports whether the card has room for a device of the ask, as
// resource-filter sees it while nothing else of the pod is on the card.
func takes(c *ledger.Card, a *gpu.Ask) bool {
	if !a.Suits(&c.Card) {
		return false
	}
	if a.Whole {
		return c.TakesWhole() && c.WholeMemory() >= a.Memory && c.Free()
	}
	u := a.On(&c.Card)
	return c.TakesSlices() && u.Memory <= c.FreeMemory() && max(1, u.Cores) <= c.FreeCores() && u.Slots <= c.FreeSlots()
}

// bringForward moves the cards of the set to the front and leaves the order as it
// is otherwise.
func bringForward(open []int, set topology.Set) {
	slices.SortStableFunc(open, func(i, j int) int {
		switch {
		case set.Has(i) == set.Has(j):
			return 0
		case set.Has(i):
			return -1
		}
		return 1
	})
}
