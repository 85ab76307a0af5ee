package engine

import (
	"slices"
	"sync"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// catalogue lists the kinds of cards that a cluster has: there are tens of
// thousands of cards, and few kinds. A kind that is there no more stays in it until
// the number of nodes changes. The zero value is ready for use.
type catalogue struct {
	mu    sync.Mutex
	seen  ledger.Snapshot // guarded by mu
	kinds []*gpu.Card     // guarded by mu; one of each kind, never edited
}

// of returns a card of every kind that there is, whoever is on it.
func (c *catalogue) of(in ledger.Snapshot) []*gpu.Card {
	c.mu.Lock()
	defer c.mu.Unlock()
	if in.Len() != c.seen.Len() {
		c.seen, c.kinds = ledger.Snapshot{}, nil
	}
	for _, n := range in.Since(c.seen) {
		for i := range n.Cards {
			card := &n.Facts.Cards[i]
			if !slices.ContainsFunc(c.kinds, func(k *gpu.Card) bool { return alike(k, card) }) {
				c.kinds = append(c.kinds, card)
			}
		}
	}
	c.seen = in
	return c.kinds
}

// alike reports whether any ask takes the same of two cards.
func alike(a, b *gpu.Card) bool {
	return a.Vendor == b.Vendor && a.Memory == b.Memory && a.Usable == b.Usable && a.Cores == b.Cores &&
		a.Mode == b.Mode && a.Isolation == b.Isolation && a.Model == b.Model && a.Plugin == b.Plugin
}
