package pipeline

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/topology"
)

// Choose picks the cards for an ask of those that are open to it, each of which can
// take it: as many as it wants, and what they are worth. It is false where one is as
// good as another.
type Choose func(a *gpu.Ask, open []int) (cards topology.Set, worth int, ok bool)

// Gather puts the cards first that the containers should get, one container's after
// the other's, in the order in which they are placed. The rest keeps its order.
func (n *Candidate) Gather(r *gpu.Request, choose Choose) {
	front := 0
	for _, a := range HardestFirst(r) {
		if a.Role == gpu.Init && len(r.Asks) > 1 {
			continue // goes where the others are
		}
		set := n.best(r, a, n.Open[front:], choose)
		bringForward(n.Open[front:], set)
		if a.Whole {
			front += set.Len()
		}
	}
}

// best returns the cards that the ask should get of those that are left: of one
// vendor, with numa-bind of one NUMA node, and none if too few can take it.
func (n *Candidate) best(r *gpu.Request, a *gpu.Ask, left []int, choose Choose) (cards topology.Set) {
	most, all := 0, n.Node.Cards
	with := func(i, j int) bool {
		return all[i].Vendor == all[j].Vendor && (!r.NUMABind || all[i].NUMA == all[j].NUMA)
	}
	for at, i := range left {
		if slices.ContainsFunc(left[:at], func(j int) bool { return with(i, j) }) {
			continue
		}
		var room [topology.MostCards]int
		open := room[:0]
		for _, j := range left[at:] {
			if with(i, j) && takes(&all[j], a) {
				open = append(open, j)
			}
		}
		if set, worth, ok := choose(a, open); ok && (cards == 0 || worth > most) {
			cards, most = set, worth
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
	slices.SortStableFunc(open, func(i, j int) int { return first(set.Has(i)) - first(set.Has(j)) })
}

// Available are the cards of the node that anybody could have whole.
func Available(n *ledger.Node) (set topology.Set) {
	for i := range n.Cards {
		if c := &n.Cards[i]; c.Free() && c.Healthy && !c.Cordoned {
			set |= topology.SetOf(i)
		}
	}
	return set
}

// Places returns where on the node the cards stand.
func Places(n *ledger.Node, shares []gpu.Share) (set topology.Set) {
	for i := range n.Cards {
		for k := range shares {
			if shares[k].Card == n.Cards[i].ID {
				set |= topology.SetOf(i)
			}
		}
	}
	return set
}
