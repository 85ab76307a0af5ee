package engine

import (
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// standing is what holds for a request in a state of the cluster whatever the
// nodes are like: whose it is, what its quotas leave it, and by what it is decided.
type standing struct {
	terms
	cycle *pipeline.Cycle
	// gate refuses the request everywhere: nothing may come from its namespace, it waits
	// for its task group, or it would pass a quota on any card.
	gate pipeline.Verdict
	// stay is until when it will be there at most, were it placed now; see horizon.
	// What services keep for themselves from before that on is not for it.
	stay time.Time
	// least is what it takes of quotas on any card, if there are limits.
	least gpu.Spending
	// picky says that whether it passes a quota depends on the cards.
	picky bool
}

// stand returns the standing of the request at that time. Whose it is its namespace
// says, not its Tenant. Who asks for no card is nobody's, and spends nothing. Members of
// a service stay for ever, whatever they say.
func stand(r *gpu.Request, in ledger.Snapshot, by terms, now time.Time) standing {
	own := *r
	s := standing{terms: by, cycle: &pipeline.Cycle{Request: &own, Outlook: by.outlook}}
	own.Tenant = ""
	if !r.AsksForCards() {
		return s
	}
	var closed gpu.Reason
	if own.Tenant, closed = in.Owner(r.Namespace); closed != "" {
		s.gate = pipeline.Verdict{Reason: closed}
		return s
	}
	if waits(r, in) {
		s.gate = pipeline.Verdict{Reason: gpu.GangIncomplete}
		return s
	}
	s.stay = now.Add(lasts(r, in))
	s.budget(in)
	return s
}

// horizon is how far ahead services keep cards from others: a week that a service sleeps,
// and a day. Who keeps them for longer, since its windows open once a year, would keep
// them from all that run for ever.
const horizon = 8 * 24 * time.Hour

// lasts says for how long the pod is there at most, as far as that matters.
func lasts(r *gpu.Request, in ledger.Snapshot) time.Duration {
	if _, served := in.Service(r.Group); r.Runtime <= 0 || r.Runtime > horizon || served {
		return horizon
	}
	return r.Runtime
}

// waits reports whether the request is of a task group that is not known, or no service:
// it is not placed by itself.
func waits(r *gpu.Request, in ledger.Snapshot) bool {
	if !r.Gang {
		return false
	}
	_, served := in.Service(r.Group)
	return !served
}

// meets returns the node as the request meets it: without what is kept for others.
func (s *standing) meets(n *ledger.Node) *ledger.Node {
	if !n.Keeps() {
		return n // as nearly always
	}
	return n.For(s.cycle.Request.Group, s.stay)
}

// budget looks at what quotas leave the request, which asks for cards, in a state under
// the same rules.
func (s *standing) budget(in ledger.Snapshot) {
	r := s.cycle.Request
	purse := in.Purse(r.Namespace)
	if !purse.Limited() {
		return
	}
	s.cycle.Purse, s.least = purse, pipeline.Least(r)
	s.gate = pipeline.Afford(purse, s.least)
	s.picky = s.gate.OK() && mayPass(r, purse)
}

// mayPass reports whether there may be cards on which the request would pass a
// limit that it does not pass by the least that it takes.
func mayPass(r *gpu.Request, p ledger.Purse) bool {
	if pipeline.Fixed(r) {
		return false
	}
	for _, v := range gpu.Vendors() {
		if _, over := p.Check(pipeline.Most(r, v)); over {
			return true
		}
		if pipeline.Named(r) {
			return false // it would be the same of any other
		}
	}
	return false
}

// judge says whether the request fits the node, quotas included; and if a quota is
// all that is in the way, what it would have to allow.
func (s *standing) judge(n *ledger.Node, scratch *pipeline.Scratch) (v pipeline.Verdict, prices []gpu.Spending) {
	if !s.gate.OK() {
		return s.gate, nil
	}
	n = s.meets(n)
	if v = s.verdict(n, scratch); v.OK() && s.picky {
		prices = s.pipe.Prices(s.cycle, n, scratch)
		v = pipeline.Afford(s.cycle.Purse, prices...)
	}
	return v, prices
}

// fits reports whether the request fits the node, quotas included.
func (s *standing) fits(n *ledger.Node) bool {
	v, _ := s.judge(n, &pipeline.Scratch{})
	return v.OK()
}

// assign chooses the cards, quotas included.
func (s *standing) assign(n *ledger.Node) (gpu.Placement, pipeline.Verdict) {
	if !s.gate.OK() {
		return gpu.Placement{}, s.gate
	}
	return s.pipe.Assign(s.cycle, s.meets(n))
}
