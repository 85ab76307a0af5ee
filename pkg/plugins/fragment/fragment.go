// Package fragment is the plugin `fragment`: work goes where it spoils least for
// what comes after it.
//
// As a score it is 100 x sigmoid(-cost), where cost is what placing the pod costs in
// cards, as Cycle.Outlook sees it by the requests of lately; see package demand. 50
// is a place that costs nothing; a node about which the outlook knows nothing is
// neutral too. As a card policy it puts the card first on which one device costs least,
// then the one that is left with least; of several asks the one that the hardest leaves
// least of, and before these come those that the hardest ask does not fit but another
// does. Without an outlook it places as binpack does.
//
// With mode bestfit the score is a formula of the node alone: 50 for who asks for no
// card; 100 for a whole card where enough are free, else 10; for a slice 100 less 10
// for each GiB that is left on the card that it fits most tightly, at least 0; of
// several containers the lowest. The tightest card then comes first.
//
// It refuses nothing.
package fragment

import (
	"fmt"
	"math"

	"heteroflow.io/heteroflow/pkg/demand"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Name is the plugin's name in configuration, metrics and documents.
const Name = "fragment"

// Mode is how a place is judged.
type Mode string

// The modes.
const (
	Gradient Mode = "gradient"
	BestFit  Mode = "bestfit"
)

// Args is the plugin's part of the policy.
type Args struct {
	Mode Mode `json:"mode"`
}

// Validate reports every fault at once.
func (a Args) Validate() error {
	if a.Mode != Gradient && a.Mode != BestFit {
		return fmt.Errorf("mode: %q is not %s or %s", a.Mode, Gradient, BestFit)
	}
	return nil
}

// Plugin implements pipeline.Score and pipeline.Place.
type Plugin struct{ Args Args }

var (
	_ pipeline.Score = Plugin{}
	_ pipeline.Place = Plugin{}
)

// New reads the plugin's arguments.
func New(args []byte) (Plugin, error) {
	p := Plugin{Args{Mode: Gradient}}
	if err := pipeline.ReadArgs(args, &p.Args); err != nil {
		return p, err
	}
	return p, p.Args.Validate()
}

// Name returns "fragment".
func (Plugin) Name() string { return Name }

// Score is the higher the less the pod costs there.
func (p Plugin) Score(c *pipeline.Cycle, n *ledger.Node) float64 {
	if p.Args.Mode == BestFit {
		return bestFit(c.Request, n)
	}
	if c.Outlook == nil {
		return pipeline.Neutral
	}
	var s demand.State
	if !stateOf(c.Outlook, n, &s) {
		return pipeline.Neutral
	}
	cost, ok := c.Outlook.Of(c.Request).Cost(&s)
	if !ok {
		return pipeline.Neutral
	}
	return 100 / (1 + math.Exp(cost.Cards()))
}

// Place puts the card first on which a device costs least.
func (p Plugin) Place(c *pipeline.Cycle, n *pipeline.Candidate) {
	switch {
	case len(n.Open) < 2 || !c.Request.AsksForCards():
	case p.Args.Mode == BestFit:
		tightest(c.Request, n)
	case c.Outlook == nil || !cheapest(c, n):
		n.Sort(func(c *ledger.Card) float64 { return -pipeline.CardUsage(c) })
	}
}

// beyond is more than any two ranks differ by.
const beyond = 1 << 40

// cheapest orders the open cards by cost; false where too little is known of the node.
func cheapest(c *pipeline.Cycle, n *pipeline.Candidate) bool {
	var s demand.State
	if !stateOf(c.Outlook, n.Node, &s) {
		return false
	}
	wanted := c.Outlook.Of(c.Request)
	var keys [demand.MostCards]float64
	for _, i := range n.Open {
		keys[i] = math.Inf(1) // what nothing fits comes last
		if cost, ask := wanted.CostAt(&s, i); ask >= 0 {
			// The hardest ask skips what it does not fit. The others had better begin there.
			keys[i] = cost.Rank() - float64(ask)*beyond
		}
	}
	n.Sort(byPlace(n.Node, &keys))
	return true
}

// byPlace makes a key for Candidate.Sort of one by the card's place.
func byPlace(n *ledger.Node, keys *[demand.MostCards]float64) func(*ledger.Card) float64 {
	return func(c *ledger.Card) float64 {
		for i := range n.Cards {
			if c == &n.Cards[i] {
				return keys[i]
			}
		}
		return 0
	}
}
