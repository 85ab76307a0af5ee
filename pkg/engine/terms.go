package engine

import (
	"sync"

	"heteroflow.io/heteroflow/pkg/demand"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/plugins/fragment"
)

// terms are what a decision goes by beside the pod and the cluster: the policy, and
// what is asked for lately. They are the same from a decision's beginning to its end.
type terms struct {
	pipe    *pipeline.Pipeline
	outlook *demand.Outlook // nil where nothing is learned
}

// terms returns those in force.
func (e *Engine) terms(in ledger.Snapshot) terms {
	t := terms{pipe: e.cfg.Pipeline()}
	if e.cfg.Demand != nil {
		t.outlook = e.cfg.Demand.Outlook(fragment.Nodes{Snapshot: in}.Supply)
	}
	return t
}

// look has the outlook brought up to date, which no decision should wait for.
func (e *Engine) look(in ledger.Snapshot) {
	if e.cfg.Demand != nil {
		e.cfg.Demand.Look(fragment.Nodes{Snapshot: in})
	}
}

// meet counts the pod unless it is kept out: what passes a quota, however often it is
// asked for, takes no room from anyone.
func (e *Engine) meet(r *gpu.Request, in ledger.Snapshot) {
	if s := stand(r, in, terms{}, e.cfg.Now()); s.gate.OK() {
		e.Learn(r)
	}
}

// Learn counts the pod among those that are asked for, if it has not been counted yet.
// Filter does so with every pod that is let in, and Score with who asks for no card, which has
// been through no filter of ours. It need not be told of others, but may be: of those
// that are bound when a scheduler starts.
func (e *Engine) Learn(r *gpu.Request) {
	if e.cfg.Demand != nil && e.counted.first(r.Pod) {
		e.cfg.Demand.Note(r)
	}
}

// mostCounted bounds the memory for pods that have been counted: of so many at least
// it is known, and of twice as many at most. A pod that waits is asked about again
// every few minutes, and so stays known.
const mostCounted = 16384

// counted knows which pods have been counted. The zero value is ready for use.
type counted struct {
	mu          sync.Mutex
	now, before map[gpu.PodID]struct{} // guarded by mu; before is forgotten when now is full
}

// first reports whether the pod has not been met before, as far as is known.
func (c *counted) first(pod gpu.PodID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.now[pod]; known {
		return false
	}
	_, known := c.before[pod]
	if len(c.now) >= mostCounted {
		c.now, c.before = nil, c.now
	}
	if c.now == nil {
		c.now = map[gpu.PodID]struct{}{}
	}
	c.now[pod] = struct{}{}
	return !known
}
