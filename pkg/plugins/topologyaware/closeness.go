package topologyaware

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// The parts of how close two cards are: in parts of 900, so that a step of distance is
// a whole number.
const (
	byNUMA  = 450
	byPCIe  = 270
	byP2P   = 180
	closest = byNUMA + byPCIe + byP2P
)

// The distances of topology.Link: of cards that are joined, and of two sockets.
const joined, furthest = 5, 50

// closeness is how close two cards of the node are, 0 to closest. What is not known
// is half of its part.
func closeness(n *ledger.Node, a, b int) uint16 {
	sum := byNUMA / 2
	if x, y := numa(n, a), numa(n, b); x != gpu.NoNUMA && y != gpu.NoNUMA {
		sum = 0
		if x == y {
			sum = byNUMA
		}
	}
	link := n.Links.Between(a, b)
	if apart, known := link.Distance(); known {
		sum += byPCIe * (furthest - apart) / (furthest - joined)
	} else {
		sum += byPCIe / 2
	}
	switch reaches, known := link.Reaches(); {
	case !known:
		sum += byP2P / 2
	case reaches:
		sum += byP2P
	}
	return uint16(sum)
}

// numa is the card's NUMA node, as the topology has it or else as the card has it.
func numa(n *ledger.Node, place int) int {
	if node := n.Links.NUMA(place); node != gpu.NoNUMA {
		return node
	}
	return n.Cards[place].NUMA
}
