package fragment

import (
	"math"

	"heteroflow.io/heteroflow/pkg/demand"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Nodes are those of a snapshot as a demand.Learner looks at them.
type Nodes struct{ ledger.Snapshot }

var _ demand.Cluster = Nodes{}

// Version is that of the node.
func (n Nodes) Version(i int) uint64 { return n.At(i).Version }

// State fills in what newcomers can have of the node: nothing where it takes none.
func (n Nodes) State(i int, o *demand.Outlook, s *demand.State) {
	if node := n.At(i); !node.Unavailable {
		stateOf(o, node, s) // of too many kinds of cards some are left out
	}
}

// Supply counts the cards that take somebody, free or not.
func (n Nodes) Supply() demand.Supply {
	s := demand.Supply{}
	for i := range n.Len() {
		node := n.At(i)
		for k := range node.Cards {
			if c := &node.Cards[k]; !node.Unavailable && open(c) && (c.TakesWhole() || c.TakesSlices()) {
				s[demand.KindOf(&c.Card)]++
			}
		}
	}
	return s
}

// open reports whether the card is one to put something on, if it has room.
func open(c *ledger.Card) bool { return c.Healthy && !c.Cordoned }

// stateOf fills in what is left of the node, each card at its place; false where it
// has cards of too many kinds. Where the size of a node is not known its processors
// are not looked at.
func stateOf(o *demand.Outlook, n *ledger.Node, s *demand.State) (known bool) {
	s.SetCPU(math.MaxInt32)
	if n.CPU > 0 {
		s.SetCPU(max(0, n.CPU-n.UsedCPU))
	}
	known = len(n.Cards) <= demand.MostCards
	for i := range n.Cards {
		r, ok := room(o, &n.Cards[i])
		known = known && ok
		s.Add(r)
	}
	return known
}

// room is what is left of the card; none where it takes nobody in.
func room(o *demand.Outlook, c *ledger.Card) (demand.Room, bool) {
	if !open(c) || !c.Free() && c.FreeSlots() == 0 {
		return demand.Room{}, true
	}
	return o.Room(&c.Card, c.Free(), c.FreeMemory(), c.FreeCores())
}
