package engine

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// mostPrices is more kinds of cards than a cluster has sizes of.
const mostPrices = 16

// prices are amounts that quotas would have to allow, each once. The zero value is
// none.
type prices struct {
	all []gpu.Spending
	// lost says that there are more, none of which that purse allows: another may be
	// the one that does.
	lost  bool
	purse ledger.Purse
}

// add enters what the purse does not allow.
func (p *prices) add(purse ledger.Purse, more ...gpu.Spending) {
	for _, price := range more {
		same := func(o gpu.Spending) bool { return slices.Equal(o, price) }
		switch {
		case slices.ContainsFunc(p.all, same):
		case len(p.all) < mostPrices:
			p.all = append(p.all, price)
		default:
			p.lost, p.purse = true, purse
		}
	}
}

// some reports whether there are any.
func (p *prices) some() bool { return len(p.all) > 0 }

// within reports whether the purse allows one of them, as far as is known.
func (p *prices) within(purse ledger.Purse) bool {
	return p.some() && pipeline.Afford(purse, p.all...).OK() || p.lost && !purse.Equal(p.purse)
}
