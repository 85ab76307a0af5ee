package telemetry

import (
	"maps"
	"math"
	"slices"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// stamped is a figure with the time at which it was true. The zero stamped is none.
type stamped struct {
	value int64
	at    time.Time
}

// newest takes over a figure that is newer; of two of one time the larger, since of
// what one is not sure the worse counts.
func (s *stamped) newest(value int64, at time.Time) {
	if at.After(s.at) || at.Equal(s.at) && value > s.value {
		*s = stamped{value, at}
	}
}

// figure is what is known of it now, if it is from since or later.
func (s stamped) figure(since time.Time) gpu.Figure {
	if s.at.IsZero() || s.at.Before(since) {
		return gpu.Figure{}
	}
	return gpu.Measured(s.value)
}

// cardState is the newest figures of a card.
type cardState struct {
	memory, utilisation, temperature, power, limit stamped
	// departures is the card's count as it was last seen, and since when that is.
	departures uint64
	since      time.Time
}

func (c *cardState) of(k Kind) *stamped {
	switch k {
	case MemoryUsed:
		return &c.memory
	case Utilisation:
		return &c.utilisation
	case Temperature:
		return &c.temperature
	case Power:
		return &c.power
	case PowerLimit:
		return &c.limit
	}
	return nil
}

// reading is what is known of the card, of what is from fresh or later. What was
// measured before somebody left it says nothing of its memory and its load.
func (c *cardState) reading(fresh time.Time) gpu.Reading {
	alone := fresh
	if c.since.After(alone) {
		alone = c.since
	}
	return gpu.Reading{
		MemoryUsed: c.memory.figure(alone), Utilisation: c.utilisation.figure(alone),
		Temperature: c.temperature.figure(fresh), Power: c.power.figure(fresh), PowerLimit: c.limit.figure(fresh),
	}
}

// nodeState is the newest figures of a node.
type nodeState struct {
	cpu, memory stamped
	cards       map[gpu.CardID]*cardState
}

// state is the newest figures of everything that the ledger knows.
type state map[gpu.NodeID]*nodeState

// follow keeps to the nodes and cards that there are, and sees who has left a card.
func (st state) follow(s ledger.Snapshot, now time.Time) {
	for id := range st {
		if _, there := s.Node(id); !there {
			delete(st, id)
		}
	}
	for id, n := range s.Nodes() {
		if st[id] == nil {
			st[id] = &nodeState{cards: map[gpu.CardID]*cardState{}}
		}
		st[id].follow(n, now)
	}
}

func (n *nodeState) follow(now *ledger.Node, at time.Time) {
	for i := range now.Cards {
		c := &now.Cards[i]
		old := n.cards[c.ID]
		switch {
		case old == nil:
			n.cards[c.ID] = &cardState{departures: c.Departures, since: at}
		case old.departures != c.Departures:
			old.departures, old.since = c.Departures, at
		}
	}
	if len(n.cards) > len(now.Cards) { // some are gone
		maps.DeleteFunc(n.cards, func(id gpu.CardID, _ *cardState) bool {
			return !slices.ContainsFunc(now.Cards, func(c ledger.Card) bool { return c.ID == id })
		})
	}
}

// Drop says why a sample is not used.
type Drop string

// The reasons.
const (
	DropUnknown Drop = "unknown" // of a card or a node that the ledger does not have
	DropAbsurd  Drop = "absurd"  // no such figure can be
	DropStale   Drop = "stale"   // too old
)

// Drops returns all reasons.
func Drops() []Drop { return []Drop{DropUnknown, DropAbsurd, DropStale} }

// index finds cards by their ID alone.
type index map[gpu.CardID]*ledger.Node

// byCard lists cards by their IDs; of an ID that several nodes have none, since
// nobody knows whose the figure is.
func byCard(s ledger.Snapshot) index {
	all := index{}
	for _, n := range s.Nodes() {
		for i := range n.Cards {
			id := n.Cards[i].ID
			if _, twice := all[id]; twice {
				all[id] = nil
				continue
			}
			all[id] = n
		}
	}
	return all
}

// find returns the card that a sample is of.
func (x index) find(s ledger.Snapshot, of *Sample) (*ledger.Node, *ledger.Card) {
	n, known := s.Node(of.Node)
	if !known && of.Card != "" {
		n = x[of.Card]
	}
	if n == nil {
		return nil, nil
	}
	for i := range n.Cards {
		c := &n.Cards[i]
		if of.Card != "" && c.ID == of.Card || of.Card == "" && c.Index == of.Index {
			return n, c
		}
	}
	if of.Card != "" && known && x[of.Card] != nil { // the label names another machine, as that of the exporter's pod may
		return x.find(s, &Sample{Card: of.Card})
	}
	return nil, nil
}

// take enters samples, and counts those that are of no use. One of later than now is
// of now: it would stand in the way of all that come after it.
func (st state) take(samples []Sample, s ledger.Snapshot, fresh, now time.Time) map[Drop]int {
	dropped := map[Drop]int{}
	cards := byCard(s)
	for _, x := range samples {
		if x.At.After(now) {
			x.At = now
		}
		if why := st.enter(&x, s, cards, fresh); why != "" {
			dropped[why]++
		}
	}
	return dropped
}

func (st state) enter(x *Sample, s ledger.Snapshot, cards index, fresh time.Time) Drop {
	if x.At.Before(fresh) {
		return DropStale
	}
	if x.Kind.ofNode() {
		n := st[x.Node]
		if n == nil {
			return DropUnknown
		}
		into := &n.cpu
		if x.Kind == NodeMemory {
			into = &n.memory
		}
		return into.enter(x, 100)
	}
	n, c := cards.find(s, x)
	if c == nil {
		return DropUnknown
	}
	return st[n.ID].cards[c.ID].of(x.Kind).enter(x, most(x.Kind, c))
}

// most returns what a figure of a card cannot exceed.
func most(k Kind, c *ledger.Card) float64 {
	switch k {
	case MemoryUsed:
		return 2 * float64(c.Memory) // nobody's tool counts quite alike
	case Utilisation:
		return 100
	case Temperature:
		return 200
	}
	return 100_000 // watts
}

func (s *stamped) enter(x *Sample, most float64) Drop {
	v := math.Round(x.Value)
	if !(v >= 0 && v <= most) { // NaN is neither
		return DropAbsurd
	}
	s.newest(int64(v), x.At)
	return ""
}
