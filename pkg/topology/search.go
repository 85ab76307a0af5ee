package topology

import (
	"math"
	"slices"
)

// mostSteps bounds a search, in sums formed; when they are spent it goes on
// without looking at every set. All sets of any number of 16 cards in one pool
// take 35,749 even where no bound helps, and in the two or more pools that two
// cards of known NUMA nodes among 14 others make, no more than that.
// BenchmarkBest says what time that is.
const mostSteps = 1 << 16

// search finds, in pools of cards one after the other, the want cards with the
// highest sum of weights over all pairs; of equal sets, the one whose cards come
// first in the caller's order. Inside, a card is its rank in that order.
type search struct {
	t     *table
	want  int
	place [MostCards]uint8 // rank -> place
	size  int              // of place
	steps int              // left
	spare int              // left when steps are spent
	cut   bool             // steps were spent before all sets were seen
	best  found

	// Of the pool that is searched:

	ranks        [MostCards]uint8
	cards        int     // of ranks
	light, heavy int32   // the least and the largest weight of a pair
	weights      []int32 // cards x cards
	gains        []int32 // want x cards: see gain
	found        found
}

// found is a set of cards, by rank, with the sum of its pairs' weights. The empty
// one is none.
type found struct {
	ranks Set
	sum   int32
}

// before reports whether f is to be preferred to g. Of two sets as large, the one
// that has the first card in which they differ comes first in order.
func (f found) before(g found) bool {
	if f.ranks == 0 || g.ranks == 0 || f.sum != g.sum {
		return f.ranks != 0 && (g.ranks == 0 || f.sum > g.sum)
	}
	differ := f.ranks ^ g.ranks
	return f.ranks&differ&-differ != 0
}

// newSearch ranks the open cards by the order in which the caller has them.
func newSearch(t *table, open Set, a *Ask) search {
	s := search{t: t, want: a.Count, steps: mostSteps, spare: mostSteps / 4}
	for _, place := range a.Open {
		if open.Has(place) {
			open &^= one(place)
			s.place[s.size] = uint8(place)
			s.size++
		}
	}
	return s
}

// placed returns the cards of these ranks by their places.
func (s *search) placed(ranks Set) Set {
	var cards Set
	for r := range ranks.Places() {
		cards |= one(int(s.place[r]))
	}
	return cards
}

// pool looks for a better set among these cards.
func (s *search) pool(pool Set) {
	if pool.Len() < s.want {
		return
	}
	s.enter(pool)
	if s.light == s.heavy || s.want == 1 {
		s.firsts() // as on nearly all machines: every set is as good
	} else {
		s.lookAtAll()
	}
	if s.found.before(s.best) {
		s.best = s.found
	}
}

// enter makes the pool the one that is searched.
func (s *search) enter(pool Set) {
	s.cards, s.found = 0, found{}
	s.light, s.heavy = math.MaxInt32, 0
	for r, place := range s.place[:s.size] {
		if !pool.Has(int(place)) {
			continue
		}
		row := s.t.weights[int(place)*s.t.count:]
		for _, other := range s.ranks[:s.cards] {
			w := int32(row[s.place[other]])
			s.light, s.heavy = min(s.light, w), max(s.heavy, w)
		}
		s.ranks[s.cards] = uint8(r)
		s.cards++
	}
}

// firsts takes the first cards in order, where all pairs weigh the same.
func (s *search) firsts() {
	for _, r := range s.ranks[:s.want] {
		s.found.ranks |= one(int(r))
	}
	s.found.sum = s.heavy * int32(s.want*(s.want-1)/2)
}

// lookAtAll finds the best set of the pool by trying them, or a good one if there
// are too many.
func (s *search) lookAtAll() {
	s.weights = slices.Grow(s.weights[:0], s.cards*s.cards)[:0]
	for _, a := range s.ranks[:s.cards] {
		row := s.t.weights[int(s.place[a])*s.t.count:]
		for _, b := range s.ranks[:s.cards] {
			s.weights = append(s.weights, int32(row[s.place[b]]))
		}
	}
	s.gains = slices.Grow(s.gains[:0], s.want*s.cards)[:s.want*s.cards]
	clear(s.gain(0))
	s.extend(0, 0, found{})
	if s.steps < 0 {
		s.cut = true
		s.greedy()
	}
}

// gain returns, for each card of the pool, what it adds to the sum when depth
// cards are chosen.
func (s *search) gain(depth int) []int32 { return s.gains[depth*s.cards:][:s.cards] }

// extend tries every way to add to the chosen cards, of which there are depth,
// cards from `from` on: in order, so that of equal sets the first is met first.
func (s *search) extend(depth, from int, chosen found) {
	need := s.want - depth
	s.steps -= s.cards - from
	if s.hopeless(depth, from, need, chosen.sum) {
		return
	}
	if need == 1 {
		s.complete(depth, from, chosen)
		return
	}
	for i := from; i <= s.cards-need && s.steps >= 0; i++ {
		s.weigh(depth, i, i+1)
		s.extend(depth+1, i+1, s.with(depth, i, chosen))
	}
}

// hopeless reports whether even the best gains and the heaviest links would not
// make the set better than what was found.
func (s *search) hopeless(depth, from, need int, sum int32) bool {
	if s.found.ranks == 0 {
		return false
	}
	var most int32
	for _, g := range s.gain(depth)[from:] {
		most = max(most, g)
	}
	return sum+int32(need)*most+int32(need*(need-1)/2)*s.heavy <= s.found.sum
}

// complete adds the last card, the one that gains most.
func (s *search) complete(depth, from int, chosen found) {
	most := from
	for i, g := range s.gain(depth)[from:] {
		if g > s.gain(depth)[most] {
			most = from + i
		}
	}
	if f := s.with(depth, most, chosen); f.before(s.found) {
		s.found = f
	}
}

// with returns the chosen cards and ranks[i].
func (s *search) with(depth, i int, chosen found) found {
	return found{chosen.ranks | one(int(s.ranks[i])), chosen.sum + s.gain(depth)[i]}
}

// weigh fills in what the cards from `from` on gain once ranks[i] is chosen too.
func (s *search) weigh(depth, i, from int) {
	row := s.weights[i*s.cards:][from:s.cards]
	before, after := s.gain(depth)[from:], s.gain(depth + 1)[from:]
	for j, w := range row {
		after[j] = before[j] + w
	}
}

// greedy starts from one card after the other and adds the one that gains most, as
// long as cards are wanted: good sets, in a time that is small and certain. Each
// pool is given one start at least.
func (s *search) greedy() {
	for start := range s.cards {
		if start > 0 && s.spare < 0 {
			return
		}
		s.spare -= s.want * s.cards
		chosen := found{ranks: one(int(s.ranks[start]))}
		clear(s.gain(0))
		s.weigh(0, start, 0)
		for depth := 1; depth < s.want; depth++ {
			next := s.heaviest(depth, chosen.ranks)
			chosen = s.with(depth, next, chosen)
			if depth+1 < s.want {
				s.weigh(depth, next, 0)
			}
		}
		if chosen.before(s.found) {
			s.found = chosen
		}
	}
}

// heaviest returns the card that gains most and is not chosen yet.
func (s *search) heaviest(depth int, chosen Set) int {
	next, gain := -1, s.gain(depth)
	for i := range s.cards {
		if !chosen.Has(int(s.ranks[i])) && (next < 0 || gain[i] > gain[next]) {
			next = i
		}
	}
	return next
}
