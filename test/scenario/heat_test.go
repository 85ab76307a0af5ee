package scenario

import (
	"math"
	"testing"
	"time"
)

// full is the use of all cards of these nodes.
func full(f Floor, nodes ...int) use {
	busy := make(use, f.Nodes)
	for _, n := range nodes {
		for card := range busy[n] {
			busy[n][card] = 1
		}
	}
	return busy
}

func rack(n int) (nodes []int) {
	for i := range perRack {
		nodes = append(nodes, n*perRack+i)
	}
	return nodes
}

// The figures that docs/placement.md tells of the climate.
func TestWhereTemperaturesStay(t *testing.T) {
	f := Floor{Nodes: 32}
	oneCard := make(use, f.Nodes)
	oneCard[0][0] = 1
	tests := map[string]struct {
		busy       use
		node       int
		mean, card float64 // of the node, and of its first card
	}{
		"nobody does anything":           {make(use, f.Nodes), 0, 30, 30},
		"the same in a hot rack":         {make(use, f.Nodes), 24, 44, 44},
		"one card":                       {oneCard, 0, 30 + 1.5 + 22.0/8, 30 + 1.5 + 22},
		"one node":                       {full(f, 0), 0, 64, 64},
		"its neighbour feels it":         {full(f, 0), 1, 30 + 6.0/7, 30 + 6.0/7},
		"the next rack does not":         {full(f, rack(0)...), 8, 30, 30},
		"a whole rack":                   {full(f, rack(0)...), 0, 70, 70},
		"a whole rack at the hot end":    {full(f, rack(3)...), 24, 84, 84},
		"an idle node in a rack at work": {full(f, rack(0)[1:]...), 0, 36, 36},
		"a hot idle node in one at work": {full(f, rack(3)[1:]...), 24, 50, 50},
		"a hot node by itself":           {full(f, 24), 24, 78, 78},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := NewHeat(f)
			h.Step(tc.busy, 100*lag)
			if got := mean(h.cards[tc.node]); !near(got, tc.mean) {
				t.Errorf("the node is at %v, want %v", got, tc.mean)
			}
			if got := h.cards[tc.node][0]; !near(got, tc.card) {
				t.Errorf("its first card is at %v, want %v", got, tc.card)
			}
		})
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

// However the time is cut up, cards come to the same; and never past where they
// would stay.
func TestTimeCanBeCutUp(t *testing.T) {
	f := Floor{Nodes: 8}
	busy := full(f, 0, 1, 2)
	once, often := NewHeat(f), NewHeat(f)
	once.Step(busy, lag)
	for range 1000 {
		often.Step(busy, lag/1000)
	}
	for node := range f.Nodes {
		if a, b := once.cards[node][0], often.cards[node][0]; !near(a, b) {
			t.Errorf("node %d is at %v after one step, at %v after a thousand", node, a, b)
		}
	}
	stays := NewHeat(f)
	stays.Step(busy, 100*lag)
	if way := (once.cards[0][0] - 30) / (stays.cards[0][0] - 30); !near(way, 1-1/math.E) {
		t.Errorf("after the lag a card has come %v of its way, want two thirds", way)
	}
	once.Step(busy, 0)
	if a, b := once.cards[0][0], often.cards[0][0]; !near(a, b) {
		t.Errorf("in no time a card went from %v to %v", b, a)
	}
}

func TestCardsCoolDownAgain(t *testing.T) {
	f := Floor{Nodes: 8}
	h := NewHeat(f)
	h.Step(full(f, rack(0)...), 10*lag)
	h.Step(make(use, f.Nodes), 100*lag)
	if node, card := h.Hottest(); !near(node, 30) || !near(card, 30) {
		t.Errorf("long after all work the hottest are at %v and %v, want 30", node, card)
	}
}

func TestHottest(t *testing.T) {
	f := Floor{Nodes: 32}
	h := NewHeat(f)
	h.Step(full(f, rack(3)...), 100*lag)
	if node, card := h.Hottest(); !near(node, 84) || !near(card, 84) {
		t.Errorf("hottest are at %v and %v, want 84", node, card)
	}
	if got := h.Throttled(); got != perRack*cardsPerNode {
		t.Errorf("%d cards slow down, want those of the hot rack, 64", got)
	}
	if got := NewHeat(f).Throttled(); got != 0 {
		t.Errorf("%d idle cards slow down", got)
	}
}

func TestFloor(t *testing.T) {
	for nodes, good := range map[int]bool{8: true, 128: true, 0: false, 4: false, 12: false, -8: false} {
		if err := (Floor{Nodes: nodes}).Validate(); (err == nil) != good {
			t.Errorf("%d nodes: %v", nodes, err)
		}
	}
	f := Floor{Nodes: 128}
	specs, places := f.specs(), f.places()
	if len(places) != 1024 || f.Cards() != 1024 || f.Racks() != 16 {
		t.Errorf("%d places, %d cards, %d racks, want 1024, 1024, 16", len(places), f.Cards(), f.Racks())
	}
	racks, hots := map[string]int{}, 0
	for i, s := range specs {
		racks[s.Labels[labelZone]+"/"+s.Labels[labelRack]]++
		if hot(rackOf(i)) {
			hots++
		}
		for _, c := range s.Cards {
			if got := places[c.UUID]; got != (place{i, c.Index}) {
				t.Errorf("card %s is at %v, want node %d, card %d", c.UUID, got, i, c.Index)
			}
		}
	}
	if len(racks) != 16 || racks["zone-1/rack-15"] != 8 || hots != 32 {
		t.Errorf("racks %v, %d hot nodes, want 16 of 8, and 32", racks, hots)
	}
}

func TestUseOfTime(t *testing.T) {
	if got := inCluster(3 * time.Second); got != 3*time.Minute {
		t.Errorf("3 s stand for %v, want 3 min", got)
	}
}
