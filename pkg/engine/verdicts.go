package engine

import (
	"fmt"
	"slices"
	"sync"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// mostShapes is how many kinds of requests are remembered. One takes some 120
// bytes a node, and as much again where quotas count what its cards are like.
const mostShapes = 16

// verdicts remembers what was said of nodes to requests of one shape. Pods come
// in bursts of equals, and between two of them few nodes change: what was said
// of a state of a node is true of it for ever. The zero value is ready for use.
type verdicts struct {
	mu     sync.Mutex
	shapes []*shape // guarded by mu; the one used last is last
}

// shape is one kind of request under one policy.
type shape struct {
	key  string
	pipe *pipeline.Pipeline

	mu   sync.Mutex
	said []said // guarded by mu; by the node's place in a snapshot
}

type said struct {
	version uint64           // of the node
	verdict pipeline.Verdict // whatever the quotas
	priced  bool
	prices  []gpu.Spending // if priced; see Pipeline.Prices
	rated   bool
	own     pipeline.Base // if rated
}

// judge is a judgement of the nodes of one snapshot.
type judge struct {
	standing
	pipe     *pipeline.Pipeline
	snapshot ledger.Snapshot
	said     []said // nil: nothing is remembered
	scratch  pipeline.Scratch
	dear     prices // of nodes that a quota alone is in the way of
}

// look goes on with a state of the same nodes.
func (j *judge) look(r *gpu.Request, snapshot ledger.Snapshot) {
	j.snapshot, j.standing, j.dear = snapshot, stand(r, snapshot), prices{}
	j.cycle.Nodes, j.cycle.Peers = snapshot.Len(), pipeline.PeersOf(r.Group, snapshot)
	if j.gate.Limit != nil {
		j.dear.add(j.cycle.Purse, j.least)
	}
}

// of says whether the request fits the node at that place. Quotas are never
// remembered, as they change without the node.
func (j *judge) of(i int) pipeline.Verdict {
	if !j.gate.OK() {
		return j.gate
	}
	n := j.snapshot.At(i)
	at := j.memory(i, n)
	if at == nil {
		v, prices := j.judge(j.pipe, n, &j.scratch)
		return j.told(v, prices)
	}
	if !at.verdict.OK() || !j.picky {
		return at.verdict
	}
	if !at.priced {
		at.priced, at.prices = true, j.pipe.Prices(j.cycle, n, &j.scratch)
	}
	return j.told(pipeline.Afford(j.cycle.Purse, at.prices...), at.prices)
}

// told notes what a quota would have to allow.
func (j *judge) told(v pipeline.Verdict, prices []gpu.Spending) pipeline.Verdict {
	if v.Limit != nil {
		j.dear.add(j.cycle.Purse, prices...)
	}
	return v
}

// total is the score of the node at that place. What other nodes have a part in is
// not remembered.
func (j *judge) total(i int) float64 {
	n := j.snapshot.At(i)
	at := j.memory(i, n)
	if at == nil {
		return j.pipe.Total(j.cycle, n, &j.scratch)
	}
	if !at.rated {
		at.rated, at.own = true, j.pipe.Base(j.cycle, n, &j.scratch)
	}
	return j.pipe.Complete(j.cycle, n, at.own)
}

// memory is what is known of the node, the verdict at least; nil where nothing
// is remembered: a plan's node is no state that comes again.
func (j *judge) memory(i int, n *ledger.Node) *said {
	if j.said == nil || n.Version == 0 {
		return nil
	}
	at := &j.said[i]
	if at.version != n.Version {
		*at = said{version: n.Version, verdict: j.pipe.Judge(j.cycle, n, &j.scratch)}
	}
	return at
}

// judge returns a judgement of the request, and what ends it. Another of the
// same shape at the same time has to do without memory.
func (v *verdicts) judge(r *gpu.Request, pipe *pipeline.Pipeline, snapshot ledger.Snapshot) (*judge, func()) {
	j := &judge{pipe: pipe}
	j.look(r, snapshot)
	s := v.shape(keyOf(j.cycle.Request, snapshot.Len()), pipe)
	if !s.mu.TryLock() {
		return j, func() {}
	}
	if n := snapshot.Len(); len(s.said) < n {
		s.said = slices.Grow(s.said, n-len(s.said))[:n]
	}
	j.said = s.said
	return j, s.mu.Unlock
}

// keyOf tells requests apart by all that a plugin may look at, which is all but
// who they are and who is served first. Their tenant counts, but not the namespace:
// the same is true of all that belong to one. So does whether they have a group, but
// not which: what is said by where its members are is not remembered. The number of
// nodes is how far a search goes. Names are quoted: two may read like one.
func keyOf(r *gpu.Request, nodes int) string {
	shape := *r
	shape.Pod, shape.Namespace, shape.Name, shape.Priority = "", "", "", 0
	if shape.Group != "" {
		shape.Group = "any"
	}
	return fmt.Sprintf("%d %#v", nodes, shape)
}

func (v *verdicts) shape(key string, pipe *pipeline.Pipeline) *shape {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := slices.IndexFunc(v.shapes, func(s *shape) bool { return s.key == key && s.pipe == pipe })
	var s *shape
	switch {
	case i >= 0:
		s = v.shapes[i]
		v.shapes = slices.Delete(v.shapes, i, i+1)
	default:
		s = &shape{key: key, pipe: pipe}
		if len(v.shapes) >= mostShapes {
			v.shapes = slices.Delete(v.shapes, 0, 1)
		}
	}
	v.shapes = append(v.shapes, s)
	return s
}
