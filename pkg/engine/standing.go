package engine

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// standing is what holds for a request in a state of the cluster whatever the
// nodes are like: whose it is, and what its quotas leave it.
type standing struct {
	cycle *pipeline.Cycle
	// gate refuses the request everywhere: nothing may come from its namespace, or
	// it would pass a quota on any card.
	gate pipeline.Verdict
	// picky says that what it takes of quotas depends on the cards.
	picky bool
}

// stand returns the standing of the request, whose Tenant does not matter.
func stand(r *gpu.Request, in ledger.Snapshot) standing {
	own := *r
	s := standing{cycle: &pipeline.Cycle{Request: &own, Nodes: in.Len()}}
	if !r.AsksForCards() {
		return s
	}
	var closed gpu.Reason
	if own.Tenant, closed = in.Owner(r.Namespace); closed != "" {
		s.gate = pipeline.Verdict{Reason: closed}
		return s
	}
	if s.cycle.Purse = in.Purse(r.Namespace); !s.cycle.Purse.Limited() {
		return s
	}
	if x, over := s.cycle.Purse.Check(pipeline.Least(&own, nil)); over {
		s.gate = pipeline.Over(x)
	}
	s.picky = !pipeline.Fixed(&own)
	return s
}

// afford refuses the request where it would pass a quota by the least that it
// takes there.
func (s *standing) afford(least gpu.Spending) pipeline.Verdict {
	if x, over := s.cycle.Purse.Check(least); over {
		return pipeline.Over(x)
	}
	return pipeline.Verdict{}
}

// judge says whether the request fits the node, quotas included.
func (s *standing) judge(pipe *pipeline.Pipeline, n *ledger.Node, scratch *pipeline.Scratch) pipeline.Verdict {
	if !s.gate.OK() {
		return s.gate
	}
	v := pipe.Judge(s.cycle, n, scratch)
	if v.OK() && s.picky {
		v = s.afford(scratch.Least(s.cycle))
	}
	return v
}

// assign chooses the cards, quotas included.
func (s *standing) assign(pipe *pipeline.Pipeline, n *ledger.Node) (gpu.Placement, pipeline.Verdict) {
	if !s.gate.OK() {
		return gpu.Placement{}, s.gate
	}
	return pipe.Assign(s.cycle, n)
}
