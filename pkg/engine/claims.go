package engine

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// view is the cluster as the request meets it, with the node on which room is claimed
// for it, if any. What the pod holds itself, since nobody has learnt yet what became of
// its Binding, is not in its own way: it would wait for ever for a bind that finds
// out. Neither is its claim.
func (e *Engine) view(r *gpu.Request) (state ledger.Snapshot, claimed gpu.NodeID) {
	state = e.cfg.Ledger.Snapshot()
	h, ok := e.cfg.Ledger.Hold(r.Pod)
	if !ok || h.State != ledger.Held && h.State != ledger.Claimed {
		return state, ""
	}
	claimed, _ = state.Claim(r.Pod)
	return state.Without(h.Node, r.Pod), claimed
}

// verdict is the pipeline's on the node as the request meets it; but where nothing than
// what is claimed or kept for others is in the way, it says that. Kube-scheduler knows nothing of the processors
// and the main memory that are claimed, so they are looked at as well.
func (s *standing) verdict(n *ledger.Node, scratch *pipeline.Scratch) pipeline.Verdict {
	v := s.pipe.Judge(s.cycle, n, scratch)
	if n.Claims == 0 || !s.cycle.Request.AsksForCards() || v.Reason.Info().Final {
		return v // as nearly always
	}
	open := n.Unclaimed()
	switch r := s.cycle.Request; {
	case v.OK() && (preempt.Roomy(n, r) || !preempt.Roomy(open, r)):
		return v
	case v.OK(), s.pipe.Judge(s.cycle, open, scratch).OK():
		return pipeline.Verdict{Reason: gpu.HeldForOther}
	}
	return v
}

// choose is assign, with an eye on what is claimed or kept for others.
func (s *standing) choose(n *ledger.Node) (gpu.Placement, pipeline.Verdict) {
	if n = s.meets(n); n.Claims > 0 && s.gate.OK() {
		if v := s.verdict(n, &pipeline.Scratch{}); !v.OK() {
			return gpu.Placement{}, v
		}
	}
	return s.assign(n)
}
