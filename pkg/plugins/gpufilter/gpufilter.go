// Package gpufilter is the plugin `gpu-filter`: only cards of the vendor that
// was asked for.
//
// The vendor is that of the resource name, or of heteroflow.io/gpu-type for
// requests in the neutral form. It refuses with DeviceTypeMismatch. A node that
// has reported no cards passes: resource-filter judges it. A card that a device
// plugin of the vendor hands out is only for who asks by that plugin's resource
// name. The plugin has no arguments and cannot be disabled.
package gpufilter

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Name is the plugin's name in configuration, metrics and documents.
const Name = "gpu-filter"

// Plugin implements pipeline.Filter.
type Plugin struct{}

var _ pipeline.Filter = Plugin{}

// Name returns "gpu-filter".
func (Plugin) Name() string { return Name }

// Filter takes out the cards that no container of the request could use.
func (Plugin) Filter(c *pipeline.Cycle, n *pipeline.Candidate) pipeline.Verdict {
	if len(n.Open) == 0 {
		return pipeline.Verdict{}
	}
	r, before := c.Request, int64(len(n.Open))
	taken := n.Keep(func(card *ledger.Card) bool { return wanted(r, &card.Card) })
	if taken == 0 && len(r.Asks) == 1 {
		return pipeline.Verdict{} // as nearly always: the cards are of the one vendor asked for
	}
	have, want, short := c.Shortage(n, nil, (*gpu.Ask).SuitsVendor)
	// Some cards of the right vendor, but fewer than asked for even if all
	// vendors counted: that is a matter of number, and resource-filter's to say.
	if short && (have == 0 || taken > 0 && before >= want) {
		return pipeline.Verdict{Reason: gpu.DeviceTypeMismatch, Have: have, Want: want}
	}
	return pipeline.Verdict{}
}

// wanted reports whether any container of the request could get a card of that
// vendor and plugin.
func wanted(r *gpu.Request, card *gpu.Card) bool {
	return (r.Vendor == "" || r.Vendor == card.Vendor) && r.Wants(card, (*gpu.Ask).SuitsVendor)
}
