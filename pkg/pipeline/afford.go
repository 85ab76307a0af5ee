package pipeline

import (
	"cmp"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Fixed reports whether what the request takes of quotas is the same on every
// node: nothing of it is a share of a card, or a card of any vendor.
func Fixed(r *gpu.Request) bool {
	for i := range r.Asks {
		a := &r.Asks[i]
		if a.Whole || a.Memory == 0 || a.Cores == 0 && a.ProportionalCores || vendor(r, a) == "" {
			return false
		}
	}
	return true
}

// Least returns the least that the request takes of quotas; with a candidate, the
// least on its open cards, where it fits. A percentage and a whole card count in
// full. For a request of one container there is a choice of cards that takes just
// that.
func Least(r *gpu.Request, n *Candidate) gpu.Spending {
	var app, init, sidecar gpu.Spending
	for i := range r.Asks {
		a := &r.Asks[i]
		s := gpu.Spending{least(r, a, n)}
		switch a.Role {
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

func least(r *gpu.Request, a *gpu.Ask, n *Candidate) gpu.Spend {
	s := gpu.Spend{Vendor: vendor(r, a), Resource: a.Plugin, Devices: int64(a.Count)}
	if n == nil {
		s.Memory, s.Cores = a.Memory*gpu.MiB(a.Count), a.Cores*gpu.Cores(a.Count)
		if a.Whole {
			s.Whole, s.Cores = s.Devices, gpu.MostCores*gpu.Cores(a.Count)
		}
		return s
	}
	uses := cheapest(a, n)
	if len(uses) < a.Count {
		return s // it does not fit
	}
	s.Vendor = uses[0].vendor
	for _, u := range uses[:a.Count] {
		s.Memory += u.Memory
		s.Cores += u.Cores
	}
	if a.Whole {
		s.Whole = s.Devices
	}
	return s
}

func vendor(r *gpu.Request, a *gpu.Ask) gpu.Vendor { return cmp.Or(a.Vendor, r.Vendor) }

// use is what one device of an ask would hold on one card.
type use struct {
	gpu.Use
	vendor gpu.Vendor
}

// cheapest returns what one device of the ask would hold on each of the open cards
// that have room for it, of the vendor where it takes least, the least first.
func cheapest(a *gpu.Ask, n *Candidate) (best []use) {
	byVendor := map[gpu.Vendor][]use{}
	for _, i := range n.Open {
		c := &n.Node.Cards[i]
		if u := a.On(&c.Card); a.Suits(&c.Card) && holds(c, u) {
			byVendor[c.Vendor] = append(byVendor[c.Vendor], use{u, c.Vendor})
		}
	}
	var least gpu.MiB
	for _, v := range gpu.Vendors() {
		uses := byVendor[v]
		if len(uses) < a.Count {
			continue
		}
		slices.SortFunc(uses, func(x, y use) int { return cmp.Or(cmp.Compare(x.Memory, y.Memory), cmp.Compare(x.Cores, y.Cores)) })
		var sum gpu.MiB
		for _, u := range uses[:a.Count] {
			sum += u.Memory
		}
		if best == nil || sum < least {
			best, least = uses, sum
		}
	}
	return best
}

// holds reports whether the card has room for u.
func holds(c *ledger.Card, u gpu.Use) bool {
	if u.Exclusive {
		return c.Free()
	}
	return u.Memory <= c.FreeMemory() && u.Cores <= c.FreeCores() && c.FreeSlots() > 0
}

// Over is the refusal of what would pass a limit.
func Over(x gpu.Excess) Verdict {
	return Verdict{Reason: gpu.QuotaExceeded, Have: x.Used, Want: x.Asked, Limit: x.Limit}
}

// afford packs once more, on the smallest cards, what would pass a limit on those
// that were preferred.
func (p *Pipeline) afford(c *Cycle, n *Candidate, grants []gpu.Grant) ([]gpu.Grant, Verdict) {
	if _, over := c.Purse.Check(spending(grants)); !over {
		return grants, Verdict{}
	}
	cards := n.Node.Cards
	slices.SortStableFunc(n.Open, func(i, j int) int { return cmp.Compare(cards[i].Memory, cards[j].Memory) })
	grants, v := p.cfg.Pack.Pack(c, n)
	if !v.OK() {
		return nil, v
	}
	if x, over := c.Purse.Check(spending(grants)); over {
		return nil, Over(x)
	}
	return grants, Verdict{}
}

func spending(grants []gpu.Grant) gpu.Spending {
	p := gpu.Placement{Grants: grants}
	return p.Spending()
}
