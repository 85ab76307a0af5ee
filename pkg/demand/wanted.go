package demand

import "math"

// weights of the parts of a cost; what there is of each was found on traces of a large
// cluster.
const (
	weightFragments = 0.25
	weightRegret    = 3
	// grain is what costs are rounded to, in cards. V is a mean over few streams and
	// differs by as much for nothing; without the rounding such noise would
	// scatter pods over nodes that do alike. With it those are equal, and the first
	// of them in order is filled before the next is begun.
	grain = 0.12
	// mostTrials bounds for how many cards it is found out what a device costs there:
	// each takes the longer the more cards there are. Eight devices on eight cards are
	// within.
	mostTrials = 512
)

// Wanted is a request as an outlook sees it.
type Wanted struct {
	shape
	o      *Outlook
	terms  [][]term  // kind -> what a device of each ask takes, for the kinds known when it was made
	prices []float64 // kind -> of a card, for the kinds of the supply
}

// term is what a device of the ask takes of such a card.
func (w *Wanted) term(ask int, kind uint16) term {
	if int(kind) < len(w.terms) {
		return w.terms[kind][ask]
	}
	return w.on(&w.asks[ask], &w.o.views.Load().all[kind].card)
}

// price is that of a card of the kind.
func (w *Wanted) price(kind uint16) float64 {
	if int(kind) < len(w.prices) {
		return w.prices[kind]
	}
	return 0
}

// Cost is what it costs to put something on a node or a card.
type Cost struct {
	grains int
	left   int // of the card afterwards, in thousandths; of cards that cost the same the tighter is the better
}

// Cards returns the cost in cards.
func (c Cost) Cards() float64 { return float64(c.grains) * grain }

// Less reports whether c is the better.
func (c Cost) Less(d Cost) bool {
	return c.grains < d.grains || c.grains == d.grains && c.left < d.left
}

// Rank is in the order of Less.
func (c Cost) Rank() float64 { return float64(c.grains)*(full+1) + float64(c.left) }

func costOf(cards float64, left int) Cost { return Cost{int(math.Round(cards / grain)), left} }

// Cost returns what it costs to put the request on the node, each device of it as best
// says; false where it does not fit.
func (w *Wanted) Cost(s *State) (Cost, bool) {
	before := w.o.lost(*s)
	after := *s
	after.cpu -= w.cpu
	if len(w.asks) == 1 && w.asks[0].Count == 1 { // as nearly always
		_, c, ok := w.best(&after, before, 0, 0)
		return c, ok
	}
	tolls := 0.0
	for ask := range w.asks {
		toll, ok := w.put(&after, before, ask)
		if !ok {
			return Cost{}, false
		}
		tolls += toll
	}
	return costOf(w.o.lost(after)-before+tolls+w.o.spoiled(s, &after, 0), after.idle()), true
}

// tries reports whether each device goes where it costs least. Of several containers, and
// of many devices on many cards, each goes where least is left.
func (w *Wanted) tries(s *State) bool {
	return len(w.asks) == 1 && w.asks[0].Count*s.n*s.n <= mostTrials
}

// put puts the devices of the ask on after, and returns regret and price.
func (w *Wanted) put(after *State, before float64, ask int) (tolls float64, ok bool) {
	from, taken := *after, uint64(0)
	for range w.asks[ask].Count {
		i, _, ok := w.best(&from, before, ask, taken)
		if !ok {
			return 0, false
		}
		taken |= 1 << i
		toll, left := w.toll(ask, from.rooms[i])
		tolls, after.rooms[i] = tolls+toll, left
	}
	return tolls, true
}

// best returns the card on which one device of the ask goes, of those but these, a bit for
// each, and what it costs there.
func (w *Wanted) best(from *State, before float64, ask int, but uint64) (at int, best Cost, ok bool) {
	at = -1
	tries := w.tries(from)
	for i, r := range from.all() {
		if but>>i&1 != 0 || !w.fits(ask, r) || at >= 0 && from.rooms[at] == r { // the last costs the same
			continue
		}
		c := w.tightness(ask, r)
		if tries {
			c = w.at(from, before, ask, i)
		}
		if at < 0 || c.Less(best) {
			at, best = i, c
		}
	}
	return at, best, at >= 0
}

// tightness is the cost that goes by what is left of the card alone.
func (w *Wanted) tightness(ask int, r Room) Cost {
	return Cost{left: r.less(w.term(ask, r.kind)).idle()}
}

// fits reports whether one device of the ask fits. What there is nothing left of need
// not be of any kind.
func (w *Wanted) fits(ask int, r Room) bool { return r.idle() > 0 && r.fits(w.term(ask, r.kind)) }

// at is what one device of the ask costs on that card, which it fits.
func (w *Wanted) at(from *State, before float64, ask, i int) Cost {
	after := *from
	toll, r := w.toll(ask, after.rooms[i])
	after.rooms[i] = r
	return costOf(w.o.lost(after)-before+toll+w.o.spoiled(from, &after, w.cpu), r.idle())
}

// toll is regret and price of one device on the card, and what is left of that.
func (w *Wanted) toll(ask int, r Room) (cards float64, left Room) {
	t := w.term(ask, r.kind)
	left = r.less(t)
	regret := w.o.views.Load().all[r.kind].cut.regret(t.size(), r, left)
	return weightRegret*regret + w.price(r.kind)*float64(t.size())/full, left
}

// CostAt returns the first of the asks, the hardest being 0, of which the card at that
// place takes a device, and what that costs; -1 where it takes none.
func (w *Wanted) CostAt(s *State, i int) (c Cost, ask int) {
	for ask := range w.asks {
		switch {
		case i >= s.n || !w.fits(ask, s.rooms[i]):
			continue
		case !w.tries(s):
			return w.tightness(ask, s.rooms[i]), ask
		}
		from := *s
		from.cpu -= w.cpu
		return w.at(&from, w.o.lost(*s), ask, i), ask
	}
	return Cost{}, -1
}
