package scenario

import (
	"math"
	"testing"
	"time"
)

var row = Floor{Nodes: 32} // four racks, the second of them hot

func busyAll(f Floor, share float64) use {
	u := make(use, f.Nodes)
	for node := range u {
		for card := range u[node] {
			u[node][card] = share
		}
	}
	return u
}

const ages = 100 * lag

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 0.01 {
		t.Errorf("%s: %.3f degC, want %.3f", what, got, want)
	}
}

// TestCardsSettle: where temperatures end up is what the document's table says.
func TestCardsSettle(t *testing.T) {
	alone := busyAll(row, 0)
	alone[0][0] = 1
	oneNode := busyAll(row, 0)
	oneNode[0] = [cardsPerNode]float64{1, 1, 1, 1, 1, 1, 1, 1}
	tests := map[string]struct {
		busy                 use
		card, beside, across float64 // of node 0, its next card, the next node
		hot                  float64 // in the hot rack
	}{
		"nothing runs":        {busyAll(row, 0), 30, 30, 30, 44},
		"all is busy":         {busyAll(row, 1), 70, 70, 70, 84},
		"half as busy":        {busyAll(row, 0.5), 50, 50, 50, 64},
		"one card of a node":  {alone, 30 + 22 + 12.0/8, 30 + 12.0/8, 30 + 6.0/7/8, 44},
		"one node of a rack":  {oneNode, 30 + 22 + 12, 30 + 22 + 12, 30 + 6.0/7, 44},
		"another rack is hot": {busyAll(row, 0), 30, 30, 30, 30 + inletHot - inlet},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := NewHeat(row)
			h.Step(tc.busy, ages)
			near(t, "the card", h.cards[0][0], tc.card)
			near(t, "the card beside it", h.cards[0][1], tc.beside)
			near(t, "the next node", h.cards[1][0], tc.across)
			near(t, "the hot rack", h.cards[perRack][0], tc.hot)
		})
	}
}

// TestCardsLag: after the time constant a card has come 1-1/e of the way, in
// however many steps.
func TestCardsLag(t *testing.T) {
	busy := busyAll(row, 1)
	for _, steps := range []int{1, 2, 600} {
		h := NewHeat(row)
		for range steps {
			h.Step(busy, lag/time.Duration(steps))
		}
		near(t, "after the lag", h.cards[0][0], 30+40*(1-1/math.E))
		h.Step(busyAll(row, 0), ages)
		near(t, "when all is over", h.cards[0][0], 30)
	}
}

func TestHottest(t *testing.T) {
	h := NewHeat(row)
	h.cards[3] = [cardsPerNode]float64{90, 10, 10, 10, 10, 10, 10, 10}
	node, card := h.Hottest()
	near(t, "the node", node, 44)
	near(t, "the card", card, 90)
	if n := h.Throttled(); n != 1 {
		t.Errorf("%d cards slow down, want the one", n)
	}
}
