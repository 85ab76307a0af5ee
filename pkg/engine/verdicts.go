package engine

import (
	"fmt"
	"sync"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Bounds of what is remembered. The bound of nodes times kinds of requests is what
// counts: one of each takes entrySize bytes, all of them 10 MiB, and 24 bytes more
// where quotas count what its cards are like. A cluster of a thousand nodes has some
// two hundred kinds of requests remembered, those of a month of a large one.
const (
	mostEntries = 1 << 18
	leastShapes = 16 // on however many nodes
	mostShapes  = 512
)

// verdicts remembers what was said of nodes to requests of one shape. Pods come
// in bursts of equals, and between two of them few nodes change: what was said
// of a state of a node is true of it for ever. The zero value is ready for use.
type verdicts struct {
	mu     sync.Mutex
	by     terms             // guarded by mu; of the decisions that are remembered
	shapes map[string]*shape // guarded by mu; by keyOf
	uses   uint64            // guarded by mu
}

// shape is one kind of request.
type shape struct {
	used uint64 // guarded by verdicts.mu; the larger the later

	mu     sync.Mutex
	memory // guarded by mu
}

// judge is a judgement of the nodes of one snapshot.
type judge struct {
	standing
	snapshot ledger.Snapshot
	now      time.Time
	claimed  gpu.NodeID // the only node for the request; "": all may do
	memory   *memory    // nil: nothing is remembered
	scratch  pipeline.Scratch
	dear     prices      // of nodes that a quota alone is in the way of
	anew     int         // nodes rated that were not remembered
	late     func() bool // no more of those are to be rated
}

// patience is how long an answer rates nodes that it remembers nothing of, of which it
// rates some in any case. They are remembered then, so that the next answer gets further. A thousand
// nodes that have all changed are mostly within: it is for cards that are all in part
// used, and for thousands of nodes at once.
const (
	patience = 50 * time.Millisecond
	some     = 16
)

// unrated is the score of a node when there was no time to rate it: others come first.
const unrated = -1

// patient returns what says that the answer begun now has been long enough at it.
func (e *Engine) patient() (late func() bool) {
	end := e.cfg.Now().Add(patience)
	return func() bool { return !e.cfg.Now().Before(end) }
}

// look goes on with a state of the same nodes.
func (j *judge) look(r *gpu.Request, snapshot ledger.Snapshot) {
	j.snapshot, j.standing, j.dear = snapshot, stand(r, snapshot, j.terms, j.now), prices{}
	j.cycle.Nodes, j.cycle.Peers = snapshot.Len(), pipeline.PeersOf(r.Group, snapshot)
	if j.gate.Limit != nil {
		j.dear.add(j.cycle.Purse, j.least)
	}
}

// of says whether the request fits the node at that place. Quotas are never
// remembered, as they change without the node. Who has a claim may go to that node and
// to no other, and is told of nothing but that others are on their way out.
func (j *judge) of(i int) pipeline.Verdict {
	if j.claimed == "" {
		return j.fit(i)
	}
	if j.snapshot.At(i).ID == j.claimed && j.fit(i).OK() {
		return pipeline.Verdict{}
	}
	return pipeline.Verdict{Reason: gpu.PreemptionPending}
}

// fit is of without regard to claims of its own.
func (j *judge) fit(i int) pipeline.Verdict {
	if !j.gate.OK() {
		return j.gate
	}
	n := j.node(i)
	v, at := j.recall(i, n)
	if !v.OK() || !j.picky {
		return v
	}
	price := j.prices(i, n, at)
	return j.told(pipeline.Afford(j.cycle.Purse, price...), price)
}

// node is the node at that place as the request meets it. Where room was made for it
// nothing is kept from it: others have ended for it.
func (j *judge) node(i int) *ledger.Node {
	n := j.snapshot.At(i)
	if !n.Keeps() || j.claimed != "" {
		return n // as nearly always
	}
	return j.meets(n)
}

// prices are what the request may take of quotas on the node, which it fits.
func (j *judge) prices(i int, n *ledger.Node, at *said) []gpu.Spending {
	if at == nil {
		return j.pipe.Prices(j.cycle, n, &j.scratch)
	}
	if at.known&priced == 0 {
		j.memory.price(i, j.pipe.Prices(j.cycle, n, &j.scratch))
	}
	return j.memory.prices[i]
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
	n := j.node(i)
	_, at := j.recall(i, n)
	switch {
	case at != nil && at.known&rated != 0:
	case j.anew >= some && j.late():
		return unrated
	case at == nil:
		j.anew++
		return j.pipe.Total(j.cycle, n, &j.scratch)
	default:
		j.anew++
		at.known, at.own = at.known|rated, j.pipe.Base(j.cycle, n, &j.scratch)
	}
	return j.pipe.Complete(j.cycle, n, at.own)
}

// recall returns the verdict on the node, and what is remembered of it; nil where
// nothing can be: a plan's node is no state that comes again.
func (j *judge) recall(i int, n *ledger.Node) (pipeline.Verdict, *said) {
	if j.memory == nil || n.Version == 0 {
		return j.verdict(n, &j.scratch), nil
	}
	at := &j.memory.said[i]
	if at.version == n.Version {
		return j.memory.verdict(at), at
	}
	v := j.verdict(n, &j.scratch)
	if !j.memory.enter(at, n.Version, v) {
		return v, nil
	}
	return v, at
}

// judge returns a judgement of the request, and what ends it. Another of the
// same shape at the same time has to do without memory.
func (v *verdicts) judge(r *gpu.Request, by terms, snapshot ledger.Snapshot, now time.Time) (*judge, func()) {
	j := &judge{standing: standing{terms: by}, now: now}
	j.look(r, snapshot)
	s := v.shape(keyOf(j.cycle.Request, snapshot.Len()), by, snapshot.Len())
	if !s.mu.TryLock() {
		return j, func() {}
	}
	s.room(snapshot.Len())
	j.memory = &s.memory
	return j, s.mu.Unlock
}

// keyOf tells requests apart by all that a plugin may look at, which is all but
// who they are, who is served first, and how long they stay. Their tenant counts, but not the namespace:
// the same is true of all that belong to one. So does whether they have a group, but
// not which: what is said by where its members are is not remembered. The number of
// nodes is how far a search goes. Names are quoted: two may read like one.
func keyOf(r *gpu.Request, nodes int) string {
	shape := *r
	shape.Pod, shape.Namespace, shape.Name, shape.Priority, shape.Gang, shape.Runtime = "", "", "", 0, false, 0
	if shape.Group != "" {
		shape.Group = "any"
	}
	return fmt.Sprintf("%d %#v", nodes, shape)
}

// shape returns the memory of the kind of request, in a cluster of so many nodes. What
// was said by other terms, a policy that was replaced or an outlook, is forgotten.
func (v *verdicts) shape(key string, by terms, nodes int) *shape {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.by != by || v.shapes == nil {
		v.by, v.shapes = by, map[string]*shape{}
	}
	s := v.shapes[key]
	if s == nil {
		for len(v.shapes) >= shapesFor(nodes) {
			v.evict()
		}
		s = &shape{}
		v.shapes[key] = s
	}
	v.uses++
	s.used = v.uses
	return s
}

// shapesFor is how many kinds of requests are remembered of so many nodes.
func shapesFor(nodes int) int {
	return min(mostShapes, max(leastShapes, mostEntries/max(1, nodes)))
}

// evict forgets the shape that was used longest ago. It is called with mu held.
func (v *verdicts) evict() {
	var oldest string
	for key, s := range v.shapes {
		if at := v.shapes[oldest]; at == nil || s.used < at.used {
			oldest = key
		}
	}
	delete(v.shapes, oldest)
}
