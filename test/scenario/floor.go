package scenario

import (
	"errors"
	"fmt"

	"heteroflow.io/heteroflow/test/simnode"
)

const (
	cardsPerNode = 8
	perRack      = 8 // nodes
	// everyHot makes one of so many racks a hot one.
	everyHot = 4
	// perZone racks make a zone.
	perZone = 8
)

const (
	labelZone = "topology.kubernetes.io/zone"
	labelRack = "heteroflow.io/rack"
)

// Floor is where the nodes stand: in racks of eight, of which every fourth, from
// the second on, stands where the air that comes in is warm already.
type Floor struct{ Nodes int }

// Validate says what is wrong with the number.
func (f Floor) Validate() error {
	if f.Nodes < perRack {
		return fmt.Errorf("%d nodes: want at least %d, which is one rack", f.Nodes, perRack)
	}
	if f.Nodes%perRack != 0 {
		return errors.New("nodes: want whole racks, of 8 each")
	}
	return nil
}

// Cards is how many there are.
func (f Floor) Cards() int { return f.Nodes * cardsPerNode }

// Racks is how many there are.
func (f Floor) Racks() int { return f.Nodes / perRack }

func rackOf(node int) int { return node / perRack }

func hot(rack int) bool { return rack%everyHot == 1 }

func nodeName(node int) string { return fmt.Sprintf("gpu-%04d", node) }

// specs are the nodes. They have processors and memory for more than their cards,
// so that only cards are short.
func (f Floor) specs() []simnode.Spec {
	specs := make([]simnode.Spec, f.Nodes)
	for i := range specs {
		name, rack := nodeName(i), rackOf(i)
		specs[i] = simnode.Spec{
			Name: name, CPU: "192", Memory: "2Ti",
			Labels: map[string]string{
				labelZone: fmt.Sprintf("zone-%d", rack/perZone),
				labelRack: fmt.Sprintf("rack-%02d", rack),
			},
			Cards: f.cards(name),
		}
	}
	return specs
}

func (f Floor) cards(node string) []simnode.Card {
	return simnode.Cards(node, cardsPerNode, "nvidia", "NVIDIA-H100-80GB-HBM3", 81920)
}

// place is a card: a node and its number there.
type place struct{ node, card int }

// places says of each card, by its UUID, where it is.
func (f Floor) places() map[string]place {
	all := make(map[string]place, f.Cards())
	for node := range f.Nodes {
		for _, c := range f.cards(nodeName(node)) {
			all[c.UUID] = place{node, c.Index}
		}
	}
	return all
}
