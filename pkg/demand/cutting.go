package demand

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

const (
	// mostSizes bounds the sizes of slices that count; the least wanted are left out.
	mostSizes = 64
	// mostRounds bounds the search for prices, which takes some two rounds a size.
	mostRounds = 16 * mostSizes
)

// cut is what parts of a card are worth for slices, in cards, by thousandths.
//
// Slices of sizes s, wanted d times each, are to be cut from as few cards as possible.
// That is a linear program, whose dual gives each size its price: cards that
// one more of that size would need. A part of a card is worth the prices of the
// slices that can be cut of it. Full cards are worth 1, and those that are cut well as
// well.
type cut struct {
	worth [full + 1]float64 // of a part that is free
	price [full + 1]float64 // of a slice; one that nobody wanted so far: what its place is worth
}

// regret is what the card is worth less afterwards than the slice of that size
// is: 0 or more where the slice takes no less than what becomes of the card, and 0 for
// the whole card.
func (c *cut) regret(size int, before, after Room) float64 {
	return c.worth[before.idle()] - c.worth[after.idle()] - c.price[size]
}

// newCut returns the worth for slices that are wanted as often, size -> weight.
func newCut(wanted map[int]float64) *cut {
	sizes := slices.Sorted(maps.Keys(wanted))
	if len(sizes) > mostSizes {
		slices.SortStableFunc(sizes, func(a, b int) int { return cmp.Compare(wanted[b], wanted[a]) })
		sizes = sizes[:mostSizes]
	}
	weights := make([]float64, len(sizes))
	for i, s := range sizes {
		weights[i] = wanted[s]
	}
	prices := cuttingPrices(sizes, weights)
	c := &cut{}
	knapsack(sizes, prices, &c.worth, nil)
	c.worth[full] = 1 // whoever wants no slices at all wants whole cards
	c.price = c.worth
	for i, s := range sizes {
		c.price[s] = prices[i]
	}
	return c
}

// cuttingPrices returns the dual prices of the linear program, by column generation
// (Gilmore and Gomory): the simplex method, in which the column to enter, a way to cut
// a card, is the best one by the prices so far.
func cuttingPrices(sizes []int, weights []float64) []float64 {
	b := newBasis(sizes, weights)
	var worth [full + 1]float64
	column, prices := make([]float64, len(sizes)), make([]float64, len(sizes))
	for range mostRounds {
		b.prices(prices)
		knapsack(sizes, prices, &worth, column)
		if worth[full] <= 1+1e-9 {
			break
		}
		b.enter(column)
	}
	most := max(1, worth[full]) // prices that allow no card more than its worth, even if the search was cut short
	for i := range prices {
		prices[i] = max(0, prices[i]) / most
	}
	return prices
}

// knapsack fills in the best that each part of a card is worth by these prices, and
// how often each size is in the best cut of a whole card, unless that is nil.
func knapsack(sizes []int, prices []float64, worth *[full + 1]float64, column []float64) {
	var last [full + 1]int // place of a size that is in the best cut, 1 more; 0: what is left over
	for r := 1; r <= full; r++ {
		worth[r], last[r] = worth[r-1], 0
		for i, s := range sizes {
			if s > r {
				continue
			}
			if w := worth[r-s] + prices[i]; w > worth[r] {
				worth[r], last[r] = w, i+1
			}
		}
	}
	clear(column)
	for r := full; column != nil && r > 0; {
		if i := last[r]; i > 0 {
			column[i-1]++
			r -= sizes[i-1]
		} else {
			r--
		}
	}
}

// basis is one of the simplex method: as many ways to cut as there are sizes.
type basis struct {
	inverse [][]float64
	cards   []float64 // how many are cut in each way
}

// newBasis cuts each size from cards of its own.
func newBasis(sizes []int, weights []float64) *basis {
	b := &basis{cards: make([]float64, len(sizes))}
	for i, s := range sizes {
		row := make([]float64, len(sizes))
		row[i] = 1 / float64(full/s)
		b.inverse = append(b.inverse, row)
		b.cards[i] = weights[i] * row[i]
	}
	return b
}

// prices are those by which each way to cut of the basis is worth one card.
func (b *basis) prices(out []float64) {
	clear(out)
	for _, row := range b.inverse {
		for j, v := range row {
			out[j] += v
		}
	}
}

// enter takes the way to cut into the basis, in place of the first that it makes
// needless.
func (b *basis) enter(column []float64) {
	along := make([]float64, len(column))
	leaves, step := -1, math.Inf(1)
	for i, row := range b.inverse {
		for j, v := range row {
			along[i] += v * column[j]
		}
		if along[i] > 1e-9 && b.cards[i]/along[i] < step {
			leaves, step = i, b.cards[i]/along[i]
		}
	}
	if leaves < 0 {
		return
	}
	pivot := b.inverse[leaves]
	for j := range pivot {
		pivot[j] /= along[leaves]
	}
	for i, row := range b.inverse {
		if i == leaves {
			continue
		}
		b.cards[i] -= step * along[i]
		for j := range row {
			row[j] -= along[i] * pivot[j]
		}
	}
	b.cards[leaves] = step
}
