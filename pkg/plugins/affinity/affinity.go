// Package affinity is the plugin `affinity`: only the cards that the pod's
// author, the node's administrator and the books allow.
//
// In this order it takes out cards by model (DeviceModelMismatch), by UUID list
// (UUIDFiltered), by NUMA node (NUMAUnsatisfied), cordoned ones
// (DeviceCordoned), unhealthy ones (DeviceUnhealthy) and those about which the
// books disagree (LedgerMismatch). Models are compared as parts of the name in
// any case, UUIDs exactly. What is not known is not met: a card without a model
// fails every list of models, and one that is known by its count alone, in whose
// place the device plugin may give another, every list of UUIDs. The model is
// that of the pod's
// annotations, for all containers, and that of a container's resource name, for
// it alone: a card that another container can use stays in the running. It has
// no arguments and cannot be disabled.
package affinity

import (
	"slices"
	"strings"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Name is the plugin's name in configuration, metrics and documents.
const Name = "affinity"

// Plugin implements pipeline.Filter.
type Plugin struct{}

var _ pipeline.Filter = Plugin{}

// Name returns "affinity".
func (Plugin) Name() string { return Name }

// Filter takes out the cards that are not allowed, step by step.
func (Plugin) Filter(c *pipeline.Cycle, n *pipeline.Candidate) pipeline.Verdict {
	r := wishesOf(c.Request)
	named := slices.ContainsFunc(r.Asks, func(a gpu.Ask) bool { return a.Model != "" })
	if !named && !n.Any(func(card *ledger.Card) bool { return barred(&r, card) != "" }) {
		return pipeline.Verdict{} // as nearly always
	}
	_, _, already := c.Shortage(n, nil, (*gpu.Ask).SuitsVendor)
	for _, step := range [...]gpu.Reason{
		gpu.DeviceModelMismatch, gpu.UUIDFiltered, gpu.NUMAUnsatisfied, gpu.DeviceCordoned, gpu.DeviceUnhealthy, gpu.LedgerMismatch,
	} {
		n.Keep(func(card *ledger.Card) bool { return barred(&r, card) != step })
		// Where there were too few to begin with, no step took the last one needed.
		if have, want, short := c.Shortage(n, nil, (*gpu.Ask).Suits); short && !already {
			return pipeline.Verdict{Reason: step, Have: have, Want: want}
		}
	}
	return pipeline.Verdict{}
}

// wishes are a request's, and what they make of the model that was looked at
// last: the cards of a node are mostly of one.
type wishes struct {
	*gpu.Request
	model   string
	allowed bool
}

func wishesOf(r *gpu.Request) wishes { return wishes{Request: r, allowed: modelAllowed(r, "")} }

// barred says what first speaks against the card; "" when nothing does.
func barred(r *wishes, card *ledger.Card) gpu.Reason {
	if card.Model != r.model {
		r.model, r.allowed = card.Model, modelAllowed(r.Request, card.Model)
	}
	switch {
	case !r.allowed, !r.Wants(&card.Card, (*gpu.Ask).Suits):
		return gpu.DeviceModelMismatch
	case !cardAllowed(r.Request, card):
		return gpu.UUIDFiltered
	case r.NUMA != gpu.NoNUMA && r.NUMA != card.NUMA:
		return gpu.NUMAUnsatisfied
	case card.Cordoned:
		return gpu.DeviceCordoned
	case !card.Healthy:
		return gpu.DeviceUnhealthy
	case card.Fenced:
		return gpu.LedgerMismatch
	}
	return ""
}

func modelAllowed(r *gpu.Request, model string) bool {
	if len(r.Models) == 0 && len(r.NotModels) == 0 {
		return true
	}
	model = strings.ToLower(model)
	named := func(part string) bool {
		// Small letters take at least a third of the bytes: what is longer
		// need not be read.
		return len(part) <= 3*len(model) && strings.Contains(model, strings.ToLower(part))
	}
	return model != "" && (len(r.Models) == 0 || slices.ContainsFunc(r.Models, named)) && !slices.ContainsFunc(r.NotModels, named)
}

func cardAllowed(r *gpu.Request, card *ledger.Card) bool {
	if len(r.Cards) == 0 && len(r.NotCards) == 0 {
		return true
	}
	return !card.Counted && (len(r.Cards) == 0 || slices.Contains(r.Cards, card.ID)) && !slices.Contains(r.NotCards, card.ID)
}
