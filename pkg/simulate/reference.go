package simulate

import (
	"math"
	"math/rand"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/plugins/affinity"
	"heteroflow.io/heteroflow/pkg/plugins/availability"
	"heteroflow.io/heteroflow/pkg/plugins/gpufilter"
	"heteroflow.io/heteroflow/pkg/plugins/resourcefilter"
)

// reference returns the pipeline of a published policy: our filters, with a score and
// an order of cards as they are described.
func reference(s pipeline.Weighted, cards pipeline.Place) *pipeline.Pipeline {
	s.Weight = 1
	return pipeline.New(pipeline.Config{
		Filters:    []pipeline.Filter{availability.Plugin{}, gpufilter.Plugin{}, affinity.Plugin{}},
		Pack:       resourcefilter.Plugin{},
		Scores:     []pipeline.Weighted{s},
		Places:     map[gpu.Policy]pipeline.Place{gpu.Binpack: cards},
		CardLayout: gpu.Binpack,
	})
}

// random is the policy "random": any node that fits, and any card of it.
type random struct{ *rand.Rand }

var (
	_ pipeline.Score = random{}
	_ pipeline.Place = random{}
)

func (random) Name() string { return "random" }

// Score is drawn anew each time, which is why it must be Near: those are never
// remembered.
func (r random) Score(*pipeline.Cycle, *ledger.Node) float64 { return 100 * r.Float64() }

// Place shuffles the cards.
func (r random) Place(_ *pipeline.Cycle, n *pipeline.Candidate) {
	r.Shuffle(len(n.Open), func(i, j int) { n.Open[i], n.Open[j] = n.Open[j], n.Open[i] })
}

// bestFit is the policy "bestfit": the node that has least left of CPU and of cards,
// each measured against the largest node, and the card that has least left. The
// published one then stretches the scores to 0..100, which changes no order.
type bestFit struct{}

var (
	_ pipeline.Score = bestFit{}
	_ pipeline.Place = bestFit{}
)

func (bestFit) Name() string { return "bestfit" }

// Score is a whole number, so that many nodes are rated alike.
func (bestFit) Score(c *pipeline.Cycle, n *ledger.Node) float64 {
	const largestCPU, largestCards = 128_000, 8 * wholeCard
	cpu := float64(n.CPU-n.UsedCPU-c.Request.CPU) / largestCPU
	cards := float64(freeMilli(n)-milli(c.Request)) / largestCards
	return math.Trunc(100 * (1 - 0.5*cpu - 0.5*cards))
}

// Place puts the card first that has least left.
func (bestFit) Place(_ *pipeline.Cycle, n *pipeline.Candidate) {
	n.Sort(func(c *ledger.Card) float64 { return float64(c.FreeMemory()) })
}

// freeMilli is what is left of the node's cards, in thousandths of one.
func freeMilli(n *ledger.Node) (sum int) {
	for i := range n.Cards {
		sum += int(n.Cards[i].FreeMemory())
	}
	return sum
}

// milli is what the request takes of all cards together.
func milli(r *gpu.Request) (sum int) {
	for i := range r.Asks {
		sum += r.Asks[i].Count * each(&r.Asks[i])
	}
	return sum
}

// each is what the ask takes of each card.
func each(a *gpu.Ask) int {
	if a.Whole {
		return wholeCard
	}
	return int(a.Memory)
}
