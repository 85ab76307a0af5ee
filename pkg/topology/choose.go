package topology

import (
	"math/bits"
	"slices"
)

// Ask is what cards are chosen for.
type Ask struct {
	Open  []int // the places that may be taken, the caller's favourite first
	Free  Set   // the cards that nobody is on
	Count int   // how many are wanted
}

// Choice is a set of cards for an Ask.
type Choice struct {
	Cards  Set
	Raw    int // as Links.Raw rates the cards
	Domain Set // the domain that holds all of them; empty if there is none
	// Exact says that no set as good is joined more closely. Raw, Domain and the
	// NUMA nodes are the best there are in any case.
	Exact bool
}

// Best returns the open cards with the highest raw score. Of equal ones it takes
// those of the smallest domain, then of the domain with the fewest open cards,
// then those joined most closely (the highest sum of Link.Weight over all pairs),
// then the caller's favourites. It is false when fewer cards are open than wanted.
//
// Where nothing is known of the links it takes the caller's favourites.
func (l Links) Best(a Ask) (Choice, bool) {
	return l.choose(&a, func(o option) key { return key{-o.raw, o.domain.Len(), o.open.Len()} })
}

// Tightest returns open cards of the smallest domain that is big enough, so that
// larger ones stay whole; for the rest, as Best. The two differ where somebody is
// on the smaller domain and nobody on the larger one.
func (l Links) Tightest(a Ask) (Choice, bool) {
	return l.choose(&a, func(o option) key { return key{o.domain.Len(), o.open.Len(), -o.raw} })
}

// option is a domain with room enough, or all cards where no domain has. raw is
// what the sets of it are worth that are best for their NUMA nodes.
type option struct {
	domain, open Set
	numa, raw    int
}

// key orders options, the smallest first.
type key [3]int

func (k key) before(l key) bool { return slices.Compare(k[:], l[:]) < 0 }

func (l Links) choose(a *Ask, rank func(option) key) (Choice, bool) {
	open := SetOf(a.Open...)
	if l.Known() {
		open &= first(l.t.count)
	}
	if a.Count < 1 || open.Len() < a.Count {
		return Choice{}, false
	}
	s := newSearch(l.t, open, a)
	if !l.Known() {
		return Choice{Cards: s.placed(first(a.Count)), Raw: Neutral, Exact: true}, true
	}
	s.among(open, a, rank)
	cards := s.placed(s.best.ranks)
	return Choice{cards, l.Raw(cards, a.Free), l.holding(cards), !s.cut}, true
}

// holding returns the domain that all of these cards are in; none if there is no
// such domain.
func (l Links) holding(cards Set) Set {
	if d := l.Domain(bits.TrailingZeros64(uint64(cards))); cards.Within(d) {
		return d
	}
	return 0
}

// among searches the domains with room enough that rank first; where there are
// none, all open cards.
func (s *search) among(open Set, a *Ask, rank func(option) key) {
	var least key
	found := false
	for _, d := range s.t.domains {
		if o, ok := s.t.option(d, open, a); ok {
			if k := rank(o); !found || k.before(least) {
				least, found = k, true
			}
		}
	}
	if !found {
		s.pools(open, s.t.bestNUMA(open, a.Count))
		return
	}
	for _, d := range s.t.domains {
		if o, ok := s.t.option(d, open, a); ok && rank(o) == least {
			s.pools(o.open, o.numa)
		}
	}
}

// option is what the domain offers; false when it has too little room.
func (t *table) option(domain, open Set, a *Ask) (option, bool) {
	open &= domain
	if open.Len() < a.Count {
		return option{}, false
	}
	numa := t.bestNUMA(open, a.Count)
	return option{domain, open, numa, Neutral + domainPart(domain, a.Count, a.Free) + numa}, true
}

// bestNUMA returns the most that n of the open cards can be worth for their NUMA
// nodes.
func (t *table) bestNUMA(open Set, n int) int {
	if len(t.nodes) == 0 {
		return 0
	}
	for _, numa := range [...]int{rawNUMA, 0} {
		for i := range t.nodes {
			if t.pool(open, numa, i).Len() >= n {
				return numa
			}
		}
	}
	return rawTorn
}

// pool returns those of the open cards of which every set is worth that much, or
// more, for their NUMA nodes; for each such set there is an i.
func (t *table) pool(open Set, numa, i int) Set {
	switch {
	case numa == rawTorn:
		return open
	case i == len(t.nodes): // there is no node
		return open & t.homeless
	case numa == 0:
		return open & (t.nodes[i] | t.homeless)
	}
	return open & t.nodes[i]
}

// pools searches the open cards for sets that are worth that much for their NUMA
// nodes.
func (s *search) pools(open Set, numa int) {
	n := len(s.t.nodes)
	if numa == rawTorn {
		n = 1 // all of them are the same
	}
	for i := range max(n, 1) {
		s.pool(s.t.pool(open, numa, i))
	}
}
