package resourcefilter

import (
	"cmp"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Bounds of the arrangements tried for one pod, so that an author who asks for
// many containers cannot hold up everybody else: an arrangement takes 0.9 us at
// worst (BenchmarkPackWorst), so all of them 0.4 s on any number of nodes up to
// 8,000.
const (
	mostPerNode  = 2000
	mostInAll    = 400_000
	leastPerNode = 50
)

func budget(c *pipeline.Cycle) int {
	return min(mostPerNode, max(leastPerNode, mostInAll/max(1, c.Nodes)))
}

// search looks for cards for all asks, backtracking where a choice for one
// leaves too little for another.
type search struct {
	desks  []desk
	asks   []*gpu.Ask // in the order of placing
	chosen [][]int    // by ask -> places in desks
	left   int        // arrangements that may still be tried
}

func newSearch(c *pipeline.Cycle, n *pipeline.Candidate) *search {
	s := &search{desks: desksOf(n, nil), asks: pipeline.HardestFirst(c.Request), left: budget(c)}
	s.chosen = make([][]int, len(s.asks))
	return s
}

// desksOf appends the open cards to room.
func desksOf(n *pipeline.Candidate, room []desk) []desk {
	room = slices.Grow(room, len(n.Open))
	for _, i := range n.Open {
		room = append(room, deskOf(n, i))
	}
	return room
}

// solve places the asks from at on; true when all have cards.
func (s *search) solve(at int) bool {
	if at == len(s.asks) {
		return true
	}
	ask := s.asks[at]
	fit := s.fitting(ask)
	for i, d := range fit {
		with := func(e int) bool { return s.desks[d].with(&s.desks[e], ask) }
		if slices.ContainsFunc(fit[:i], with) {
			continue
		}
		if s.pick(at, only(with, fit[i:]), make([]int, 0, ask.Count)) {
			return true
		}
	}
	return false
}

// only returns those that are such; on most nodes there are no others.
func only(such func(d int) bool, from []int) []int {
	other := func(d int) bool { return !such(d) }
	if !slices.ContainsFunc(from, other) {
		return from
	}
	return slices.DeleteFunc(slices.Clone(from), other)
}

// fitting lists the desks that could take ask, in order of preference: an init
// container goes where the pod is anyway.
func (s *search) fitting(ask *gpu.Ask) []int {
	var first []int
	then := make([]int, 0, len(s.desks))
	for i := range s.desks {
		switch {
		case !ask.Suits(&s.desks[i].card.Card) || s.desks[i].check(ask) != lackNothing:
		case ask.Role == gpu.Init && s.desks[i].used():
			first = append(first, i)
		default:
			then = append(then, i)
		}
	}
	if first == nil {
		return then
	}
	return append(first, then...)
}

// pick extends one ask's choice by every desk that may follow, and goes on with
// the next ask when it is complete. All of from may go together, so that
// every choice that is begun can be completed.
func (s *search) pick(at int, from, got []int) bool {
	ask := s.asks[at]
	if len(got) == ask.Count {
		return s.place(at, got)
	}
	for i, d := range from {
		if s.left <= 0 || len(from)-i < ask.Count-len(got) {
			return false
		}
		// Where one card has led to nothing, another like it does not either.
		if slices.ContainsFunc(from[:i], func(e int) bool { return s.desks[e].alike(&s.desks[d]) }) {
			continue
		}
		if s.pick(at, from[i+1:], append(got, d)) {
			return true
		}
	}
	return false
}

// place tries one complete choice for an ask.
func (s *search) place(at int, got []int) bool {
	s.left--
	ask := s.asks[at]
	before := make([]desk, len(got))
	for i, d := range got {
		before[i] = s.desks[d]
		s.desks[d].put(ask.Role, ask.On(&s.desks[d].card.Card))
	}
	s.chosen[at] = got
	if s.solve(at + 1) {
		return true
	}
	for i, d := range got {
		s.desks[d] = before[i]
	}
	return false
}

// grants writes the choice down in the order of the pod's containers.
func (s *search) grants(n *ledger.Node) []gpu.Grant {
	out := make([]gpu.Grant, 0, len(s.asks))
	for at, ask := range s.asks {
		cards := make([]int, len(s.chosen[at]))
		for i, d := range s.chosen[at] {
			cards[i] = s.desks[d].place
		}
		out = append(out, grant(ask, n, cards))
	}
	slices.SortFunc(out, func(a, b gpu.Grant) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Container, b.Container))
	})
	return out
}

// grant writes down what the ask gets of these cards.
func grant(ask *gpu.Ask, n *ledger.Node, cards []int) gpu.Grant {
	g := gpu.Grant{Container: ask.Container, Number: ask.Number, Role: ask.Role, Resource: ask.Plugin}
	g.Shares = make([]gpu.Share, len(cards))
	for i, place := range cards {
		g.Shares[i] = share(ask, &n.Cards[place])
	}
	slices.SortFunc(g.Shares, func(a, b gpu.Share) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Card, b.Card))
	})
	return g
}

func share(ask *gpu.Ask, c *ledger.Card) gpu.Share {
	u := ask.On(&c.Card)
	s := gpu.Share{
		Card: c.ID, Vendor: c.Vendor, Index: c.Index,
		Memory: u.Memory, Cores: u.Cores, Exclusive: u.Exclusive, Isolation: c.Isolation,
	}
	if u.Exclusive {
		s.Isolation = gpu.IsolationExclusive
	}
	return s
}
