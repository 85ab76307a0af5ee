package pipeline

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Usage returns how full a node is, 0 to 1: the mean of its CPU, main memory and
// GPU usage (the formula of the binpack and spread plugins). CPU and main memory are
// used as far as pods ask for them, or as far as was measured where that is more.
func Usage(n *ledger.Node) float64 {
	cpu := max(ratio(int64(n.UsedCPU), int64(n.CPU)), share(n.Readings.CPU))
	memory := max(ratio(int64(n.UsedMemory), int64(n.Memory)), share(n.Readings.Memory))
	return (cpu + memory + gpuUsage(n)) / 3
}

// share is a percentage within 0 to 1; 0 where it is not known.
func share(percent gpu.Figure) float64 {
	if !percent.Known {
		return 0
	}
	return ratio(percent.Value, 100)
}

// gpuUsage is the mean over the node's cards; 0 for a node without any.
func gpuUsage(n *ledger.Node) float64 {
	if len(n.Cards) == 0 {
		return 0
	}
	var sum float64
	for i := range n.Cards {
		sum += CardUsage(&n.Cards[i])
	}
	return sum / float64(len(n.Cards))
}

// CardUsage returns how full a card is, 0 to 1: 0.6 of its memory and 0.4 of its
// compute, each against what slices may take of it. A card that is held whole
// or closed is full.
func CardUsage(c *ledger.Card) float64 {
	if c.Used.Exclusive || c.Closed {
		return 1
	}
	return 0.6*ratio(int64(c.Used.Memory), int64(c.Usable)) + 0.4*ratio(int64(c.Used.Cores), int64(c.UsableCores))
}

// ratio is used/total within 0 to 1; 0 where the total is not known.
func ratio(used, total int64) float64 {
	if total <= 0 {
		return 0
	}
	return min(1, max(0, float64(used)/float64(total)))
}
