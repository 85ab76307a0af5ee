// Package pipeline runs the plugins: it judges whether a request fits a node,
// rates the nodes it fits, and chooses the cards.
//
//	Judge:  filters narrow the node's open cards -> places order them -> pack tries
//	Rate:   scores, each clamped to 0..100, weighted
//	Assign: what Judge's pack found, as a placement
//
// Judge and Assign take the same path, so what /filter accepted /bind accepts
// on the same state. Everything here is a function of its arguments: same node,
// request and policy give the same answer. A Pipeline never changes once built
// and is safe for concurrent use.
package pipeline

import (
	"cmp"

	"heteroflow.io/heteroflow/pkg/demand"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/topology"
)

// Verdict is an answer about one node. The zero Verdict accepts.
type Verdict struct {
	Reason gpu.Reason
	// Have and Want are the figures behind the refusal, in the reason's unit:
	// what the node could give at best, and what was asked. They go to events
	// and explanations, never into FailedNodes.
	Have, Want int64
	// Closed is how many cards the step took out, where that says more than what
	// is left.
	Closed int64
	// Limit is the quota that would be passed: Have of it is used, Want asked.
	Limit *gpu.Limit
	// Foreign is how much of a card's memory, in MiB, somebody uses who is not in the
	// books, where memory is what the card has too little of.
	Foreign int64
	// Gauge is what was measured, where that is in the way: Have of it, where less
	// than Want is allowed.
	Gauge gpu.Gauge
}

// OK reports whether the node was accepted.
func (v Verdict) OK() bool { return v.Reason == "" }

// Cycle is one decision about one request. It is shared by all nodes.
type Cycle struct {
	Request *gpu.Request
	// Nodes is how many nodes the decision may have to judge, 0 being as good as
	// 1: plugins that search share their time among them.
	Nodes int
	// Purse is what the request's namespace may still take. Assign keeps to it.
	// Judge does not look at it, so that a verdict about a node holds whatever has
	// been spent elsewhere; see Prices.
	Purse ledger.Purse
	// Outlook is what is asked for lately; nil: nothing is known.
	Outlook *demand.Outlook
	// Peers is where members of the request's group are. Scores alone may look at
	// it: it changes without the node.
	Peers Peers
}

// Candidate is one node under judgement, with the cards of it that are still
// open to the request. Plugins narrow and order Open, and filters demand what is
// said of Linked and bar cards; nothing else changes.
type Candidate struct {
	Node *ledger.Node
	Open []int // places in Node.Cards
	// JudgeOnly says that the verdict is all that is wanted: Pack need not
	// return grants.
	JudgeOnly bool
	// Linked says that the cards of one container have to be of one NVLink domain.
	Linked bool
	Barred []Bar // see Bar
}

// Domain returns the domain that the card at this place has to share with all
// others of its container; where nothing is demanded it is the same for all.
func (n *Candidate) Domain(place int) topology.Set {
	if !n.Linked {
		return 0
	}
	return n.Node.Links.Domain(place)
}

// Filter takes cards, or the whole node, out of the running, or says what cards
// must have in common. When the cards
// that are left are too few it says so with its own reason, so that the reason
// reported is that of the step that took the last card needed. What it goes by that
// has to do with who is on a card it only bars, see Bar.
type Filter interface {
	Name() string
	Filter(c *Cycle, n *Candidate) Verdict
}

// Pack finds out whether, and where, all containers of the request fit on the
// open cards at once, preferring cards in the order they are given.
type Pack interface {
	Name() string
	Pack(c *Cycle, n *Candidate) ([]gpu.Grant, Verdict)
}

// Score rates a node that fits, neutral being 50. What lies outside 0..100 is
// clamped.
type Score interface {
	Name() string
	Score(c *Cycle, n *ledger.Node) float64
}

// CardScore rates a node by the cards that the request would get there, as Assign
// chooses them where no quota is in the way.
type CardScore interface {
	Name() string
	Concerned
	// Knows reports whether the node tells what the plugin goes by. If not it is
	// Neutral, and no cards are chosen, which costs more than all else.
	Knows(n *ledger.Node) bool
	ScoreCards(c *Cycle, n *ledger.Node, grants []gpu.Grant) float64
}

// Concerned is implemented by scores of either kind that are about some requests
// alone. For the others they do not count. That they find all nodes Neutral would
// give the same order, but bring all totals nearer to each other: too near where
// kube-scheduler is told 11 steps of them.
type Concerned interface {
	Concerns(r *gpu.Request) bool
}

// Place orders the open cards, the best first.
type Place interface {
	Name() string
	Place(c *Cycle, n *Candidate)
}

// Keep narrows the open cards to those that keep accepts, and reports how many
// it took out.
func (n *Candidate) Keep(keep func(*ledger.Card) bool) (taken int) {
	left := n.Open[:0]
	for _, i := range n.Open {
		if keep(&n.Node.Cards[i]) {
			left = append(left, i)
		}
	}
	taken = len(n.Open) - len(left)
	n.Open = left
	return taken
}

// Any reports whether any open card is such.
func (n *Candidate) Any(such func(*ledger.Card) bool) bool {
	for _, i := range n.Open {
		if such(&n.Node.Cards[i]) {
			return true
		}
	}
	return false
}

// Suits says which cards count for an ask: (*gpu.Ask).Suits, or SuitsVendor where
// the model does not matter yet.
type Suits func(*gpu.Ask, *gpu.Card) bool

// Shortage returns the figures of the ask, among those that which accepts, that
// the open cards that suit it fall short of by most, their number alone
// considered; false when there is none.
func (c *Cycle) Shortage(n *Candidate, which func(*gpu.Ask) bool, suits Suits) (have, want int64, short bool) {
	for i := range c.Request.Asks {
		ask := &c.Request.Asks[i]
		if which != nil && !which(ask) {
			continue
		}
		got, of := int64(n.count(ask, suits)), int64(ask.Count)
		if got >= of {
			continue
		}
		// Not the first: the order of the containers must not show.
		if less := cmp.Or(cmp.Compare(of-got, want-have), cmp.Compare(of, want)); !short || less > 0 {
			have, want, short = got, of, true
		}
	}
	return have, want, short
}

// count returns how many open cards suit the ask; for one that any vendor's do, of
// the vendor that has most, since a container's devices come from one vendor.
func (n *Candidate) count(ask *gpu.Ask, suits Suits) int {
	most := 0
	cards := n.Node.Cards
	for at, i := range n.Open {
		if !suits(ask, &cards[i].Card) {
			continue
		}
		got := 0
		for _, j := range n.Open[at:] {
			if cards[j].Vendor == cards[i].Vendor && suits(ask, &cards[j].Card) {
				got++
			}
		}
		most = max(most, got)
	}
	return most
}
