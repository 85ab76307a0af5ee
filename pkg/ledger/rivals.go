package ledger

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Rivals returns who is on a card together with the pod that may not be: where
// the pod could not have come had the others been there first, they are its
// rivals. What a card is closed, fenced or claimed for besides does not matter. None
// if the pod holds nothing, or no more than a claim.
func (l *Ledger) Rivals(pod gpu.PodID) []gpu.PodID {
	h, ok := l.Hold(pod)
	if !ok || h.State == Claimed {
		return nil
	}
	n, ok := l.Snapshot().Node(h.Node)
	if !ok {
		return nil
	}
	var rivals []gpu.PodID
	for _, u := range h.Uses() {
		c := n.card(u.Card)
		if c == nil {
			continue
		}
		others := c.without(pod)
		if others.admit(h.Tenant, u.Use, n.Boundary) == nil {
			continue
		}
		for _, o := range others.Holders {
			if !slices.Contains(rivals, o.Pod) {
				rivals = append(rivals, o.Pod)
			}
		}
	}
	return rivals
}

// without returns the card as it is for who is on it, open, without the pod.
func (c *Card) without(pod gpu.PodID) Card {
	others := Card{Card: c.Card}
	for _, h := range c.Holders {
		if h.Pod != pod {
			others.Holders = append(others.Holders, h)
			others.Used = others.Used.Plus(h.Use)
		}
	}
	return others
}
