// Package tenant is the plugin `tenant`: nodes that are kept for another tenant,
// and cards beside a tenant that the pod's own may not share with, are out.
//
// It runs at two places. Early, a node that is dedicated to another tenant is
// refused with TenantNodeMismatch. After the cards have been narrowed down to
// those that would do, the ones are taken out that hold a slice of a tenant which
// the pod may not sit beside, or on which two are that may not be together; when
// too few are left the node is refused with NoTenantEligibleGPU, and says how
// many were closed for that. Cards that somebody holds whole are left to
// resource-filter, since waiting for a free card does not look at tenants. It
// has no arguments and cannot be disabled. The ledger checks the same boundary
// again when the cards are reserved.
package tenant

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Name is the plugin's name in configuration, metrics and documents.
const Name = "tenant"

// Nodes implements pipeline.Filter: dedicated nodes are for their tenant only.
type Nodes struct{}

// Cards implements pipeline.Filter: the boundary between tenants on one card.
type Cards struct{}

var (
	_ pipeline.Filter = Nodes{}
	_ pipeline.Filter = Cards{}
)

// Name returns "tenant".
func (Nodes) Name() string { return Name }

// Name returns "tenant".
func (Cards) Name() string { return Name }

// Filter refuses a node that is dedicated to another tenant.
func (Nodes) Filter(c *pipeline.Cycle, n *pipeline.Candidate) pipeline.Verdict {
	label := n.Node.Dedicated
	if label == "" {
		return pipeline.Verdict{}
	}
	if t := c.Request.Tenant; t == "" || t != n.Node.Boundary.Dedicated(label) {
		return pipeline.Verdict{Reason: gpu.TenantNodeMismatch}
	}
	return pipeline.Verdict{}
}

// Filter takes out the cards whose holders the request may not join.
func (Cards) Filter(c *pipeline.Cycle, n *pipeline.Candidate) pipeline.Verdict {
	shut := func(card *ledger.Card) bool { return closed(c.Request.Tenant, card, n.Node.Boundary) }
	if !n.Any(shut) {
		return pipeline.Verdict{} // as nearly always
	}
	slices := func(a *gpu.Ask) bool { return !a.Whole }
	_, _, already := c.Shortage(n, slices, (*gpu.Ask).Suits) // too few to begin with: not for this reason
	taken := n.Keep(func(card *ledger.Card) bool { return !shut(card) })
	if have, want, short := c.Shortage(n, slices, (*gpu.Ask).Suits); short && !already {
		return pipeline.Verdict{Reason: gpu.NoTenantEligibleGPU, Have: have, Want: want, Closed: int64(taken)}
	}
	return pipeline.Verdict{}
}

// closed reports whether the tenant may not join those on the card, or those who are to
// come there. Most are the tenant's own, and nobody has to be asked about those.
func closed(t gpu.TenantID, card *ledger.Card, b ledger.Boundary) bool {
	if card.Divided {
		return true
	}
	return strangers(t, card.Holders, b) || strangers(t, card.Claims, b)
}

// strangers reports whether the tenant may not be with one of those.
func strangers(t gpu.TenantID, on []ledger.Holder, b ledger.Boundary) bool {
	for i := range on {
		h := &on[i]
		own := t != "" && h.Tenant == t
		if !h.Use.Exclusive && !own && !b.MayShare(t, h.Tenant) {
			return true
		}
	}
	return false
}
