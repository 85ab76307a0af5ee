package scenario

import (
	"math"
	"time"
)

// The climate, in degrees Celsius: a card that does nothing is warmer than the
// air that comes in by idleRise; what it does, what its node does, and what the
// other nodes of its rack do, each at full use adds its share. So a card at full
// use in a node and a rack at full use comes to 70, in a hot rack to 84, at which
// cards of this kind slow down.
const (
	inlet     = 22.0
	inletHot  = 36.0
	idleRise  = 8.0
	cardRise  = 22.0 // at full use of the card
	nodeRise  = 12.0 // at full use of all cards of the node, itself included
	rackRise  = 6.0  // at full use of all cards of the other nodes of the rack
	throttles = 82.0 // cards slow down above it
)

// lag is the time after which a card has come two thirds of the way to the
// temperature at which it would stay: in the cluster's own time.
const lag = 5 * time.Minute

// use is how busy each card of each node is, 0 to 1.
type use [][cardsPerNode]float64

// Heat is how warm the cards are.
type Heat struct {
	floor Floor
	cards [][cardsPerNode]float64 // node -> card -> degrees Celsius
}

// NewHeat returns cards that have done nothing for long.
func NewHeat(f Floor) *Heat {
	h := &Heat{floor: f, cards: make([][cardsPerNode]float64, f.Nodes)}
	for node := range h.cards {
		for card := range h.cards[node] {
			h.cards[node][card] = air(node) + idleRise
		}
	}
	return h
}

func air(node int) float64 {
	if hot(rackOf(node)) {
		return inletHot
	}
	return inlet
}

// Step lets time pass in which the cards are as busy as that. It is exact however
// long the time: two halves of it come to the same.
func (h *Heat) Step(busy use, d time.Duration) {
	way := 1 - math.Exp(-d.Seconds()/lag.Seconds())
	for node := range h.cards {
		surroundings := air(node) + idleRise + nodeRise*mean(busy[node]) + rackRise*h.neighbours(busy, node)
		for card := range h.cards[node] {
			t := &h.cards[node][card]
			*t += way * (surroundings + cardRise*busy[node][card] - *t)
		}
	}
}

// neighbours is how busy the other nodes of the rack are.
func (h *Heat) neighbours(busy use, node int) float64 {
	first := rackOf(node) * perRack
	sum := 0.0
	for n := first; n < first+perRack; n++ {
		if n != node {
			sum += mean(busy[n])
		}
	}
	return sum / (perRack - 1)
}

// Hottest is the highest mean of a node, and the highest of a card.
func (h *Heat) Hottest() (node, card float64) {
	for _, cards := range h.cards {
		node = max(node, mean(cards))
		for _, t := range cards {
			card = max(card, t)
		}
	}
	return node, card
}

// Throttled is how many cards are so warm that they slow down.
func (h *Heat) Throttled() (n int) {
	for _, cards := range h.cards {
		for _, t := range cards {
			if t > throttles {
				n++
			}
		}
	}
	return n
}

func mean(of [cardsPerNode]float64) float64 {
	sum := 0.0
	for _, v := range of {
		sum += v
	}
	return sum / cardsPerNode
}
