package ledger

import (
	"cmp"
	"fmt"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/topology"
)

// Facts is what a node says of itself. It never changes once handed over.
type Facts struct {
	ID    gpu.NodeID
	Cards []gpu.Card // SetNode puts them InOrder
	// Links says how the cards are joined, by their places in that order.
	Links topology.Links

	Unavailable      bool // not ready, or unschedulable
	PreferNoSchedule bool // carries a taint of that effect

	CPU    gpu.MilliCPU // allocatable
	Memory gpu.Bytes    // allocatable
	Pods   int          // how many pods it takes; 0 if not known
	BootID string       // "" if not known

	Location topology.Location
	RDMA     RDMA

	// Dedicated is the label that keeps the node for a tenant; "" for a node that
	// is for all.
	Dedicated string
}

// RDMA is what a node says of remote direct memory access. The zero RDMA is that
// it says nothing.
type RDMA struct {
	Stated bool // it says whether it has it
	Able   bool // it has it
	Gbps   int  // how fast; 0 if it does not say
}

// ordered returns the facts with their cards in order.
func (f Facts) ordered() Facts {
	f.Cards = InOrder(f.Cards)
	return f
}

// InOrder returns the cards in the order that they have on a Node: by Index, then
// ID.
func InOrder(cards []gpu.Card) []gpu.Card {
	cards = slices.Clone(cards)
	slices.SortStableFunc(cards, func(a, b gpu.Card) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID))
	})
	return cards
}

// Holder is one pod on a card.
type Holder struct {
	Pod    gpu.PodID
	Tenant gpu.TenantID
	Use    gpu.Use
}

// Card is one card of a frozen node with those who are on it.
type Card struct {
	gpu.Card
	Used    gpu.Use  // the sum of all holders
	Holders []Holder // ordered by pod
	// Claims are those who are to come when others have gone; ordered by pod. None of them
	// is among Holders, or in Used.
	Claims []Holder
	// Claimed is what Claims take beyond what those still have who are to go for them. Who
	// comes leaves room for it.
	Claimed gpu.Use
	Closed  bool // taken off for a pod that we did not place; see closeForeign
	Fenced  bool // closed to newcomers: the books disagree about it; see Fence
	// Divided cards are closed to newcomers too: two are on it that may not be
	// together any more; see Govern.
	Divided bool
	// Reading is what was measured of the card lately; see SetReadings.
	Reading gpu.Reading
	// Departures is another number, and a larger one, whenever somebody has left the
	// card, and when the card is new; 0 for what a plan makes of it. What was measured
	// of its memory and utilisation before that is of those who were there then.
	Departures uint64
	// Others is the part of Foreign that was found before the last holders came or left.
	Others gpu.MiB
}

// Free reports whether nobody is on the card, as far as anyone knows, and nobody is
// to come.
func (c *Card) Free() bool {
	return c.empty() && len(c.Claims) == 0
}

// empty reports whether nobody is on the card, as far as anyone knows.
func (c *Card) empty() bool { return len(c.Holders) == 0 && !c.Closed && !c.Fenced }

// FreeMemory returns what further slices may take. Never below 0.
func (c *Card) FreeMemory() gpu.MiB {
	if c.taken() {
		return 0
	}
	return max(0, c.Usable-c.Used.Memory-c.Claimed.Memory-c.Foreign())
}

// FreeCores returns the compute that further slices may take. Never below 0.
func (c *Card) FreeCores() gpu.Cores {
	if c.taken() {
		return 0
	}
	return max(0, c.UsableCores-c.Used.Cores-c.Claimed.Cores)
}

// FreeSlots returns how many further containers the card takes. Never below 0.
func (c *Card) FreeSlots() int {
	if c.taken() {
		return 0
	}
	return max(0, c.MaxSlices-c.Used.Slots-c.Claimed.Slots)
}

// taken reports whether no slice can come onto the card whatever its size.
func (c *Card) taken() bool {
	return c.Closed || c.Fenced || c.Divided || c.Used.Exclusive || c.Claimed.Exclusive
}

// Node is a node at one moment: what it says of itself, and who holds what of
// it. Nodes are frozen: a change replaces the node.
type Node struct {
	Facts
	Cards  []Card       // those of Facts, in the same order
	Holds  []*Hold      // ordered by pod
	Fences []gpu.CardID // see Fence; never edited
	// Boundary is the one that Holds and Cards are judged by.
	Boundary Boundary
	// Readings is what was measured lately, less what those have left behind who are
	// there no more.
	Readings Readings
	// kept is what services take back of it; nil: nothing. Nothing above or below counts
	// it: see For.
	kept *promises
	// Version is another for each state of a node that the ledger has had, and for what
	// that is to those from whom all is kept that is kept; 0 for what a plan makes of it.
	Version    uint64
	UsedCPU    gpu.MilliCPU // the sum over Holds, of claims what Card.Claimed says
	UsedMemory gpu.Bytes    // likewise
	Claims     int          // how many of Holds are Claimed
}

