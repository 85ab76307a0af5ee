package resourcefilter

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// packOnOneNUMA finds cards for every ask on one NUMA node, trying them in the
// order in which their best cards come. Cards that report no NUMA node are not
// known to be beside any other, and are not taken.
func packOnOneNUMA(c *pipeline.Cycle, n *pipeline.Candidate) ([]gpu.Grant, pipeline.Verdict) {
	most := 0
	for at, i := range n.Open {
		numa := n.Node.Cards[i].NUMA
		on := func(j int) bool { return n.Node.Cards[j].NUMA == numa }
		if numa == gpu.NoNUMA || slices.ContainsFunc(n.Open[:at], on) {
			continue
		}
		part := pipeline.Candidate{Node: n.Node, JudgeOnly: n.JudgeOnly, Linked: n.Linked}
		for _, j := range n.Open[at:] {
			if on(j) {
				part.Open = append(part.Open, j)
			}
		}
		if grants, v := find(c, &part); v.OK() {
			return grants, v
		}
		most = max(most, len(part.Open))
	}
	if _, v := find(c, n); !v.OK() {
		return nil, v // it would not fit anywhere on the node
	}
	return nil, pipeline.Verdict{Reason: gpu.NUMAUnsatisfied, Have: int64(most), Want: devices(c.Request)}
}

// devices counts what the request asks for in all. Slices of several containers
// may share a card, so that fewer cards than this can do.
func devices(r *gpu.Request) (n int64) {
	for i := range r.Asks {
		n += int64(r.Asks[i].Count)
	}
	return n
}
