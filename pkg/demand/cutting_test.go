package demand

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Of 600 one is wanted for each two of 400: half of the 400s go beside a 600, the
// others in pairs. A 400 is worth half a card by the pairs, and so is what is left for
// a 600.
func TestCutByHand(t *testing.T) {
	c := newCut(map[int]float64{600: 1, 400: 2})
	for r, want := range map[int]float64{0: 0, 399: 0, 400: 0.5, 600: 0.5, 799: 0.5, 800: 1, 999: 1, 1000: 1} {
		if got := c.worth[r]; math.Abs(got-want) > 1e-9 {
			t.Errorf("%d thousandths are worth %v, want %v", r, got, want)
		}
	}
	room := func(left int) Room { return Room{memory: uint16(left), cores: uint16(left)} }
	for _, tc := range []struct {
		size, before int
		want         float64
	}{
		{400, 1000, 0},   // leaves room for a 600
		{400, 400, 0},    // uses it up
		{400, 600, 0},    // 200 are lost, but 600 are worth no more than 400
		{400, 700, 0},    //
		{400, 900, 0},    // leaves a 500, in which a 400 fits
		{600, 1000, 0},   // leaves room for a 400
		{600, 900, 0.5},  // of two 400s, one is lost
		{300, 1000, 0.5}, // nobody wanted one, and 700 take one 400 alone
		{300, 600, 0.5},
		{300, 300, 0},
		{300, 900, 0.5},
		{450, 450, 0}, // as good as a 400
	} {
		got := c.regret(tc.size, room(tc.before), room(tc.before-tc.size))
		if math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("a slice of %d out of %d: regret %v, want %v", tc.size, tc.before, got, tc.want)
		}
	}
}

// Without slices in the mix a part of a card is worth nothing, so that a free one is
// begun at the price of a card.
func TestCutWithoutSlices(t *testing.T) {
	c := newCut(nil)
	if c.worth[999] != 0 || c.worth[full] != 1 || c.price[500] != 0 {
		t.Errorf("worth of 999: %v, of a card: %v, price of 500: %v; want 0, 1, 0", c.worth[999], c.worth[full], c.price[500])
	}
}

// A slice of compute beside one of memory costs nothing that the card was worth.
func TestRegretOfWhatWasOutOfReach(t *testing.T) {
	c := newCut(map[int]float64{500: 1})
	if got := c.regret(500, Room{memory: 900, cores: 100}, Room{memory: 400, cores: 0}); got != -0.5 {
		t.Errorf("regret %v, want -0.5: a 500 is served of what was worth nothing", got)
	}
}

// sizesOf draws some different sizes and how often they are wanted.
func sizesOf(t *rapid.T, most, least int) (sizes []int, weights []float64) {
	sizes = rapid.SliceOfNDistinct(rapid.IntRange(least, 999), 1, most, func(s int) int { return s }).Draw(t, "sizes")
	for range sizes {
		weights = append(weights, float64(rapid.IntRange(1, 1000).Draw(t, "weight")))
	}
	return sizes, weights
}

// The prices must be those of the linear program: by none of all ways to cut is a card
// worth more than 1, and no prices of which that is true come to more for what is
// wanted. That is tried with the corners of all such prices, of which one is best.
func TestPricesAreTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes, weights := sizesOf(t, 3, 150)
		got := total(cuttingPrices(sizes, weights), weights)
		best := 0.0
		ways := allWays(sizes)
		for _, corner := range corners(ways, len(sizes)) {
			if allowed(ways, corner) {
				best = max(best, total(corner, weights))
			}
		}
		if math.Abs(got-best) > 1e-6*best {
			t.Errorf("sizes %v wanted %v: prices come to %v, the best to %v", sizes, weights, got, best)
		}
	})
}

func total(prices, weights []float64) (sum float64) {
	for i := range prices {
		sum += prices[i] * weights[i]
	}
	return sum
}

