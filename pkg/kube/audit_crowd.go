package kube

import (
	"errors"
	"fmt"
	"strings"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

var errCrowded = errors.New("a card is held by more than it has room for")

// crowds finds the cards that are held by more than they have room for, however
// that came about: two that were bound by different leaders, or past us all, or a
// card that has shrunk. They take nobody new, and nobody is ended for them: who of
// them is right cannot be told.
func (a *Audit) crowds(now *findings) {
	for _, n := range a.Books.Ledger.Snapshot().Nodes() {
		for i := range n.Cards {
			c := &n.Cards[i]
			if !crowded(c) {
				continue
			}
			now.noteAs(cardKey(n.ID, c.ID), finding{node: n.ID, card: c.ID, text: textCrowd(n, c)})
		}
	}
}

// cardKey is a card among the pods of the findings. No UID has a slash.
func cardKey(node gpu.NodeID, card gpu.CardID) gpu.PodID {
	return gpu.PodID(string(node) + "/" + string(card))
}

// crowded reports whether those who are on the card could not all have been let
// onto it, even without a reserve. Whose tenants they are does not matter here.
func crowded(c *ledger.Card) bool {
	switch {
	case len(c.Holders) < 2:
		return false
	case c.Used.Exclusive:
		return true
	}
	return c.Used.Memory > max(c.Memory, c.Usable) || c.Used.Cores > max(c.Cores, c.UsableCores) || c.Used.Slots > c.MaxSlices
}

// textCrowd is the same as long as the same pods are on the card.
func textCrowd(n *ledger.Node, c *ledger.Card) string {
	names := make([]string, len(c.Holders))
	for i, h := range c.Holders {
		pod := n.Hold(h.Pod)
		names[i] = pod.Namespace + "/" + pod.Name
	}
	return fmt.Sprintf("card %s is held by %d pods that have no room on it together, %d of %d MiB and %d of %d percent: %s",
		c.ID, len(c.Holders), c.Used.Memory, c.Memory, c.Used.Cores, c.Cores, strings.Join(names, ", "))
}
