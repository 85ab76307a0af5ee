// Package spread is the plugin `spread`: work goes where least is going on.
//
// As a score it gives a node 100 x (1 - u), where u is the mean of its CPU,
// memory and GPU usage. As a card policy it prefers the emptiest card. It and
// binpack exclude each other: enabling one disables the other, and binpack wins
// when both are set; a pod's node-policy and card-policy override the choice.
// It has no arguments and refuses nothing.
package spread

import (
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Name is the plugin's name in configuration, metrics and documents.
const Name = "spread"

// Plugin implements pipeline.Score and pipeline.Place.
type Plugin struct{}

var (
	_ pipeline.Score = Plugin{}
	_ pipeline.Place = Plugin{}
)

// Name returns "spread".
func (Plugin) Name() string { return Name }

// Score is 100 for an empty node and 0 for a full one.
func (Plugin) Score(_ *pipeline.Cycle, n *ledger.Node) float64 {
	return 100 * (1 - pipeline.Usage(n))
}

// Place puts the emptiest card first.
func (Plugin) Place(_ *pipeline.Cycle, n *pipeline.Candidate) {
	n.Sort(pipeline.CardUsage)
}
