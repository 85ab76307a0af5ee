package demand

import (
	"math"
	"math/bits"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// idle is V: what stays idle of the node, in cards, if the mix alone comes: the mean
// over the streams, of which each request is taken that fits, on the cards that it
// fits most tightly. The state is reduced.
func (f *forecast) idle(s *State) float64 {
	if len(f.streams) == 0 {
		return float64(s.idle()) / full
	}
	views, left := f.views.Load().all, 0
	needs := f.needs(views, s)
	for from := 0; from < len(f.streams); from += length {
		end := *s
		f.fill(views, needs, &end, f.streams[from:from+length])
		left += end.idle()
	}
	return float64(left) / (full * streams)
}

// need is what a shape cannot do without. Most requests of a stream are turned away,
// and mostly for that.
type need struct {
	cpu           gpu.MilliCPU
	memory, cores uint16 // on some card
}

// needs returns those of the mix on such a node, by shape.
func (f *forecast) needs(views []*view, s *State) []need {
	for _, r := range s.all() {
		if r.kind != s.rooms[0].kind {
			return f.anywhere
		}
	}
	return views[s.rooms[0].kind].needs
}

func (f *forecast) fill(views []*view, needs []need, s *State, stream []uint16) {
	memory, cores := s.most()
	for _, d := range stream {
		if n := &needs[d]; n.cpu > s.cpu || n.memory > memory || n.cores > cores {
			continue
		}
		if !place(views, &f.items[d], s) {
			continue
		}
		s.cpu -= needs[d].cpu
		if memory, cores = s.most(); s.n == 0 {
			return
		}
	}
}

// most leaves out the cards of which nothing is left, and returns the most that there
// is of any other.
func (s *State) most() (memory, cores uint16) {
	n := 0
	for _, r := range s.all() {
		if r.idle() > 0 {
			s.rooms[n] = r
			n++
			memory, cores = max(memory, r.memory), max(cores, r.cores)
		}
	}
	s.n = n
	return memory, cores
}

// place takes what the shape takes, all of it or nothing.
func place(views []*view, it *item, s *State) bool {
	if len(it.count) == 1 {
		return placeAsk(views, it.first, it.count[0], s)
	}
	before := *s
	for i, count := range it.count {
		if !placeAsk(views, it.first+i, count, s) {
			*s = before
			return false
		}
	}
	return true
}

// placeAsk takes as many different cards, or parts of them, the tightest.
func placeAsk(views []*view, ask, count int, s *State) bool {
	if count > s.n {
		return false
	}
	taken := uint64(0) // a bit for each place, of which there are MostCards
	for range count {
		best := tightest(views, ask, s.all(), taken)
		if best < 0 {
			return false
		}
		taken |= 1 << best
	}
	for ; taken != 0; taken &= taken - 1 {
		r := &s.rooms[bits.TrailingZeros64(taken)]
		*r = r.less(views[r.kind].terms[ask])
	}
	return true
}

func tightest(views []*view, ask int, rooms []Room, but uint64) (best int) {
	best, least := -1, math.MaxInt
	t, kind := term{}, -1
	for i, r := range rooms {
		if int(r.kind) != kind { // seldom: those of a kind stand together
			kind = int(r.kind)
			t = views[kind].terms[ask]
		}
		if !r.fits(t) || but>>i&1 != 0 {
			continue
		}
		if left := r.less(t).idle(); left < least {
			best, least = i, left
		}
	}
	return best
}
