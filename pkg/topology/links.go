package topology

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Links says how the cards of one node, by place, are joined. It is small,
// never changes, and may be shared. The zero Links knows nothing of any card.
type Links struct{ t *table }

// table is what a Links points to.
type table struct {
	known    bool
	count    int
	links    []Link   // count x count, symmetric
	weights  []uint16 // of links
	numa     []int
	domains  []Set // disjoint, together all cards; by lowest place
	domain   []Set // place -> the one of domains that it is in
	nodes    []Set // the cards of each NUMA node that has any; by lowest place
	homeless Set   // cards whose NUMA node is not known
}

// Known reports whether any source told how the cards are joined. Where none did,
// every card looks like a domain of its own, and nobody should be judged by it.
func (l Links) Known() bool { return l.t != nil && l.t.known }

// Count returns how many cards there are.
func (l Links) Count() int {
	if l.t == nil {
		return 0
	}
	return l.t.count
}

// Between returns what joins two cards; the zero Link when that is not known,
// when there are no such cards, or when both are one.
func (l Links) Between(a, b int) Link {
	if !l.has(a) || !l.has(b) {
		return Link{}
	}
	return l.t.links[a*l.t.count+b]
}

// NUMA returns the NUMA node of a card, gpu.NoNUMA if it is not known.
func (l Links) NUMA(place int) int {
	if !l.has(place) {
		return gpu.NoNUMA
	}
	return l.t.numa[place]
}

// Equal reports whether both say the same.
func (l Links) Equal(m Links) bool {
	if l.t == nil || m.t == nil {
		return l.t == m.t
	}
	return l.t.known == m.t.known && slices.Equal(l.t.links, m.t.links) && slices.Equal(l.t.numa, m.t.numa)
}

func (l Links) has(place int) bool { return place >= 0 && place < l.Count() }

// Domain returns the cards that are joined to this one, itself among them; none
// when there is no such card.
func (l Links) Domain(place int) Set {
	if !l.has(place) {
		return 0
	}
	return l.t.domain[place]
}

// Room returns how many of these cards are in one domain, at most. As a card
// alone is a domain too, it is 1 wherever there are cards.
func (l Links) Room(open Set) int {
	most := 0
	if l.t != nil {
		for _, d := range l.t.domains {
			most = max(most, (open & d).Len())
		}
	}
	return most
}