// build makes the frozen node of these facts and holds. It is the only maker of
// nodes, so the books and every view of them add up alike. A hold on a card that
// the node does not list (any more) waits in Holds for the card to come back, and
// closes a free one meanwhile; see closeForeign. What was measured is that of the
// node before, if there was one; see remember.
func build(f Facts, holds []*Hold, fences []gpu.CardID, b Boundary, before *Node) *Node {
	n := &Node{Facts: f, Cards: make([]Card, len(f.Cards)), Holds: holds, Fences: fences, Boundary: b}
	for i := range f.Cards {
		n.Cards[i].Card = f.Cards[i]
		n.Cards[i].Fenced = slices.Contains(fences, f.Cards[i].ID)
	}
	claims := false
	for _, h := range holds {
		if isClaim(h) {
			claims = true
			continue
		}
		n.UsedCPU += h.CPU
		n.UsedMemory += h.Memory
		for i := range h.uses {
			n.occupy(h, &h.uses[i])
		}
	}
	if claims {
		n.enterClaims()
	}
	for i := range n.Cards {
		n.Cards[i].Divided = n.Cards[i].divided(b)
	}
	closeForeign(n.Cards, holds)
	if before != nil {
		n.remember(before)
		n.kept = before.kept.planned()
	}
	return n
}

// occupy enters one use into its card. A search per use is cheaper than an index
// per build: a node has few cards.
func (n *Node) occupy(h *Hold, u *gpu.CardUse) {
	if c := n.card(u.Card); c != nil {
		c.Used = c.Used.Plus(u.Use)
		c.Holders = append(c.Holders, Holder{h.Pod, h.Tenant, u.Use})
	}
}

// card returns the node's card of that ID, nil when it has none.
func (n *Node) card(id gpu.CardID) *Card {
	for i := range n.Cards {
		if n.Cards[i].ID == id {
			return &n.Cards[i]
		}
	}
	return nil
}

// Hold returns the pod's hold on this node, nil when it has none here. Every holder
// of a card of it has one.
func (n *Node) Hold(pod gpu.PodID) *Hold {
	if i, ok := find(n.Holds, pod); ok {
		return n.Holds[i]
	}
	return nil
}

// admit says why the node cannot take h; nil when it can. The pod holds nothing
// here yet. This is Reserve's decision, and that of Snapshot.With.
func (n *Node) admit(h *Hold) error {
	if len(h.Foreign) > 0 {
		return fmt.Errorf("cards that are not named: %w", ErrIllegal)
	}
	for _, u := range h.uses {
		c := n.card(u.Card)
		if c == nil {
			return fmt.Errorf("card %s is not there: %w", u.Card, ErrNoRoom)
		}
		if err := c.admit(h.Tenant, u.Use, n.Boundary); err != nil {
			return fmt.Errorf("card %s: %w", u.Card, err)
		}
	}
	return nil
}

// admit says why u of that tenant cannot join those who are on the card; nil
// when it can. It goes by the books alone: what was measured may change between a
// decision and its Reserve, and is looked at right before by who decides.
func (c *Card) admit(tenant gpu.TenantID, u gpu.Use, b Boundary) error {
	sum := c.Used.Plus(c.Claimed).Plus(u)
	switch {
	case c.Closed:
		return fmt.Errorf("closed for a foreign pod: %w", ErrNoRoom)
	case c.Fenced:
		return fmt.Errorf("fenced, as the books disagree about it: %w", ErrNoRoom)
	case c.Divided:
		return fmt.Errorf("tenants are on it that may not be together: %w", ErrBoundary)
	case u.Exclusive && len(c.Holders)+len(c.Claims) > 0:
		return fmt.Errorf("asked for alone, has %d holders: %w", len(c.Holders)+len(c.Claims), ErrNoRoom)
	case c.Used.Exclusive || c.Claimed.Exclusive:
		return fmt.Errorf("held exclusively: %w", ErrNoRoom)
	case u.Exclusive:
		return nil
	case sum.Memory > c.Usable:
		return fmt.Errorf("%d of %d MiB: %w", sum.Memory, c.Usable, ErrNoRoom)
	case sum.Cores > c.UsableCores:
		return fmt.Errorf("%d of %d percent: %w", sum.Cores, c.UsableCores, ErrNoRoom)
	case sum.Slots > c.MaxSlices:
		return fmt.Errorf("%d of %d slots: %w", sum.Slots, c.MaxSlices, ErrNoRoom)
	}
	for _, on := range [...][]Holder{c.Holders, c.Claims} {
		for _, h := range on {
			if !b.MayShare(tenant, h.Tenant) {
				return fmt.Errorf("tenants %q and %q: %w", tenant, h.Tenant, ErrBoundary)
			}
		}
	}
	return nil
}