// allWays lists how often each size is in each way to cut a card.
func allWays(sizes []int) (ways [][]float64) {
	var cut func(way []float64, left int)
	cut = func(way []float64, left int) {
		if len(way) == len(sizes) {
			ways = append(ways, slices.Clone(way))
			return
		}
		for n := 0; n*sizes[len(way)] <= left; n++ {
			cut(append(slices.Clone(way), float64(n)), left-n*sizes[len(way)])
		}
	}
	cut(nil, full)
	return ways
}

func allowed(ways [][]float64, prices []float64) bool {
	for _, p := range prices {
		if p < -1e-9 {
			return false
		}
	}
	for _, w := range ways {
		if total(prices, w) > 1+1e-9 {
			return false
		}
	}
	return true
}

// corners are where as many of the bounds meet as there are prices: each way to cut
// comes to a card, or a price is 0.
func corners(ways [][]float64, n int) (points [][]float64) {
	type bound struct {
		row []float64
		is  float64
	}
	var bounds []bound
	for _, w := range ways {
		bounds = append(bounds, bound{w, 1})
	}
	for i := range n {
		row := make([]float64, n)
		row[i] = 1
		bounds = append(bounds, bound{row, 0})
	}
	var choose func(from int, chosen []bound)
	choose = func(from int, chosen []bound) {
		if len(chosen) == n {
			var rows [][]float64
			for _, b := range chosen {
				rows = append(rows, append(slices.Clone(b.row), b.is))
			}
			if p, ok := meet(rows); ok {
				points = append(points, p)
			}
			return
		}
		for i := from; i < len(bounds); i++ {
			choose(i+1, append(slices.Clone(chosen), bounds[i]))
		}
	}
	choose(0, nil)
	return points
}

// meet solves the equations by elimination; false where they do not meet in a point.
func meet(rows [][]float64) ([]float64, bool) {
	n := len(rows)
	for c := range n {
		p := slices.IndexFunc(rows[c:], func(r []float64) bool { return math.Abs(r[c]) > 1e-9 })
		if p < 0 {
			return nil, false
		}
		rows[c], rows[c+p] = rows[c+p], rows[c]
		for i := range rows {
			if i == c {
				continue
			}
			f := rows[i][c] / rows[c][c]
			for j := range rows[i] {
				rows[i][j] -= f * rows[c][j]
			}
		}
	}
	point := make([]float64, n)
	for c := range n {
		point[c] = rows[c][n] / rows[c][c]
	}
	return point, true
}

// With many sizes: no card is worth more than 1, none of a size that is wanted is
// worth nothing, a larger slice no less than a smaller one, and nothing that is cut as the
// prices say is ever regretted less than nothing.
func TestPricesOfManySizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes, weights := sizesOf(t, 40, 1)
		wanted := map[int]float64{}
		for i, s := range sizes {
			wanted[s] = weights[i]
		}
		c := newCut(wanted)
		if got := c.worth[full-1]; got > 1+1e-9 {
			t.Errorf("a part of a card is worth %v", got)
		}
		slices.Sort(sizes)
		for i, s := range sizes {
			if i > 0 && c.price[s] < c.price[sizes[i-1]]-1e-6 {
				t.Errorf("a slice of %d has the price %v, one of %d %v", s, c.price[s], sizes[i-1], c.price[sizes[i-1]])
			}
			for before := s; before <= full; before++ {
				r, left := Room{memory: uint16(before), cores: uint16(before)}, Room{memory: uint16(before - s), cores: uint16(before - s)}
				if got := c.regret(s, r, left); got < -1e-6 {
					t.Fatalf("a slice of %d out of %d: regret %v", s, before, got)
				}
			}
		}
	})
}

// Kinds of cards on which slices take the same share the prices.
func TestCutsAreShared(t *testing.T) {
	o := outlook(usual()...)
	b, half := model("B"), model("C")
	half.Usable, half.UsableCores = 500, 50
	for _, c := range []*struct {
		kind Kind
		same bool
	}{{KindOf(&b), true}, {KindOf(&half), false}} {
		at, _ := o.kind(c.kind)
		if all := o.views.Load().all; (all[at].cut == all[0].cut) != c.same {
			t.Errorf("%s shares the prices of the first: %v", c.kind.Model, !c.same)
		}
	}
}
