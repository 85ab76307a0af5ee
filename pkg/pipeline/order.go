package pipeline

import (
	"cmp"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Sort orders the open cards by key, the smallest first; of equal ones the card of
// which somebody who is not in the books uses less, then the one
// with less memory (so that bigger ones stay for those who need them), then
// with fewer holders, then by UUID, so that the order is always the same.
func (n *Candidate) Sort(key func(*ledger.Card) float64) {
	cards := n.Node.Cards
	var room [gpu.MostCards]float64 // on the stack; by the card's place, each made once
	keys := room[:]
	if len(cards) > len(room) {
		keys = make([]float64, len(cards))
	}
	for _, i := range n.Open {
		keys[i] = key(&cards[i])
	}
	slices.SortFunc(n.Open, func(i, j int) int {
		if by := cmp.Compare(keys[i], keys[j]); by != 0 {
			return by
		}
		return tie(&cards[i], &cards[j])
	})
}

// tie orders cards that are equal to the policy. It looks no further than it has to: the
// free cards of a node are mostly such.
func tie(a, b *ledger.Card) int {
	if by := cmp.Compare(a.Foreign(), b.Foreign()); by != 0 {
		return by
	}
	if by := cmp.Compare(a.Memory, b.Memory); by != 0 {
		return by
	}
	return cmp.Or(cmp.Compare(len(a.Holders), len(b.Holders)), cmp.Compare(a.ID, b.ID))
}

// HardestFirst returns the asks in the order in which they are placed, the hardest first: what runs all the time before
// ordinary init containers (they go where the others are), whole before slices,
// many before few, large before small.
func HardestFirst(r *gpu.Request) []*gpu.Ask {
	asks := make([]*gpu.Ask, len(r.Asks))
	for i := range r.Asks {
		asks[i] = &r.Asks[i]
	}
	slices.SortFunc(asks, func(a, b *gpu.Ask) int {
		return cmp.Or(
			cmp.Compare(first(a.Role != gpu.Init), first(b.Role != gpu.Init)),
			cmp.Compare(first(a.Whole), first(b.Whole)),
			cmp.Compare(b.Count, a.Count),
			cmp.Compare(b.Memory, a.Memory),
			cmp.Compare(b.MemoryPercent, a.MemoryPercent),
			cmp.Compare(b.Cores, a.Cores),
			// Not the order in which they happen to be given.
			cmp.Compare(a.Number, b.Number),
			cmp.Compare(a.Container, b.Container),
		)
	})
	return asks
}
