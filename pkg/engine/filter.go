package engine

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Refused is a node that does not do, with the reason.
type Refused struct {
	Node    gpu.NodeID
	Verdict pipeline.Verdict
}

// Filtered answers which nodes a request fits.
type Filtered struct {
	Feasible []gpu.NodeID // in the order asked
	Refused  []Refused    // in the order asked
	// Reason is the one code to give for all refused nodes. A text that
	// differed from node to node would change with kube-scheduler's sample of
	// them; a changed text is an update of the pod, which wakes it at once.
	Reason gpu.Reason
	// Summary covers the whole cluster when no node asked about fits.
	Summary Summary
}

// Filter says which of the nodes the request fits now. It changes nothing that
// is held; a pod that fits none is remembered, see Wake.
func (e *Engine) Filter(r *gpu.Request, nodes []gpu.NodeID) Filtered {
	snapshot := e.view(r)
	judge, done := e.verdicts.judge(r, e.cfg.Pipeline(), snapshot)
	defer done()
	out := Filtered{Feasible: make([]gpu.NodeID, 0, len(nodes))}
	for _, id := range nodes {
		v := pipeline.Verdict{Reason: gpu.NodeNotRegistered}
		if i, ok := snapshot.Place(id); ok {
			v = judge.of(i)
		}
		if v.OK() {
			out.Feasible = append(out.Feasible, id)
		} else {
			out.Refused = append(out.Refused, Refused{id, v})
		}
	}
	summarize(&out, judge)
	e.decisions.filtered(r.Pod, len(out.Feasible), len(nodes))
	switch {
	case len(out.Feasible) > 0:
		e.waiting.forget(r.Pod)
	case out.Summary.Unoffered > 0: // a node fits now, so that nothing has been seen
		e.waiting.refused(r, ledger.Snapshot{})
	default:
		e.waiting.refused(r, snapshot)
	}
	return out
}

// view is the cluster as the request meets it. What the pod holds itself, since
// nobody has learnt yet what became of its Binding, is not in its own way: it
// would wait for ever for a bind that finds out.
func (e *Engine) view(r *gpu.Request) ledger.Snapshot {
	snapshot := e.cfg.Ledger.Snapshot()
	if h, ok := e.cfg.Ledger.Hold(r.Pod); ok && h.State == ledger.Held {
		return snapshot.Without(h.Node, r.Pod)
	}
	return snapshot
}

// summarize finds the reason. When nothing fits it goes by the whole cluster,
// and by no node that is not in it, so that the answer does not depend on the
// sample that kube-scheduler drew.
func summarize(out *Filtered, judge *judge) {
	var t tally
	if len(out.Feasible) > 0 {
		for _, r := range out.Refused {
			t.add(r.Node, r.Verdict)
		}
		out.Reason = t.dominant()
		return
	}
	asked := make(map[gpu.NodeID]int, len(out.Refused)) // node -> place in out.Refused
	for i := range out.Refused {
		asked[out.Refused[i].Node] = i
	}
	for i := range judge.snapshot.Len() {
		id := judge.snapshot.At(i).ID
		if k, ok := asked[id]; ok {
			t.add(id, out.Refused[k].Verdict)
		} else if v := judge.of(i); v.OK() {
			t.unoffered++
		} else {
			t.add(id, v)
		}
	}
	out.Reason, out.Summary = t.dominant(), t.summary()
	if len(t.counts) == 0 && len(out.Refused) > 0 {
		out.Reason = gpu.NodeNotRegistered // none of the nodes asked about is known
	}
}
