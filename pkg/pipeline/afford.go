package pipeline

import (
	"cmp"
	"iter"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/topology"
)

// Least returns what the request takes of quotas wherever it goes. What depends on
// the cards is not in it: the size of a percentage, memory of a whole card beyond
// what is named and all of its compute, and the vendor where any will do; nor what init containers take then,
// as it is not known beside whose cards that has to be counted.
func Least(r *gpu.Request) gpu.Spending {
	named := *r
	if len(r.Asks) > 1 && !Named(r) {
		named.Asks = slices.DeleteFunc(slices.Clone(r.Asks), func(a gpu.Ask) bool { return a.Role == gpu.Init })
	}
	return Sum(&named, func(a *gpu.Ask) gpu.Spend { return Floor(r, a) })
}

// Floor returns what one device of the ask takes on any card.
func Floor(r *gpu.Request, a *gpu.Ask) gpu.Spend {
	s := gpu.Spend{Vendor: vendor(r, a), Memory: a.Memory}
	if !a.Whole { // a whole card is charged for the compute that it has
		s.Cores = a.Cores
	}
	return s
}

// Named reports whether the request leaves no vendor open.
func Named(r *gpu.Request) bool {
	open := func(a gpu.Ask) bool { return a.Vendor == "" }
	return r.Vendor != "" || !slices.ContainsFunc(r.Asks, open)
}

// Most returns what the request takes of quotas at most, where it gets cards of
// that vendor: no container shares a card with an init container of its pod.
func Most(r *gpu.Request, v gpu.Vendor) (sum gpu.Spending) {
	for i := range r.Asks {
		a := &r.Asks[i]
		d := gpu.Spend{Vendor: cmp.Or(vendor(r, a), v), Memory: a.Memory, Cores: a.Cores}
		if a.Whole || a.Memory == 0 {
			d.Memory = unbounded
		}
		if a.Whole || a.Cores == 0 && a.ProportionalCores {
			d.Cores = gpu.MostCores
		}
		sum = sum.Plus(gpu.Spending{times(a, d)})
	}
	return sum
}

// unbounded is more than any card has, under any overcommit.
const unbounded = 100 * gpu.MostMemory

// Fixed reports whether the request takes just Least of quotas everywhere.
func Fixed(r *gpu.Request) bool {
	for i := range r.Asks {
		a := &r.Asks[i]
		switch {
		case a.Whole, a.Memory == 0, a.Cores == 0 && a.ProportionalCores:
			return false
		case a.Role == gpu.Init && len(r.Asks) > 1: // it may need another card
			return false
		}
	}
	return Named(r)
}

func vendor(r *gpu.Request, a *gpu.Ask) gpu.Vendor { return cmp.Or(a.Vendor, r.Vendor) }

// Sum adds up what the request takes where each device of an ask has the vendor,
// the memory and the compute that device says: the larger of its containers and of
// an init container, and the sidecars. A placement takes no less, and more where an
// init container gets a card of its own.
func Sum(r *gpu.Request, device func(*gpu.Ask) gpu.Spend) gpu.Spending {
	var app, init, sidecar gpu.Spending
	for i := range r.Asks {
		a := &r.Asks[i]
		switch s := (gpu.Spending{times(a, device(a))}); a.Role {
		case gpu.App:
			app = app.Plus(s)
		case gpu.Init:
			init = init.Max(s)
		case gpu.Sidecar:
			sidecar = sidecar.Plus(s)
		}
	}
	return app.Max(init).Plus(sidecar)
}

// times is what all devices of an ask take that take d each.
func times(a *gpu.Ask, d gpu.Spend) gpu.Spend {
	d.Resource, d.Devices = a.Plugin, int64(a.Count)
	if a.Whole {
		d.Whole = d.Devices
	}
	d.Memory *= gpu.MiB(a.Count)
	d.Cores *= gpu.Cores(a.Count)
	return d
}

// Prices returns what the request may take of quotas on a node that it fits: one
// Spending for each way to choose the cards that Assign tries, in that order.
func (p *Pipeline) Prices(c *Cycle, n *ledger.Node, s *Scratch) (prices []gpu.Spending) {
	if v := p.narrow(c, s.begin(n)); !v.OK() {
		return nil
	}
	if cards := &s.node; len(c.Request.Asks) == 1 && len(cards.Open) > 0 && cards.uniform() {
		a, card := &c.Request.Asks[0], &n.Cards[cards.Open[0]].Card
		u := a.On(card)
		return []gpu.Spending{{times(a, gpu.Spend{Vendor: card.Vendor, Memory: u.Memory, Cores: u.Cores})}}
	}
	for grants, v := range p.ways(c, &s.node) {
		price := spending(grants)
		if v.OK() && !slices.ContainsFunc(prices, func(o gpu.Spending) bool { return slices.Equal(o, price) }) {
			prices = append(prices, price)
		}
	}
	return prices
}

