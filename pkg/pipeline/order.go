package pipeline

import (
	"cmp"
	"slices"

	"heteroflow.io/heteroflow/pkg/ledger"
)

// Sort orders the open cards by key, the smallest first; of equal ones the card
// with less memory (so that bigger ones stay for those who need them), then
// with fewer holders, then by UUID, so that the order is always the same.
func (n *Candidate) Sort(key func(*ledger.Card) float64) {
	cards := n.Node.Cards
	slices.SortFunc(n.Open, func(i, j int) int {
		a, b := &cards[i], &cards[j]
		return cmp.Or(
			cmp.Compare(key(a), key(b)),
			cmp.Compare(a.Memory, b.Memory),
			cmp.Compare(len(a.Holders), len(b.Holders)),
			cmp.Compare(a.ID, b.ID),
		)
	})
}
