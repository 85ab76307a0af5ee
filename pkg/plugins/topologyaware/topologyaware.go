// Package topologyaware is the plugin `topology-aware`: the cards of one container
// should be close to each other, on whatever lies between them.
//
// It rates how close two cards are, half by their NUMA node (1 for the same), three
// tenths by how far apart they are on PCIe (1 linked or on one board, 0 on two
// sockets), two tenths by whether each can read the other's memory; what is not
// known of the two is half of its part.
//
// As a score it is 100 x the mean over all pairs of the cards that a container gets,
// and over the containers that want several; without any of them it does not count. It
// excludes spread and binpack, and goes before them where it is enabled. As a card
// policy it takes the cards that are closest, and for a whole card alone the one that
// leaves the free ones closest. It has no arguments and refuses nothing.
package topologyaware

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/topology"
)

// Name is the plugin's name in configuration, metrics and documents.
const Name = "topology-aware"

// Plugin implements pipeline.CardScore and pipeline.Place.
type Plugin struct{}

var (
	_ pipeline.CardScore = Plugin{}
	_ pipeline.Place     = Plugin{}
)

// Name returns "topology-aware".
func (Plugin) Name() string { return Name }

// Concerns reports whether any container wants several cards.
func (Plugin) Concerns(r *gpu.Request) bool { return r.AsksForSeveral() }

// Knows reports whether the node tells how its cards are joined, or their NUMA nodes.
func (Plugin) Knows(n *ledger.Node) bool {
	if n.Links.Known() {
		return true
	}
	for i := range n.Cards {
		if n.Cards[i].NUMA != gpu.NoNUMA {
			return true
		}
	}
	return false
}

// ScoreCards rates the cards that each container gets.
func (Plugin) ScoreCards(c *pipeline.Cycle, n *ledger.Node, grants []gpu.Grant) float64 {
	sum, of := 0.0, 0
	for k := range grants {
		if cards := pipeline.Places(n, grants[k].Shares); cards.Len() > 1 {
			sum += mean(n, cards)
			of++
		}
	}
	if of == 0 {
		return pipeline.Neutral
	}
	return sum / float64(of)
}

// mean is how close the cards are to each other, 0 to 100.
func mean(n *ledger.Node, cards topology.Set) float64 {
	sum, pairs := 0, 0
	for a := range cards.Places() {
		for b := range cards.Places() {
			if b < a {
				sum += int(closeness(n, b, a))
				pairs++
			}
		}
	}
	return 100 * float64(sum) / float64(pairs*closest)
}

// Place puts the cards first that the containers should get, and of others those that
// most is going on on.
func (Plugin) Place(c *pipeline.Cycle, n *pipeline.Candidate) {
	n.Sort(func(c *ledger.Card) float64 { return -pipeline.CardUsage(c) })
	free := pipeline.Available(n.Node)
	n.Gather(c.Request, func(a *gpu.Ask, open []int) (topology.Set, int, bool) {
		switch {
		case a.Count > 1:
			return together(n, open, a.Count)
		case a.Whole:
			return loneliest(n.Node, open, free)
		}
		return 0, 0, false // a slice takes no card from anybody who wants several
	})
}

// together returns the open cards that are closest, where links are demanded of one
// domain.
func together(n *pipeline.Candidate, open []int, count int) (cards topology.Set, most int, ok bool) {
	for at, i := range open {
		with := func(j int) bool { return n.Domain(i) == n.Domain(j) }
		if slices.ContainsFunc(open[:at], with) {
			continue
		}
		domain := slices.DeleteFunc(slices.Clone(open), func(j int) bool { return !with(j) })
		set, found := topology.Closest(domain, count, func(a, b int) uint16 { return closeness(n.Node, a, b) })
		if w := worth(n.Node, set); found && (!ok || w > most) {
			cards, most, ok = set, w, true
		}
	}
	return cards, most, ok
}

// worth is how close the cards are to each other, together.
func worth(n *ledger.Node, cards topology.Set) (sum int) {
	for a := range cards.Places() {
		sum += near(n, a, cards)
	}
	return sum
}

// loneliest returns the open card that the free ones miss least.
func loneliest(n *ledger.Node, open []int, free topology.Set) (card topology.Set, worth int, ok bool) {
	for _, i := range open {
		if missed := near(n, i, free); !ok || -missed > worth {
			card, worth, ok = topology.SetOf(i), -missed, true
		}
	}
	return card, worth, ok
}

// near is how close a card is to the others, together.
func near(n *ledger.Node, card int, others topology.Set) (sum int) {
	for other := range others.Places() {
		if other != card {
			sum += int(closeness(n, card, other))
		}
	}
	return sum
}