// choose returns the first choice of cards that the purse allows.
func (p *Pipeline) choose(c *Cycle, n *Candidate) ([]gpu.Grant, Verdict) {
	var refused Verdict
	for grants, v := range p.ways(c, n) {
		if v.OK() && c.Purse.Limited() {
			v = Afford(c.Purse, spending(grants))
		}
		if v.OK() {
			return grants, v
		}
		if refused.OK() {
			refused = v
		}
	}
	return nil, refused
}

// Afford says whether the purse allows one of the prices. The figures are those of
// the first.
func Afford(p ledger.Purse, prices ...gpu.Spending) (refused Verdict) {
	for _, price := range prices {
		x, over := p.Check(price)
		if !over {
			return Verdict{}
		}
		if refused.OK() {
			refused = Verdict{Reason: gpu.QuotaExceeded, Have: x.Used, Want: x.Asked, Limit: x.Limit}
		}
	}
	return refused
}

// ways yields the choices of cards that there are on the narrowed node: the one
// preferred, and where that makes a difference to quotas those on the smallest
// cards, of each kinship by turns. If there is none it yields why.
func (p *Pipeline) ways(c *Cycle, n *Candidate) iter.Seq2[[]gpu.Grant, Verdict] {
	return func(yield func([]gpu.Grant, Verdict) bool) {
		p.order(c, n)
		grants, v := p.cfg.Pack.Pack(c, n)
		if v = p.blame(c, n, v); !yield(grants, v) || !v.OK() || n.uniform() {
			return
		}
		for _, k := range n.kinships() {
			n.thrifty(c.Request, k)
			if !yield(p.cfg.Pack.Pack(c, n)) {
				return
			}
		}
	}
}

// uniform reports whether it makes no difference to quotas which of the open cards
// somebody gets.
func (n *Candidate) uniform() bool {
	cards := n.Node.Cards
	for _, i := range n.Open {
		a, b := &cards[i], &cards[n.Open[0]]
		if a.Vendor != b.Vendor || a.Memory != b.Memory || a.Usable != b.Usable || a.Cores != b.Cores {
			return false
		}
	}
	return true
}

// kinship is what the cards of one container have in common.
type kinship struct {
	vendor gpu.Vendor
	domain topology.Set
}

func (n *Candidate) kinship(place int) kinship {
	return kinship{n.Node.Cards[place].Vendor, n.Domain(place)}
}

// kinships returns those of the open cards, in order.
func (n *Candidate) kinships() []kinship {
	all := make([]kinship, len(n.Open))
	for k, i := range n.Open {
		all[k] = n.kinship(i)
	}
	slices.SortFunc(all, func(a, b kinship) int {
		return cmp.Or(cmp.Compare(a.vendor, b.vendor), cmp.Compare(a.domain, b.domain))
	})
	return slices.Compact(all)
}

// thrifty orders the open cards: those of the kinship first, and those before the
// others of which the request takes less.
func (n *Candidate) thrifty(r *gpu.Request, k kinship) {
	cards := n.Node.Cards
	slices.SortFunc(n.Open, func(i, j int) int {
		a, b := &cards[i].Card, &cards[j].Card
		x, y := cost(r, a), cost(r, b)
		return cmp.Or(
			cmp.Compare(first(n.kinship(i) == k), first(n.kinship(j) == k)),
			cmp.Compare(x.Memory, y.Memory),
			cmp.Compare(x.Cores, y.Cores),
			cmp.Compare(a.ID, b.ID),
		)
	})
}

// cost is what a device would hold on the card; of several containers, whose asks
// may differ, all that there is.
func cost(r *gpu.Request, c *gpu.Card) gpu.Use {
	if len(r.Asks) == 1 {
		return r.Asks[0].On(c)
	}
	return gpu.Use{Memory: c.Memory + c.Usable}
}

func first(yes bool) int {
	if yes {
		return 0
	}
	return 1
}

func spending(grants []gpu.Grant) gpu.Spending {
	p := gpu.Placement{Grants: grants}
	return p.Spending()
}
