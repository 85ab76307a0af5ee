package nvlink

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/topology"
)

// Place puts the cards first that the containers should get which want several.
func (Plugin) Place(c *pipeline.Cycle, n *pipeline.Candidate) {
	if !n.Node.Links.Known() {
		return
	}
	free := pipeline.Available(n.Node)
	n.Gather(c.Request, func(a *gpu.Ask, open []int) (topology.Set, int, bool) {
		if a.Count == 1 {
			return 0, 0, false
		}
		choice, ok := n.Node.Links.Tightest(topology.Ask{Open: open, Free: free, Count: a.Count})
		return choice.Cards, worth(choice, n.Linked, len(open)), ok
	})
}

// worth compares the choices for one container among cards that cannot go together.
// Where that is because they must be of one domain it is as within Tightest: the
// smallest domain, of these the one with the fewest open cards, then what is best.
func worth(choice topology.Choice, linked bool, open int) int {
	if !linked {
		return choice.Raw
	}
	const aboveRaw = 1000
	return choice.Raw - aboveRaw*(topology.MostCards*choice.Domain.Len()+open)
}
