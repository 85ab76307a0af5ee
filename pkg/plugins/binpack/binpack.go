// Package binpack is the plugin `binpack`: work goes where most is going on, so
// that whole nodes and whole cards stay free.
//
// As a score it gives a node 100 x u, where u is the mean of its CPU, memory
// and GPU usage. As a card policy it prefers the fullest card that has room. It
// and spread exclude each other: enabling one disables the other, and binpack
// wins when both are set; a pod's node-policy and card-policy override the
// choice. It has no arguments and refuses nothing.
package binpack

import (
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Name is the plugin's name in configuration, metrics and documents.
const Name = "binpack"

// Plugin implements pipeline.Score and pipeline.Place.
type Plugin struct{}

var (
	_ pipeline.Score = Plugin{}
	_ pipeline.Place = Plugin{}
)

// Name returns "binpack".
func (Plugin) Name() string { return Name }

// Score is 0 for an empty node and 100 for a full one.
func (Plugin) Score(_ *pipeline.Cycle, n *ledger.Node) float64 {
	return 100 * pipeline.Usage(n)
}

// Place puts the fullest card first.
func (Plugin) Place(_ *pipeline.Cycle, n *pipeline.Candidate) {
	n.Sort(func(c *ledger.Card) float64 { return -pipeline.CardUsage(c) })
}
