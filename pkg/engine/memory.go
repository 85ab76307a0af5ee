package engine

import (
	"math"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// memory is what was said to one kind of request, by the node's place in a snapshot.
// There are hundreds of thousands of entries, so that they are small and lead nowhere:
// the garbage collector passes them by.
type memory struct {
	said   []said
	prices [][]gpu.Spending // where said is priced; see Pipeline.Prices
	causes []cause          // of refusals; few
}

// said is what was said of one state of a node, whatever the quotas.
type said struct {
	version uint64        // of the node; 0: nothing was said
	own     pipeline.Base // if rated
	// The figures of a refusal.
	have, want, foreign int32
	closed              uint8
	known               known
	cause               uint8 // its place in memory.causes, plus one; 0: it fits
}

// entrySize is that of said.
const entrySize = 40

// known says what is known of a node that fits.
type known uint8

const (
	rated known = 1 << iota
	priced
)

// cause is what is the same of the refusals of many nodes.
type cause struct {
	reason gpu.Reason
	gauge  gpu.Gauge
}

// room makes room for so many nodes.
func (m *memory) room(nodes int) {
	if n := nodes - len(m.said); n > 0 {
		m.said = slices.Grow(m.said, n)[:nodes]
	}
}

// enter remembers the verdict on that version of a node; false if it is none that can
// be remembered: there is none such.
func (m *memory) enter(at *said, version uint64, v pipeline.Verdict) bool {
	*at = said{}
	next := said{version: version}
	if !v.OK() {
		next.have, next.want, next.foreign, next.closed = int32(v.Have), int32(v.Want), int32(v.Foreign), uint8(v.Closed)
		next.cause = m.cause(cause{v.Reason, v.Gauge})
		if next.cause == 0 || m.verdict(&next) != v {
			return false
		}
	}
	*at = next
	return true
}

// cause returns the place of the cause, plus one; 0 when there are too many.
func (m *memory) cause(c cause) uint8 {
	i := slices.Index(m.causes, c)
	if i < 0 && len(m.causes) < math.MaxUint8 {
		m.causes, i = append(m.causes, c), len(m.causes)
	}
	return uint8(i + 1)
}

// verdict is the one that was entered.
func (m *memory) verdict(at *said) pipeline.Verdict {
	if at.cause == 0 {
		return pipeline.Verdict{}
	}
	c := &m.causes[at.cause-1]
	return pipeline.Verdict{
		Reason: c.reason, Gauge: c.gauge,
		Have: int64(at.have), Want: int64(at.want), Foreign: int64(at.foreign), Closed: int64(at.closed),
	}
}

// price remembers what the request takes of quotas on the node at that place.
func (m *memory) price(i int, prices []gpu.Spending) {
	if n := len(m.said) - len(m.prices); n > 0 {
		m.prices = slices.Grow(m.prices, n)[:len(m.said)]
	}
	m.said[i].known |= priced
	m.prices[i] = prices
}
