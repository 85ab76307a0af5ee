package topology

import "math/bits"

// Closest returns count of the open cards that weigh most together, over all pairs; of
// equal sets those of the caller's favourites, the first. It is false when fewer are
// open. As with Best, the search is bounded: among more than some 16 cards the set may
// be a good one and not the best.
func Closest(open []int, count int, weight func(a, b int) uint16) (Set, bool) {
	all := SetOf(open...)
	if count < 1 || all.Len() < count {
		return 0, false
	}
	n := bits.Len64(uint64(all))
	t := &table{count: n, weights: make([]uint16, n*n)}
	for a := range all.Places() {
		for b := range (all & first(a)).Places() {
			w := weight(b, a)
			t.weights[a*t.count+b], t.weights[b*t.count+a] = w, w
		}
	}
	s := newSearch(t, all, &Ask{Open: open, Count: count})
	s.pool(all)
	return s.placed(s.best.ranks), true
}
