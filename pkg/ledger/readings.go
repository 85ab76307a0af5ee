package ledger

import (
	"maps"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Readings is what was measured of a node lately. What is too old is not in it: who
// measures takes it out again. It never changes once handed over.
type Readings struct {
	CPU    gpu.Figure // percent of the node's, used by anybody
	Memory gpu.Figure // percent of the node's
	Cards  map[gpu.CardID]gpu.Reading
	// Seen is the Version of the node when the figures of its cards were chosen; 0
	// stands for the present one. What somebody who has left since then had of a
	// card is not taken for what is there.
	Seen uint64
}

// equal reports whether the same was measured. A card that is not named is one of
// which nothing is known.
func (r *Readings) equal(o *Readings) bool {
	if r.CPU != o.CPU || r.Memory != o.Memory {
		return false
	}
	for id, x := range r.Cards {
		if o.Cards[id] != x {
			return false
		}
	}
	for id, x := range o.Cards {
		if _, named := r.Cards[id]; !named && x != (gpu.Reading{}) {
			return false
		}
	}
	return true
}

// Any reports whether anything is known.
func (r *Readings) Any() bool { return r.CPU.Known || r.Memory.Known || len(r.Cards) > 0 }

// SetReadings replaces what was measured of a node; of one that is not known it is
// forgotten. The node gets another Version where that differs from what was
// measured before.
func (l *Ledger) SetReadings(id gpu.NodeID, r Readings) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, known := l.nodes[id]
	if !known {
		return
	}
	if r.Seen != 0 {
		for i := range n.Cards {
			if c := &n.Cards[i]; c.Departures > r.Seen {
				r.forget(c.ID)
			}
		}
	}
	if n.Readings.equal(&r) {
		return
	}
	l.nodes[id] = l.version(n.measured(r))
	l.changed[id] = struct{}{}
}

// measured returns the node with other readings.
func (n *Node) measured(r Readings) *Node {
	next := *n
	next.Readings, next.Cards = r, slices.Clone(n.Cards)
	for i := range next.Cards {
		c := &next.Cards[i]
		was, before := c.Foreign(), c.Reading.MemoryUsed
		c.Reading = r.Cards[c.ID]
		c.Others = c.othersAfter(was, before)
	}
	return &next
}

// othersAfter is what is left of the memory that was others' when so much was used:
// what less is used now was theirs. When somebody has left the card it stays theirs
// until the memory is measured anew, as long as anything is known of the card: who
// measures takes all out that is too old.
func (c *Card) othersAfter(was gpu.MiB, before gpu.Figure) gpu.MiB {
	switch now := c.Reading.MemoryUsed; {
	case now.Known && before.Known:
		return max(0, was-gpu.MiB(max(0, before.Value-now.Value)))
	case now.Known, before.Known, c.Reading == gpu.Reading{}:
		return 0
	}
	return was
}

// remember carries over what was measured of the node before. Where somebody has
// left a card since then, its memory and its utilisation are not known: until they
// are measured anew they would be taken for somebody's who is still there. The same
// is true of a card that is new, or back.
func (n *Node) remember(before *Node) {
	n.Readings = before.Readings
	gone := before.departed(n.Holds)
	for i := range n.Cards {
		c := &n.Cards[i]
		old := before.like(i, c.ID)
		if old != nil && !left(old, c) && !gone.has(c.Vendor) {
			c.Departures = old.Departures
		} else {
			n.Readings.forget(c.ID)
		}
		if len(n.Readings.Cards) > 0 {
			c.Reading = n.Readings.Cards[c.ID]
		}
		if old != nil && c.Reading != (gpu.Reading{}) {
			c.Others = n.carry(old, c)
		}
	}
}

// like returns the card of that ID, which most likely is at that place; nil if there
// is none.
func (n *Node) like(place int, id gpu.CardID) *Card {
	if place < len(n.Cards) && n.Cards[place].ID == id {
		return &n.Cards[place]
	}
	return n.card(id)
}

// left reports whether a holder of the card before is not on it now, or with less.
func left(before, now *Card) bool {
	rest := now.Holders // both are ordered by pod
	for _, old := range before.Holders {
		for len(rest) > 0 && rest[0].Pod < old.Pod {
			rest = rest[1:]
		}
		if len(rest) == 0 || rest[0].Pod != old.Pod || rest[0].Use.Memory < old.Use.Memory {
			return true
		}
	}
	return false
}

// carry keeps what was found of others on the card before, less what those have more
// of it now who are not just on their way: what was measured may be theirs.
func (n *Node) carry(before, now *Card) (others gpu.MiB) {
	others = before.Foreign()
	if others == 0 {
		return 0 // as nearly always
	}
	for i := range now.Holders {
		if h := &now.Holders[i]; n.Hold(h.Pod).State != Held {
			others -= max(0, h.Use.Memory-before.heldBy(h.Pod))
		}
	}
	return max(0, others)
}

// heldBy returns the memory of the card that the pod holds.
func (c *Card) heldBy(pod gpu.PodID) gpu.MiB {
	for i := range c.Holders {
		if c.Holders[i].Pod == pod {
			return c.Holders[i].Use.Memory
		}
	}
	return 0
}

// vendors are those whose cards somebody may have left.
type vendors []gpu.Vendor

func (v vendors) has(vendor gpu.Vendor) bool {
	return slices.Contains(v, vendor) || slices.Contains(v, "")
}

// departed returns whose cards those may have been on whose cards cannot be named,
// and who are not among holds.
func (n *Node) departed(holds []*Hold) (gone vendors) {
	for _, h := range n.Holds {
		if len(h.Foreign) == 0 {
			continue // as nearly always
		}
		if i, ok := find(holds, h.Pod); ok && slices.Equal(holds[i].Foreign, h.Foreign) {
			continue
		}
		for _, f := range h.Foreign {
			gone = append(gone, f.Vendor)
		}
	}
	return gone
}

// forget takes out the figures of a card that are those of who is on it.
func (r *Readings) forget(id gpu.CardID) {
	x := r.Cards[id]
	if !x.MemoryUsed.Known && !x.Utilisation.Known {
		return
	}
	x.MemoryUsed, x.Utilisation = gpu.Figure{}, gpu.Figure{}
	r.Cards = maps.Clone(r.Cards) // snapshots have the other
	r.Cards[id] = x
}

// Foreign returns the memory of the card that somebody uses who is not in the books,
// as far as was measured: what is used beyond what its holders have, and beyond what
// is kept back of it for drivers and the like; or what was found of it before holders
// came who may not use theirs yet, or before one left. Who has the whole card has all
// of its memory.
func (c *Card) Foreign() gpu.MiB {
	used := c.Reading.MemoryUsed
	switch {
	case c.Used.Exclusive:
		return 0
	case !used.Known:
		return min(c.Others, c.Memory)
	}
	keptBack := max(0, c.Memory-c.Usable)
	most := min(c.Memory, gpu.MiB(used.Value)) - keptBack // if no holder used any
	return max(0, min(most, max(c.Others, most-c.Used.Memory)))
}

// WholeMemory returns what somebody gets who takes the whole card, once it is free.
func (c *Card) WholeMemory() gpu.MiB { return c.Memory - c.Foreign() }
