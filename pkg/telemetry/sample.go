package telemetry

import (
	"context"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Kind says what is measured, and in which unit a Sample has it.
type Kind string

// The kinds of figures. The last two are of a node, the others of a card.
const (
	MemoryUsed  Kind = "memoryUsed"  // MiB
	Utilisation Kind = "utilisation" // percent
	Temperature Kind = "temperature" // degrees Celsius
	Power       Kind = "power"       // watts
	PowerLimit  Kind = "powerLimit"  // watts
	NodeCPU     Kind = "nodeCPU"     // percent of the node's processors
	NodeMemory  Kind = "nodeMemory"  // percent of the node's memory
)

// Kinds returns all kinds, in order.
func Kinds() []Kind {
	return []Kind{MemoryUsed, Utilisation, Temperature, Power, PowerLimit, NodeCPU, NodeMemory}
}

func (k Kind) ofNode() bool { return k == NodeCPU || k == NodeMemory }

// Sample is one figure at one time, in the unit of its kind.
type Sample struct {
	Kind Kind
	// Node may be left out, or be a name that no node has, where Card says enough.
	Node gpu.NodeID
	// Card is the card's ID; where it is "", the card is that of Index on Node.
	Card  gpu.CardID
	Index int // -1 where it is not known
	Value float64
	At    time.Time
}

// Source is where samples come from. What Read returns is used, even beside an
// error: a part of the figures is better than none. Read keeps to the context, and
// is never called twice at once.
type Source interface {
	Read(ctx context.Context) ([]Sample, error)
}
