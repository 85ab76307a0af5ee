// Package affinity is the plugin `affinity`: only the cards that the pod's
// author and the node's administrator allow.
//
// In this order it takes out cards by model (DeviceModelMismatch), by UUID list
// (UUIDFiltered), by NUMA node (NUMAUnsatisfied), cordoned ones
// (DeviceCordoned) and unhealthy ones (DeviceUnhealthy). Models are compared as
// parts of the name in any case, UUIDs exactly. The model is that of the pod's
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
	r := c.Request
	named := slices.ContainsFunc(r.Asks, func(a gpu.Ask) bool { return a.Model != "" })
	if !named && !n.Any(func(card *ledger.Card) bool { return barred(r, card) != "" }) {
		return pipeline.Verdict{} // as nearly always
	}
	_, _, already := c.Shortage(n, nil, (*gpu.Ask).SuitsVendor)
	for _, step := range [...]gpu.Reason{
		gpu.DeviceModelMismatch, gpu.UUIDFiltered, gpu.NUMAUnsatisfied, gpu.DeviceCordoned, gpu.DeviceUnhealthy,
	} {
		n.Keep(func(card *ledger.Card) bool { return barred(r, card) != step })
		// Where there were too few to begin with, no step took the last one needed.
		if have, want, short := c.Shortage(n, nil, (*gpu.Ask).Suits); short && !already {
			return pipeline.Verdict{Reason: step, Have: have, Want: want}
		}
	}
	return pipeline.Verdict{}
}

// barred says what first speaks against the card; "" when nothing does.
func barred(r *gpu.Request, card *ledger.Card) gpu.Reason {
	switch {
	case !modelAllowed(r, card.Model), !r.Wants(&card.Card, (*gpu.Ask).Suits):
		return gpu.DeviceModelMismatch
	case !cardAllowed(r, card.ID):
		return gpu.UUIDFiltered
	case r.NUMA != gpu.NoNUMA && r.NUMA != card.NUMA:
		return gpu.NUMAUnsatisfied
	case card.Cordoned:
		return gpu.DeviceCordoned
	case !card.Healthy:
		return gpu.DeviceUnhealthy
	}
	return ""
}

func modelAllowed(r *gpu.Request, model string) bool {
	if len(r.Models) == 0 && len(r.NotModels) == 0 {
		return true
	}
	model = strings.ToLower(model)
	named := func(part string) bool { return strings.Contains(model, strings.ToLower(part)) }
	return (len(r.Models) == 0 || slices.ContainsFunc(r.Models, named)) && !slices.ContainsFunc(r.NotModels, named)
}

func cardAllowed(r *gpu.Request, id gpu.CardID) bool {
	return (len(r.Cards) == 0 || slices.Contains(r.Cards, id)) && !slices.Contains(r.NotCards, id)
}
