package ledger

import (
	"maps"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Readings is what was measured of a node lately. What is too old is not in it: who
// measures takes it out again. It never changes once handed over.
type Readings struct {
	CPU    gpu.Figure // percent of the node's, used by anybody
	Memory gpu.Figure // percent of the node's
	Cards  map[gpu.CardID]gpu.Reading
}

func (r Readings) equal(o Readings) bool {
	return r.CPU == o.CPU && r.Memory == o.Memory && maps.Equal(r.Cards, o.Cards)
}

// SetReadings replaces what was measured of a node that is known; of others it is
// forgotten.
func (l *Ledger) SetReadings(id gpu.NodeID, r Readings) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, known := l.nodes[id]
	if !known || n.Readings.equal(r) {
		return
	}
	changed := build(n.Facts, n.Holds, n.Fences, n.Boundary)
	changed.Readings = r
	l.nodes[id] = l.version(changed)
	l.changed[id] = struct{}{}
}
