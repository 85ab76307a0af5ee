package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// How a pod is woken, in turns of Wake.
const (
	// wakeGrace is left to kube-scheduler, which is told of most changes
	// itself and then comes without being woken.
	wakeGrace = 2
	// wakePatience is how long a pod that has been woken keeps the room that it
	// was woken for from waking others. Its back-off may last 10 s.
	wakePatience = 60
	// wakeTouches bounds the writes of a turn.
	wakeTouches = 5
	// wakeJudgements bounds the work of a turn to some 10 ms: filters wait
	// for it.
	wakeJudgements = 20_000
)

// WakePeriod is the time between two turns of Wake that its promise, a second
// from room appearing to a pod being woken, is made for.
const WakePeriod = 250 * time.Millisecond

// claim is a node that a waiting pod is believed to fit.
type claim struct {
	placement gpu.Placement
	node      *ledger.Node // as it was, without other claims on it
	refusals  int          // of the pod by then
	turns     int          // since it was made, or since the touch
	touched   bool
}

// waker is what Wake remembers from turn to turn.
type waker struct {
	pipe   *pipeline.Pipeline
	claims map[gpu.PodID]*claim
	// plan is the state with the room of all claims taken.
	plan ledger.Snapshot
	// open has the nodes on which a claim has come to nothing in this turn:
	// others may fit now although the node has not changed.
	open []gpu.NodeID
}

// Wake has pods tried again that were refused and fit now, until ctx ends.
// Kube-scheduler is told of pods that end and of nodes that change, but not of a
// hold that expires, or of a policy that allows more; and of many nodes it
// offers a sample, which may have left out the one that fits. A pod is touched,
// and nominated for the node, when it fits one that has changed since it was
// refused or was not offered, kube-scheduler has not come with it for a moment,
// and no other that has been woken is about to take that room; for one state of
// a node it is touched once.
func (e *Engine) Wake(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	w := &waker{claims: map[gpu.PodID]*claim{}}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			for _, t := range e.turn(w) {
				e.touch(ctx, t, every)
			}
		}
	}
}

// touch wakes a pod. One that cannot be touched is left to kube-scheduler.
func (e *Engine) touch(ctx context.Context, t Target, longest time.Duration) {
	ctx, stop := context.WithTimeout(ctx, longest)
	defer stop()
	if pod, err := e.cfg.Pods.Touch(ctx, t, "a node has room for it"); err == nil && pod.Node != "" {
		e.waiting.forget(t.Pod) // bound after all
	}
}

// turn returns the pods to touch now.
func (e *Engine) turn(w *waker) []Target {
	e.waiting.mu.Lock()
	defer e.waiting.mu.Unlock()
	state := e.cfg.Ledger.Snapshot()
	w.plan, w.open = state, nil
	if pipe := e.cfg.Pipeline(); pipe != w.pipe {
		w.pipe = pipe
		for _, at := range e.waiting.byPod {
			at.seen, at.tried = ledger.Snapshot{}, nil // another policy: all is open again
		}
	}
	touch := w.keep(&e.waiting)
	w.find(&e.waiting, state)
	return touch
}

// keep goes through the claims: it drops those that have come to an end, takes
// the room of the others from the plan, and returns the pods to touch.
func (w *waker) keep(pods *waiting) (touch []Target) {
	for _, pod := range slices.Sorted(maps.Keys(w.claims)) {
		c, at := w.claims[pod], pods.byPod[pod]
		c.turns++
		if !w.holds(c, at) {
			delete(w.claims, pod)
			w.open = append(w.open, c.node.ID)
			continue
		}
		if !c.touched && c.turns >= wakeGrace && len(touch) < wakeTouches {
			c.touched, c.turns = true, 0
			touch = append(touch, Target{Pod: pod, Namespace: at.request.Namespace, Name: at.request.Name, Node: c.node.ID})
		}
	}
	return touch
}

// holds reports whether the claim stands, and takes its room if so. It ends when
// the pod waits no more, has been refused once more, does not come although it
// has been woken, or when the room has gone.
func (w *waker) holds(c *claim, at *waiter) bool {
	if at == nil {
		return false
	}
	if at.refusals != c.refusals || c.touched && c.turns > wakePatience {
		at.try(c.node)
		return false
	}
	next, err := w.plan.With(c.placement)
	if err == nil {
		w.plan = next
	}
	return err == nil
}

// try notes that the pod did not get the node in this state.
func (at *waiter) try(node *ledger.Node) {
	if at.tried == nil {
		at.tried = map[gpu.NodeID]*ledger.Node{}
	}
	at.tried[node.ID] = node
}

// find makes claims for those who fit a node that has changed since they were
// refused, or that is open again; the longest waiting first.
func (w *waker) find(pods *waiting, state ledger.Snapshot) {
	judged := 0
	for _, pod := range pods.order {
		at := pods.byPod[pod]
		if _, has := w.claims[pod]; has {
			continue
		}
		nodes := state.Since(at.seen)
		for _, id := range w.open {
			if n, ok := state.Node(id); ok {
				nodes = append(nodes, n)
			}
		}
		if judged > 0 && judged+len(nodes) > wakeJudgements {
			return // the others keep what they have seen, and come next time
		}
		judged += len(nodes)
		at.seen = state
		if c := w.fits(at, nodes); c != nil {
			w.claims[pod] = c
		}
	}
}

// fits returns a claim on the first of the nodes that does, and takes its room;
// nil if none does.
func (w *waker) fits(at *waiter, nodes []*ledger.Node) *claim {
	cycle := &pipeline.Cycle{Request: &at.request, Nodes: len(nodes)}
	var scratch pipeline.Scratch
	for _, n := range nodes {
		now, _ := w.plan.Node(n.ID)
		if at.tried[n.ID] == n || !w.pipe.Judge(cycle, now, &scratch).OK() {
			continue
		}
		p, v := w.pipe.Assign(cycle, now)
		next, err := w.plan.With(p)
		if v.OK() && err == nil {
			w.plan = next
			return &claim{placement: p, node: n, refusals: at.refusals}
		}
	}
	return nil
}
