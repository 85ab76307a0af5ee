package ledger_test

import (
	"cmp"
	"regexp"
	"slices"

	diff "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// gauges is what the naive ledger knows of what was measured. It learns who has left
// a card by comparing who is there with who was there a step ago.
type gauges struct {
	told    map[gpu.NodeID]ledger.Readings
	was     map[gpu.NodeID]scene
	left    map[gpu.CardID]int // the step in which somebody left the card last, or it came
	looks   map[gpu.NodeID][]look
	step    int
	newcome map[gpu.CardID]bool // what left says of the last step
}

// scene is who was on a node.
type scene struct {
	cards   []gpu.Card
	holders map[gpu.CardID][]ledger.Holder
	claims  map[gpu.PodID][]gpu.Foreign
}

// look is a node as somebody saw it who measures.
type look struct {
	version uint64
	step    int
}

func newGauges() *gauges {
	return &gauges{
		told: map[gpu.NodeID]ledger.Readings{}, was: map[gpu.NodeID]scene{},
		left: map[gpu.CardID]int{}, looks: map[gpu.NodeID][]look{},
	}
}

func (m *naive) scene(id gpu.NodeID) scene {
	s := scene{m.nodes[id].Cards, map[gpu.CardID][]ledger.Holder{}, map[gpu.PodID][]gpu.Foreign{}}
	for _, c := range s.cards {
		s.holders[c.ID] = m.holders(id, c.ID)
	}
	for _, pod := range m.podsOn(id) {
		s.claims[pod] = m.pods[pod].p.Foreign
	}
	return s
}

// observe ends a step.
func (g *gauges) observe(m *naive) {
	g.step++
	g.newcome = map[gpu.CardID]bool{}
	for _, id := range nodeIDs() {
		if _, known := m.nodes[id]; !known {
			delete(g.told, id)
			delete(g.was, id)
			delete(g.looks, id)
			continue
		}
		now, was := m.scene(id), g.was[id]
		for _, c := range now.cards {
			if departed(was, now, c) {
				g.left[c.ID] = g.step
				g.newcome[c.ID] = true
				g.told[id] = empty(g.told[id], c.ID)
			}
		}
		g.was[id] = now
	}
}

func departed(was, now scene, c gpu.Card) bool {
	if !slices.ContainsFunc(was.cards, func(o gpu.Card) bool { return o.ID == c.ID }) {
		return true
	}
	for _, h := range was.holders[c.ID] {
		stays := func(o ledger.Holder) bool { return o.Pod == h.Pod && o.Use.Memory >= h.Use.Memory }
		if !slices.ContainsFunc(now.holders[c.ID], stays) {
			return true
		}
	}
	for pod, claims := range was.claims {
		if slices.Equal(now.claims[pod], claims) {
			continue
		}
		if slices.ContainsFunc(claims, func(f gpu.Foreign) bool { return cmp.Or(f.Vendor, c.Vendor) == c.Vendor }) {
			return true
		}
	}
	return false
}

// empty returns the readings without what a pod on the card had of it.
func empty(r ledger.Readings, id gpu.CardID) ledger.Readings {
	next := map[gpu.CardID]gpu.Reading{}
	for other, x := range r.Cards {
		if other == id {
			x = gpu.Reading{Temperature: x.Temperature, Power: x.Power, PowerLimit: x.PowerLimit}
		}
		next[other] = x
	}
	r.Cards = next
	return r
}

func drawFigure(t *rapid.T, name string) gpu.Figure {
	if rapid.Bool().Draw(t, name+" known") {
		return gpu.Measured(rapid.SampledFrom([]int64{0, 1, 10, 11, 46, 100, 120}).Draw(t, name))
	}
	return gpu.Figure{}
}

// Measure tells of a node what somebody has measured who looked at it a while ago.
func (r *run) Measure(t *rapid.T) {
	id := rapid.SampledFrom(nodeIDs()).Draw(t, "node")
	told := ledger.Readings{CPU: drawFigure(t, "cpu"), Memory: drawFigure(t, "memory"), Cards: map[gpu.CardID]gpu.Reading{}}
	for _, c := range cardIDsOf(id) {
		if rapid.Bool().Draw(t, "measured") {
			told.Cards[c] = gpu.Reading{MemoryUsed: drawFigure(t, "used"), Utilisation: drawFigure(t, "busy"), Temperature: drawFigure(t, "heat")}
		}
	}
	want, seen := told, r.gauges.step
	if looks := r.gauges.looks[id]; len(looks) > 0 && rapid.Bool().Draw(t, "says when") {
		at := rapid.SampledFrom(looks).Draw(t, "look")
		told.Seen, seen = at.version, at.step
	}
	for _, c := range cardIDsOf(id) {
		if r.gauges.left[c] > seen {
			want = empty(want, c)
		}
	}
	r.ledger.SetReadings(id, told)
	before := nodeIn(r.ledger.Snapshot(), id)
	r.ledger.SetReadings(id, told) // a repeat replaces nothing
	if after := nodeIn(r.ledger.Snapshot(), id); before != after {
		t.Fatalf("%s is another one though the same was measured", id)
	}
	if _, known := r.naive.nodes[id]; known {
		r.gauges.told[id] = want
	}
}

func nodeIn(s ledger.Snapshot, id gpu.NodeID) *ledger.Node {
	n, _ := s.Node(id)
	return n
}

// checkReadings compares what is known of a node's measures, and when the cards say
// that somebody has left them.
func (r *run) checkReadings(t *rapid.T, id gpu.NodeID, n *ledger.Node) {
	want := r.gauges.told[id]
	if n.Readings.CPU != want.CPU || n.Readings.Memory != want.Memory {
		t.Fatalf("%s: measured %+v, want %+v", id, n.Readings, want)
	}
	before, _ := r.before.Node(id)
	for i := range n.Cards {
		c := &n.Cards[i]
		if d := diff.Diff(want.Cards[c.ID], c.Reading); d != "" {
			t.Fatalf("%s of %s, measured (-want +got):\n%s", c.ID, id, d)
		}
		var earlier uint64
		old := cardBefore(before, c.ID)
		if old != nil {
			earlier = old.Departures
		}
		if fresh := r.gauges.newcome[c.ID]; fresh && c.Departures <= earlier || !fresh && c.Departures != earlier {
			t.Fatalf("%s: departures %d after %d, somebody left or it is new: %t", c.ID, c.Departures, earlier, fresh)
		}
		checkForeign(t, old, c)
		if old != nil {
			r.checkHides(t, old, c)
		}
	}
	r.gauges.looks[id] = append(r.gauges.looks[id], look{n.Version, r.gauges.step})
}

// checkForeign: what the holders may have, what is kept back and what is somebody
// else's cover what is used; nothing is somebody else's that is kept back. While
// nothing is known there is no more of it than there was.
func checkForeign(t *rapid.T, before, c *ledger.Card) {
	least, most := gpu.MiB(0), gpu.MiB(0)
	if before != nil && !c.Used.Exclusive {
		most = before.Foreign()
	}
	if used := c.Reading.MemoryUsed; used.Known && !c.Used.Exclusive {
		most = min(gpu.MiB(used.Value), c.Memory) - max(0, c.Memory-c.Usable)
		least, most = max(0, most-c.Used.Memory), max(0, most)
	}
	if got := c.Foreign(); got < least || got > most {
		t.Fatalf("foreign memory of %+v: %d, want %d to %d", c, got, least, most)
	}
}

// checkHides: while as much is used, or nothing has been measured since somebody left,
// who is on the way to the card makes nothing of it his that was somebody else's.
func (r *run) checkHides(t *rapid.T, before, now *ledger.Card) {
	settled := func(h ledger.Holder) bool {
		there := slices.ContainsFunc(before.Holders, func(o ledger.Holder) bool {
			return o.Pod == h.Pod && o.Use.Memory == h.Use.Memory && o.Use.Exclusive == h.Use.Exclusive
		})
		return !there && r.naive.pods[h.Pod].state != ledger.Held
	}
	left := r.gauges.newcome[now.ID]
	switch {
	case before.Card != now.Card, now.Used.Exclusive, now.Reading == gpu.Reading{}:
	case !left && before.Reading.MemoryUsed != now.Reading.MemoryUsed:
	case slices.ContainsFunc(now.Holders, settled):
	case now.Foreign() != before.Foreign():
		t.Fatalf("foreign memory of %+v: %d, and %d before", now, now.Foreign(), before.Foreign())
	}
}

func cardBefore(n *ledger.Node, id gpu.CardID) *ledger.Card {
	if n == nil {
		return nil
	}
	if k := slices.IndexFunc(n.Cards, func(c ledger.Card) bool { return c.ID == id }); k >= 0 {
		return &n.Cards[k]
	}
	return nil
}

// sameButWhen compares what two looks show, whenever anybody has left a card.
func sameButWhen(a, b ledger.Snapshot) bool {
	when := regexp.MustCompile(`"Departures":\d+`)
	return when.ReplaceAllString(freeze(a), "") == when.ReplaceAllString(freeze(b), "")
}

func measures() diff.Option {
	return cmpopts.IgnoreFields(ledger.Card{}, "Reading", "Departures", "Others")
}
