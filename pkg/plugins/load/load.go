// Package load is the plugin `load`: what is measured to be busy or hot takes
// nothing more.
//
// At or above the threshold of CPU or of main memory a node takes no pod that asks
// for cards; at or above that of its memory, its utilisation or its temperature a
// card is out of the running. It refuses with LoadThresholdExceeded, and for the
// temperature with Overheated, where the pod would fit but for that. What is not
// known refuses nobody, and a threshold of 0 is none. Its thresholds are
// loadThresholds in the policy; it has no arguments and cannot be disabled.
package load

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Name is the plugin's name in configuration, metrics and documents.
const Name = "load"

// Thresholds are by what was measured: at or above one of them the node, or the card,
// takes nothing more. 0: there is none.
type Thresholds struct {
	CPU            int64 // percent of the node's
	Memory         int64 // percent of the node's
	GPUMemory      int64 // percent of a card's
	GPUUtilisation int64 // percent
	GPUTemperature int64 // degrees Celsius
}

// Plugin implements pipeline.Filter.
type Plugin struct{ Thresholds Thresholds }

var _ pipeline.Filter = Plugin{}

// Name returns "load".
func (Plugin) Name() string { return Name }

// Filter bars what is at its threshold.
func (p Plugin) Filter(_ *pipeline.Cycle, n *pipeline.Candidate) pipeline.Verdict {
	if !n.Node.Readings.Any() {
		return pipeline.Verdict{}
	}
	if v := p.node(&n.Node.Readings); !v.OK() {
		n.BarAll(v)
		return pipeline.Verdict{}
	}
	for _, i := range n.Open {
		card := &n.Node.Cards[i]
		// Nobody gets a card that is held whole, and most of what is busy is of this kind.
		if !card.Used.Exclusive && p.busy(card) {
			n.Bar(i, p.card(card))
		}
	}
	return pipeline.Verdict{}
}

// busy reports whether card has a verdict, for less than what making one costs: this
// runs for every card of the cluster.
func (p *Plugin) busy(c *ledger.Card) bool {
	t, r := &p.Thresholds, &c.Reading
	return reached(r.Temperature, t.GPUTemperature) || reached(r.Utilisation, t.GPUUtilisation) ||
		t.GPUMemory > 0 && r.MemoryUsed.Known && c.Memory > 0 && r.MemoryUsed.Value*100 >= t.GPUMemory*int64(c.Memory)
}

func (p Plugin) node(r *ledger.Readings) pipeline.Verdict {
	switch t := &p.Thresholds; {
	case reached(r.CPU, t.CPU):
		return past(gpu.NodeCPU, r.CPU, t.CPU)
	case reached(r.Memory, t.Memory):
		return past(gpu.NodeMemory, r.Memory, t.Memory)
	}
	return pipeline.Verdict{}
}

// card looks at the temperature first: what the card does matters less then.
func (p Plugin) card(c *ledger.Card) pipeline.Verdict {
	memory, r := memoryUsed(c), &c.Reading
	switch t := &p.Thresholds; {
	case reached(r.Temperature, t.GPUTemperature):
		return past(gpu.CardTemperature, r.Temperature, t.GPUTemperature)
	case reached(memory, t.GPUMemory):
		return past(gpu.CardMemory, memory, t.GPUMemory)
	case reached(r.Utilisation, t.GPUUtilisation):
		return past(gpu.CardUtilisation, r.Utilisation, t.GPUUtilisation)
	}
	return pipeline.Verdict{}
}

// memoryUsed is the part of the card's memory that is in use, in whole percent,
// rounded down.
func memoryUsed(c *ledger.Card) gpu.Figure {
	if !c.Reading.MemoryUsed.Known || c.Memory <= 0 {
		return gpu.Figure{}
	}
	return gpu.Measured(c.Reading.MemoryUsed.Value * 100 / int64(c.Memory))
}

func reached(f gpu.Figure, threshold int64) bool { return threshold > 0 && f.AtLeast(threshold) }

func past(g gpu.Gauge, f gpu.Figure, threshold int64) pipeline.Verdict {
	reason := gpu.LoadThresholdExceeded
	if g == gpu.CardTemperature {
		reason = gpu.Overheated
	}
	return pipeline.Verdict{Reason: reason, Gauge: g, Have: f.Value, Want: threshold}
}
