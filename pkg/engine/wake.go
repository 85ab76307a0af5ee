package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
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
	// wakePatience is how long a pod that has been woken keeps others from
	// being woken for the same room. One in back-off comes later, by itself.
	wakePatience = 6
	// wakePause is how long a pod is left alone that was woken in vain; twice
	// as long with every time, up to a minute.
	wakePause, wakeLongest = 4, 240
	// wakeTouches bounds the writes of a turn, wakeClaims and wakeJudgements
	// its work, to some 10 ms: filters wait for it.
	wakeTouches    = 5
	wakeClaims     = 100
	wakeJudgements = 10_000
)

// WakePeriod is the time between two turns of Wake that its promise, a second
// from room appearing to a pod being woken, is made for.
const WakePeriod = 250 * time.Millisecond

// touchTime bounds one touch.
const touchTime = time.Second

// claim is a node that a waiting pod is believed to fit.
type claim struct {
	placement gpu.Placement
	made      int // claims before it
	refusals  int // of the pod by then
	turns     int // since it was made, or since the touch
	touched   bool
}

// waker is what Wake remembers from turn to turn.
type waker struct {
	pods   *waiting
	pipe   *pipeline.Pipeline
	turn   int
	claims map[gpu.PodID]*claim
	made   int       // claims so far
	resume gpu.PodID // where the last turn stopped for want of time; "": at the first
	// state is the ledger's, and plan that with the room of all claims taken.
	state, plan ledger.Snapshot
	// open has the nodes on which a claim has come to nothing in this turn:
	// others may fit now although the node has not changed.
	open []gpu.NodeID
}

// Wake has pods tried again that were refused and fit now, until ctx ends.
// Kube-scheduler is told of pods that end and of nodes that change, but not of a
// hold that expires, or of a policy that allows more; and of many nodes it
// offers a sample, which may have left out the one that fits.
//
// A pod is touched when it fits a node that has changed since it was refused, or
// that was not offered, kube-scheduler has not come with it for a moment, and no
// other that has just been woken is about to take that room. For one state of a
// node it is touched once; one that is woken in vain, since kube-scheduler has
// reasons of its own against the node, is woken ever more seldom.
func (e *Engine) Wake(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	w := &waker{pods: &e.waiting, pipe: e.cfg.Pipeline(), claims: map[gpu.PodID]*claim{}}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			e.touch(ctx, w, w.next(e.cfg.Ledger.Snapshot(), e.cfg.Pipeline()))
		}
	}
}

// touch wakes pods, all at once. Those that turn out to wait no more are
// forgotten; a touch that fails is done again.
func (e *Engine) touch(ctx context.Context, w *waker, pods []Target) {
	ctx, stop := context.WithTimeout(ctx, touchTime)
	defer stop()
	over, failed := make([]bool, len(pods)), make([]bool, len(pods))
	var all sync.WaitGroup
	for i, t := range pods {
		all.Go(func() {
			pod, err := e.cfg.Pods.Touch(ctx, t, "a node has room for it")
			over[i] = errors.Is(err, ErrNoPod) || err == nil && (pod.Node != "" || pod.Gone)
			failed[i] = err != nil
		})
	}
	all.Wait()
	for i, t := range pods {
		switch c := w.claims[t.Pod]; {
		case over[i]:
			e.waiting.forget(t.Pod)
		case failed[i] && c != nil:
			c.touched, c.turns = false, 0
		}
	}
}

// next takes a turn and returns the pods to touch.
func (w *waker) next(state ledger.Snapshot, pipe *pipeline.Pipeline) []Target {
	w.pods.mu.Lock()
	defer w.pods.mu.Unlock()
	w.turn++
	w.state, w.plan, w.open = state, state, nil
	if pipe != w.pipe { // another policy: all is open again
		w.pipe = pipe
		for _, at := range w.pods.byPod {
			at.seen, at.tried, at.vain, at.until = ledger.Snapshot{}, nil, 0, 0
		}
	}
	touch := w.keep()
	w.find()
	return touch
}

// keep goes through the claims: it drops those that have come to an end, takes
// the room of the others from the plan, and returns the pods to touch.
func (w *waker) keep() (touch []Target) {
	oldest := func(a, b gpu.PodID) int { return w.claims[a].made - w.claims[b].made }
	for _, pod := range slices.SortedFunc(maps.Keys(w.claims), oldest) {
		c, at := w.claims[pod], w.pods.byPod[pod]
		c.turns++
		if !w.holds(c, at) {
			delete(w.claims, pod)
			w.open = append(w.open, c.placement.Node)
			continue
		}
		if !c.touched && c.turns >= wakeGrace && len(touch) < wakeTouches {
			c.touched, c.turns = true, 0
			touch = append(touch, Target{Pod: pod, Namespace: at.request.Namespace, Name: at.request.Name})
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
		w.inVain(c, at)
		return false
	}
	next, err := w.plan.With(c.placement)
	if err == nil {
		w.plan = next
	}
	return err == nil
}

// inVain notes that the pod did not get the node that it was believed to fit.
func (w *waker) inVain(c *claim, at *waiter) {
	if n, ok := w.state.Node(c.placement.Node); ok {
		at.try(n)
	}
	if c.touched {
		at.until = w.turn + min(wakePause<<min(at.vain, 10), wakeLongest)
		at.vain++
		w.pods.postpone(at.request.Pod)
	}
}

// find makes claims for those who fit a node that has changed since they were
// refused, that they were not offered, or that is open again. It goes on where
// the last turn had no more time.
func (w *waker) find() {
	judged, from := 0, max(0, slices.Index(w.pods.order, w.resume))
	for k := range w.pods.order {
		pod := w.pods.order[(from+k)%len(w.pods.order)]
		at := w.pods.byPod[pod]
		if _, has := w.claims[pod]; has || w.turn < at.until {
			continue
		}
		nodes := w.candidates(at)
		if judged > 0 && judged+len(nodes) > wakeJudgements || len(w.claims) >= wakeClaims {
			w.resume = pod
			return
		}
		judged += len(nodes)
		at.seen = w.state
		if c := w.fits(at, nodes); c != nil {
			w.claims[pod] = c
		}
	}
	w.resume = ""
}

// candidates returns the nodes of which it is not known that the pod does not
// fit them.
func (w *waker) candidates(at *waiter) []*ledger.Node {
	nodes := w.state.Since(at.seen)
	for _, id := range w.open {
		if n, ok := w.state.Node(id); ok {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// fits returns a claim on the first of the nodes that does, and takes its room;
// nil if none does.
func (w *waker) fits(at *waiter, nodes []*ledger.Node) *claim {
	cycle := &pipeline.Cycle{Request: &at.request, Nodes: len(nodes)}
	var scratch pipeline.Scratch
	for _, n := range nodes {
		now, _ := w.plan.Node(n.ID)
		if at.tried[n.ID] == n.Version || !hasMain(now, &at.request) || !w.pipe.Judge(cycle, now, &scratch).OK() {
			continue
		}
		p, v := w.pipe.Assign(cycle, now)
		next, err := w.plan.With(p)
		if v.OK() && err == nil {
			w.plan = next
			w.made++
			return &claim{placement: p, made: w.made, refusals: at.refusals}
		}
	}
	return nil
}

// hasMain reports whether the node has the processors and the main memory, which
// kube-scheduler asks for before it asks us.
func hasMain(n *ledger.Node, r *gpu.Request) bool {
	return (n.CPU == 0 || n.UsedCPU+r.CPU <= n.CPU) && (n.Memory == 0 || n.UsedMemory+r.Memory <= n.Memory)
}
