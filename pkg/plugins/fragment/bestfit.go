package fragment

import (
	"math"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// bestFit is the score of the mode of that name.
func bestFit(r *gpu.Request, n *ledger.Node) float64 {
	if !r.AsksForCards() {
		return pipeline.Neutral
	}
	least := 100.0
	for i := range r.Asks {
		least = min(least, fit(&r.Asks[i], n))
	}
	return least
}

func fit(a *gpu.Ask, n *ledger.Node) float64 {
	clean, wasted := 0, math.Inf(1)
	for i := range n.Cards {
		if left := leftover(a, &n.Cards[i]); left >= 0 {
			clean, wasted = clean+1, min(wasted, left)
		}
	}
	switch {
	case a.Whole && clean >= a.Count:
		return 100
	case a.Whole:
		return 10
	}
	const gib = 1024
	return max(0, 100-10*wasted/gib)
}

// leftover is the memory in MiB that the card has left beside a device of the ask;
// below 0 where that does not fit.
func leftover(a *gpu.Ask, c *ledger.Card) float64 {
	if !open(c) || !a.Suits(&c.Card) {
		return -1
	}
	if a.Whole {
		if !c.TakesWhole() || !c.Free() || c.WholeMemory() < a.Memory {
			return -1
		}
		return 0
	}
	u := a.On(&c.Card)
	if !c.TakesSlices() || max(1, u.Cores) > c.FreeCores() || c.FreeSlots() == 0 {
		return -1
	}
	return float64(c.FreeMemory() - u.Memory)
}

// tightest orders the open cards by what they have left beside a device of the hardest
// ask; those that it does not fit come last.
func tightest(r *gpu.Request, n *pipeline.Candidate) {
	a := pipeline.HardestFirst(r)[0]
	n.Sort(func(c *ledger.Card) float64 {
		if left := leftover(a, c); left >= 0 {
			return left
		}
		return math.Inf(1)
	})
}
