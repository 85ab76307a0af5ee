package resourcefilter

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// unlinked says how many cards that could take a container are of one NVLink
// domain, for the container that misses most; where each alone would find enough,
// for all of them together.
func unlinked(c *pipeline.Cycle, n *pipeline.Candidate) pipeline.Verdict {
	v := pipeline.Verdict{Reason: gpu.NVLinkUnsatisfied}
	together := v
	for i := range c.Request.Asks {
		ask := &c.Request.Asks[i]
		if ask.Count == 1 {
			continue
		}
		have, want := int64(most(ask, n)), int64(ask.Count)
		if want-have > v.Want-v.Have || want-have == v.Want-v.Have && want > v.Want {
			v.Have, v.Want = have, want
		}
		together.Have, together.Want = max(together.Have, have), together.Want+want
	}
	switch {
	case v.Want > v.Have:
		return v
	case together.Want > together.Have:
		return together
	}
	return pipeline.Verdict{Reason: gpu.NVLinkUnsatisfied} // it is how they lie that is in the way
}

// most returns how many cards that may go together can take the ask.
func most(ask *gpu.Ask, n *pipeline.Candidate) (able int) {
	for at, i := range n.Open {
		lead, together := deskOf(n, i), 0
		for _, j := range n.Open[at:] {
			if d := deskOf(n, j); lead.with(&d, ask) && ask.Suits(&d.card.Card) && d.check(ask) == lackNothing {
				together++
			}
		}
		able = max(able, together)
	}
	return able
}
