// Package tenant is the plugin `tenant`: no slice beside a tenant that its own
// may not share a card with.
//
// Cards with a slice of such a tenant are taken out; when too few are left the
// node is refused with NoTenantEligibleGPU. Cards that somebody holds whole are
// left to resource-filter, since waiting for a free card does not look at
// tenants. It has no arguments and cannot be disabled. The ledger checks the
// same boundary again when the cards are reserved.
package tenant

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Name is the plugin's name in configuration, metrics and documents.
const Name = "tenant"

// Plugin implements pipeline.Filter.
type Plugin struct{ Boundary ledger.Boundary }

var _ pipeline.Filter = Plugin{}

// Name returns "tenant".
func (Plugin) Name() string { return Name }

// Filter takes out the cards that are shared by tenants this one may not join.
func (p Plugin) Filter(c *pipeline.Cycle, n *pipeline.Candidate) pipeline.Verdict {
	t := c.Request.Tenant
	if !n.Any(func(card *ledger.Card) bool { return !p.open(t, card) }) {
		return pipeline.Verdict{} // as nearly always
	}
	slices := func(a *gpu.Ask) bool { return !a.Whole }
	_, _, already := c.Shortage(n, slices, (*gpu.Ask).Suits) // too few to begin with: not for this reason
	n.Keep(func(card *ledger.Card) bool { return p.open(t, card) })
	if have, want, short := c.Shortage(n, slices, (*gpu.Ask).Suits); short && !already {
		return pipeline.Verdict{Reason: gpu.NoTenantEligibleGPU, Have: have, Want: want}
	}
	return pipeline.Verdict{}
}

func (p Plugin) open(t gpu.TenantID, card *ledger.Card) bool {
	for i := range card.Holders {
		h := &card.Holders[i]
		if !h.Use.Exclusive && !p.Boundary.MayShare(t, h.Tenant) {
			return false
		}
	}
	return true
}
