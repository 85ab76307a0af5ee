// Package nvlink is the plugin `nvlink`: the cards of one container should be
// joined by links of the NVLink class.
//
// A domain is a set of cards that such links join. As a card policy it takes, for
// a container that wants several cards, those of the smallest domain that is big
// enough, then cards of one NUMA node, then those joined most closely; the rest
// keeps its order. A pod that names a card-policy gets its cards by that.
//
// As a score it rates the whole cards that the pod would get: raw 50, all in one
// domain +50, the domain used up +30, nobody on any card of it +40, across domains
// -20, one NUMA node +15, across -10; 50..185 is brought to 50..100 (see
// topology.Score). It is the mean over the containers that want several whole
// cards; for pods without any it does not count. Nodes that do not tell how their
// cards are joined are neutral.
//
// As a filter it demands of a pod with `nvlink: required` that the cards of each
// container be of one domain, and with the argument requireNVLink of every pod.
// Nodes that do not tell pass. resource-filter refuses with NVLinkUnsatisfied
// where the pod would fit but for that.
package nvlink

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/topology"
)

// Name is the plugin's name in configuration, metrics and documents.
const Name = "nvlink"

// Args is the plugin's part of the policy.
type Args struct {
	// RequireNVLink demands of all pods what nvlink: required demands of one.
	RequireNVLink bool `json:"requireNVLink"`
}

// Plugin implements pipeline.Filter, pipeline.CardScore and pipeline.Place.
type Plugin struct{ Args Args }

var (
	_ pipeline.Filter    = Plugin{}
	_ pipeline.CardScore = Plugin{}
	_ pipeline.Place     = Plugin{}
)

// New reads the plugin's arguments.
func New(args []byte) (Plugin, error) {
	var p Plugin
	err := pipeline.ReadArgs(args, &p.Args)
	return p, err
}

// Name returns "nvlink".
func (Plugin) Name() string { return Name }

// Filter demands cards of one domain. What is not known refuses nobody.
func (p Plugin) Filter(c *pipeline.Cycle, n *pipeline.Candidate) pipeline.Verdict {
	n.Linked = (p.Args.RequireNVLink || c.Request.NVLink) && n.Node.Links.Known()
	return pipeline.Verdict{}
}

// Concerns reports whether any container wants several whole cards.
func (Plugin) Concerns(r *gpu.Request) bool {
	for i := range r.Asks {
		if rated(&r.Asks[i]) {
			return true
		}
	}
	return false
}

// Knows reports whether the node tells how its cards are joined.
func (Plugin) Knows(n *ledger.Node) bool { return n.Links.Known() }

func rated(a *gpu.Ask) bool { return a.Whole && a.Count > 1 }

// ScoreCards rates the cards that each container gets.
func (Plugin) ScoreCards(c *pipeline.Cycle, n *ledger.Node, grants []gpu.Grant) float64 {
	sum, of, free := 0.0, 0, pipeline.Available(n)
	for i := range c.Request.Asks {
		a := &c.Request.Asks[i]
		if !rated(a) {
			continue
		}
		for k := range grants {
			if g := &grants[k]; g.Container == a.Container && g.Role == a.Role {
				sum += topology.Score(n.Links.Raw(pipeline.Places(n, g.Shares), free))
				of++
			}
		}
	}
	if of == 0 {
		return pipeline.Neutral
	}
	return sum / float64(of)
}
