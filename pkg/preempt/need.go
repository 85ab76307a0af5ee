package preempt

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// need is what a request cannot do without wherever it goes, by which most of what
// would not do is passed over without a Trial: the ledger never puts more onto a card
// than it has, nor anybody beside who has one alone.
type need struct {
	r *gpu.Request
	// apart is how many cards it has alone at once.
	apart int
}

func needOf(r *gpu.Request) need {
	d := need{r: r}
	for i := range r.Asks {
		if a := &r.Asks[i]; a.Whole && a.Role != gpu.Init {
			d.apart += a.Count
		}
	}
	return d
}

// Roomy reports whether the node has the processors, the memory and the place for one
// more pod, as far as it is known how much it has.
func Roomy(n *ledger.Node, r *gpu.Request) bool {
	return (r.CPU <= 0 || n.CPU == 0 || n.UsedCPU+r.CPU <= n.CPU) &&
		(r.Memory <= 0 || n.Memory == 0 || n.UsedMemory+r.Memory <= n.Memory) &&
		(n.Pods == 0 || len(n.Holds) < n.Pods)
}

// cards reports whether the cards may do, of which used says what is taken.
func (d *need) cards(cards []ledger.Card, used func(i int) gpu.Use) bool {
	var room [gpu.MostCards]gpu.Use // on the stack
	left := room[:0]
	for i := range cards {
		left = append(left, used(i))
	}
	for i := range d.r.Asks {
		if !d.takes(cards, left, &d.r.Asks[i]) {
			return false
		}
	}
	return true
}

// takes reports whether there are cards enough for the ask, beside those that the pod
// has alone at the same time.
func (d *need) takes(cards []ledger.Card, used []gpu.Use, a *gpu.Ask) bool {
	own, all := 0, 0
	for i := range cards {
		c := &cards[i].Card
		fit := a.Suits(c) && takes(c, a, used[i])
		if fit {
			own++
		}
		if fit || d.apart > 0 && used[i].Slots == 0 && d.wanted(c) {
			all++
		}
	}
	need := d.apart
	if !a.Whole && a.Role != gpu.Init {
		need += a.Count
	}
	return own >= a.Count && all >= need
}

// wanted reports whether a container might have the card alone.
func (d *need) wanted(c *gpu.Card) bool {
	return slices.ContainsFunc(d.r.Asks, func(a gpu.Ask) bool { return a.Whole && a.Suits(c) })
}

func takes(c *gpu.Card, a *gpu.Ask, used gpu.Use) bool {
	if a.Whole {
		return used.Slots == 0
	}
	sum := used.Plus(a.On(c))
	return !used.Exclusive && sum.Memory <= c.Usable && sum.Cores <= c.UsableCores && sum.Slots <= c.MaxSlices
}

// now reports whether the node may do as it is.
func (d *need) now(n *ledger.Node) bool {
	return Roomy(n, d.r) && d.cards(n.Cards, func(i int) gpu.Use { return n.Cards[i].Used })
}
