package engine

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Outlook says what stands in a pod's way for whose it is and what it asks for,
// whatever room there is. The zero Outlook is that nothing does.
type Outlook struct {
	// Closed says why nothing new may come from its namespace; "" if it may.
	Closed gpu.Reason
	// Unknown says that it is not known whose the pod is, as two Tenants claim its
	// namespace: its slices share cards with nobody.
	Unknown bool
	// Waits says that it is of a task group that is not known yet: until then no node
	// takes it.
	Waits bool
	// Never is the limit that it passes alone, however little else is held, and on
	// whatever cards: there may be others tomorrow.
	Never *gpu.Excess
	// Now is the limit that it passes together with what is held, on the cards that
	// there are.
	Now *gpu.Excess
}

// Foresee returns the outlook of a pod that asks so: at once, from what is known
// here, on a replica that does not decide too. Of quotas that count what the cards
// are like, Now goes by the least that any cards of the cluster make of the request,
// in use or not.
func (e *Engine) Foresee(r *gpu.Request) (o Outlook) {
	if !r.AsksForCards() {
		return o
	}
	in := e.cfg.Ledger.Snapshot()
	tenant, closed := in.Owner(r.Namespace)
	o.Closed, o.Unknown, o.Waits = closed, closed == "" && tenant == "", waits(r, in)
	purse := in.Purse(r.Namespace)
	if !purse.Limited() {
		return o
	}
	o.Never = excess(purse.Unspent(), pipeline.Least(r))
	o.Now = excess(purse, e.leastOf(r, in)...)
	return o
}

// excess is that of the first of the prices, if the purse allows none.
func excess(purse ledger.Purse, prices ...gpu.Spending) *gpu.Excess {
	if v := pipeline.Afford(purse, prices...); !v.OK() {
		return &gpu.Excess{Limit: v.Limit, Used: v.Have, Asked: v.Want}
	}
	return nil
}

// leastOf returns the least that the request takes of quotas on the cards that
// there are; where it leaves the vendor open, once for each that it may get.
// Containers of one pod may get cards of different vendors: no more is said of
// those than what holds on any card.
func (e *Engine) leastOf(r *gpu.Request, in ledger.Snapshot) (all []gpu.Spending) {
	if pipeline.Fixed(r) || len(r.Asks) > 1 && !pipeline.Named(r) {
		return []gpu.Spending{pipeline.Least(r)}
	}
	found := survey(r, e.catalogue.of(in))
	for _, v := range gpu.Vendors() {
		if found.has(v) || len(found) == 0 {
			all = append(all, pipeline.Sum(r, func(a *gpu.Ask) gpu.Spend { return found.device(r, a, v) }))
		}
	}
	return all
}

// kinds has the least memory and the least compute that one device of an ask takes
// of a vendor's cards; nothing where none suits.
type kinds map[kind]gpu.Use

type kind struct {
	ask    *gpu.Ask
	vendor gpu.Vendor
}

// survey looks at every kind of card for each of the asks.
func survey(r *gpu.Request, cards []*gpu.Card) kinds {
	found := kinds{}
	for _, c := range cards {
		for k := range r.Asks {
			if a := &r.Asks[k]; suits(r, a, c) {
				found.note(kind{a, c.Vendor}, a.On(c))
			}
		}
	}
	return found
}

// suits reports whether the card could ever be given to the ask.
func suits(r *gpu.Request, a *gpu.Ask, c *gpu.Card) bool {
	switch {
	case r.Vendor != "" && r.Vendor != c.Vendor, !a.Suits(c):
		return false
	case a.Whole:
		return c.TakesWhole() && c.Memory >= a.Memory
	}
	return c.TakesSlices()
}

func (f kinds) note(k kind, u gpu.Use) {
	if was, known := f[k]; known {
		u.Memory, u.Cores = min(u.Memory, was.Memory), min(u.Cores, was.Cores)
	}
	f[k] = u
}

func (f kinds) has(v gpu.Vendor) bool {
	for k := range f {
		if k.vendor == v {
			return true
		}
	}
	return false
}

// device is what one device of the ask takes where the vendor's cards are taken as
// far as they suit. Of what suits nowhere it is the least of any card.
func (f kinds) device(r *gpu.Request, a *gpu.Ask, v gpu.Vendor) gpu.Spend {
	for _, v := range append([]gpu.Vendor{v}, gpu.Vendors()...) {
		if u, ok := f[kind{a, v}]; ok {
			return gpu.Spend{Vendor: v, Memory: u.Memory, Cores: u.Cores}
		}
	}
	return pipeline.Floor(r, a)
}
