package demand

import "math"

// idle is V: what stays idle of the node, in cards, if the mix alone comes: the mean over the
// streams, of which each request is taken that fits, on the cards that it fits
// most tightly.
func (o *Outlook) idle(s *State) float64 {
	views, left := o.views.Load().all, 0
	for from := 0; from < len(o.streams); from += length {
		end := *s
		o.fill(views, &end, o.streams[from:from+length])
		left += end.idle()
	}
	if len(o.streams) == 0 {
		return float64(s.idle()) / full
	}
	return float64(left) / (full * streams)
}

func (o *Outlook) fill(views []*view, s *State, stream []uint16) {
	for _, d := range stream {
		it := &o.items[d]
		if it.cpu > s.cpu || !place(views, it, s) {
			continue
		}
		s.cpu -= it.cpu
		if !useful(views, s) {
			return
		}
	}
}

// useful reports whether anything of the mix could still use a card.
func useful(views []*view, s *State) bool {
	for _, r := range s.all() {
		if r.memory >= views[r.kind].least {
			return true
		}
	}
	return false
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
	var taken [MostCards]Room // what the cards were
	var at [MostCards]int
	for k := range count {
		best := tightest(views, ask, s.all(), at[:k])
		if best < 0 {
			for j := range k {
				s.rooms[at[j]] = taken[j]
			}
			return false
		}
		taken[k], at[k] = s.rooms[best], best
		s.rooms[best] = s.rooms[best].less(views[s.rooms[best].kind].terms[ask])
	}
	return true
}

func tightest(views []*view, ask int, rooms []Room, but []int) (best int) {
	best, least := -1, math.MaxInt
next:
	for i, r := range rooms {
		t := views[r.kind].terms[ask]
		if !r.fits(t) {
			continue
		}
		for _, b := range but {
			if b == i {
				continue next
			}
		}
		if left := r.less(t).idle(); left < least {
			best, least = i, left
		}
	}
	return best
}
