package engine

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// Trial returns what says whether the request would fit nodes of other states than
// those that are, by the policy and the outlook of now: of in, and of what in would be
// with pods gone or come, whose quotas count. It is for one goroutine at a time.
//
// States of nodes that the ledger has had are judged once for all requests of a kind,
// as by Filter.
func (e *Engine) Trial(r *gpu.Request, in ledger.Snapshot) preempt.Trial {
	t := &trial{standing: stand(r, in, e.terms(in), e.cfg.Now())}
	t.shape = e.verdicts.shape(keyOf(t.cycle.Request, in.Len()), t.terms, in.Len())
	return t
}

// trial is what Trial returns. Whose the request is does not change, as the rules of
// the states are the same.
type trial struct {
	standing
	shape   *shape
	scratch pipeline.Scratch
}

var _ preempt.Trial = (*trial)(nil)

// Fits reports whether the request fits the node, quotas included.
func (t *trial) Fits(in ledger.Snapshot, node gpu.NodeID) bool {
	i, ok := in.Place(node)
	if !ok || !t.affords(in) {
		return false
	}
	n := t.meets(in.At(i))
	if !t.recall(i, in.Len(), n).OK() {
		return false
	}
	return !t.picky || pipeline.Afford(t.cycle.Purse, t.pipe.Prices(t.cycle, n, &t.scratch)...).OK()
}

// Place chooses the cards; false where the request does not fit.
func (t *trial) Place(in ledger.Snapshot, node gpu.NodeID) (gpu.Placement, bool) {
	n, ok := in.Node(node)
	if !ok || !t.affords(in) {
		return gpu.Placement{}, false
	}
	p, v := t.assign(n)
	return p, v.OK()
}

// affords looks anew at what quotas leave in that state, and reports whether the request
// may be anywhere.
func (t *trial) affords(in ledger.Snapshot) bool {
	if t.cycle.Purse.Limited() {
		t.budget(in)
	}
	return t.gate.OK()
}

// recall is the verdict on the node at that place, without its quotas.
func (t *trial) recall(i, nodes int, n *ledger.Node) pipeline.Verdict {
	if n.Version == 0 || !t.shape.mu.TryLock() {
		return t.verdict(n, &t.scratch)
	}
	defer t.shape.mu.Unlock()
	t.shape.room(nodes)
	at := &t.shape.said[i]
	if at.version == n.Version {
		return t.shape.verdict(at)
	}
	v := t.verdict(n, &t.scratch)
	t.shape.enter(at, n.Version, v)
	return v
}
