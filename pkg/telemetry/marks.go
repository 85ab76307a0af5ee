package telemetry

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Marks are the values at which decisions turn. A figure that crosses one is told at
// once; 0 marks nothing.
type Marks struct {
	CPU, Memory int64 // percent, of a node
	// Of a card: percent of its memory, percent, degrees Celsius.
	CardMemory, Utilisation, Temperature int64
	// MeanTemperature is that of a node's cards, in degrees Celsius.
	MeanTemperature int64
}

// The least changes that are told where no mark is crossed: each tells all who
// remember something of the node that it is another.
const (
	leastPercent     = 5
	leastNodePercent = 2
	leastDegrees     = 2
	leastMemory      = gpu.MiB(512)
	leastWatts       = 20
)

// matters reports whether anybody decides otherwise, or much otherwise, by the new
// readings than by those that the node has.
func (m Marks) matters(n *ledger.Node, r ledger.Readings) bool {
	if moved(n.Readings.CPU, r.CPU, leastNodePercent, m.CPU) || moved(n.Readings.Memory, r.Memory, leastNodePercent, m.Memory) {
		return true
	}
	var before, now mean
	for i := range n.Cards {
		old, next := n.Cards[i].Reading, r.Cards[n.Cards[i].ID]
		if m.card(&n.Cards[i], old, next) {
			return true
		}
		before.add(old.Temperature)
		now.add(next.Temperature)
	}
	return m.MeanTemperature > 0 && before.above(m.MeanTemperature) != now.above(m.MeanTemperature)
}

func (m Marks) card(c *ledger.Card, old, now gpu.Reading) bool {
	memory := int64(max(leastMemory, c.Memory/100))
	// A share of the card's memory is reached at the same figure, rounded up.
	mark := (int64(c.Memory)*m.CardMemory + 99) / 100
	return moved(old.MemoryUsed, now.MemoryUsed, memory, mark) ||
		moved(old.Utilisation, now.Utilisation, leastPercent, m.Utilisation) ||
		moved(old.Temperature, now.Temperature, leastDegrees, m.Temperature) ||
		moved(old.Power, now.Power, leastWatts, 0) || moved(old.PowerLimit, now.PowerLimit, leastWatts, 0)
}

// moved reports whether the figure became known or unknown, went by least or more,
// or crossed the mark.
func moved(old, now gpu.Figure, least, mark int64) bool {
	if old.Known != now.Known {
		return true
	}
	by := now.Value - old.Value
	return by >= least || -by >= least || mark > 0 && (old.Value >= mark) != (now.Value >= mark)
}

// mean is that of the figures that are known.
type mean struct{ sum, of int64 }

func (m *mean) add(f gpu.Figure) {
	if f.Known {
		m.sum += f.Value
		m.of++
	}
}

func (m mean) above(mark int64) bool { return m.of > 0 && m.sum > mark*m.of }
