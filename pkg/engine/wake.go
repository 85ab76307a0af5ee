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
	// wakePatience is how long a pod that has been woken keeps others from
	// being woken for the same room. One in back-off comes later, by itself.
	wakePatience = 6
	// wakePause is how long a pod is left alone that was woken in vain; twice
	// as long with every time, up to a minute.
	wakePause, wakeLongest = 4, 240
	// wakeErrands bounds the writes of a turn: 80 a second are somewhat fewer
	// than the pods that kube-scheduler tries in that time.
	wakeErrands = 20
	// wakeClaims and wakeJudgements bound a turn's work, to some 10 ms: filters
	// wait for it.
	wakeClaims     = 100
	wakeJudgements = 10_000
	// suitsCosts is what one question to Pods.Suits costs, in judgements.
	suitsCosts = 10
)

// WakePeriod is the time between two turns of Wake that its promise, a second
// from room appearing to a pod being woken, is made for.
const WakePeriod = 250 * time.Millisecond

// claim is a node that a waiting pod is believed to fit.
type claim struct {
	placement gpu.Placement
	made      int // claims before it
	refusals  int // of the pod by then
	turns     int // since it was made, or since the touch
	touched   bool
	nominated bool // touched, and pointed to the node
	again     bool // a nomination of it has met with another attempt
}

// waker is what Wake remembers from turn to turn.
type waker struct {
	pods   *waiting
	suits  func(Target) bool
	by     terms
	now    time.Time // of this turn
	turn   int
	claims map[gpu.PodID]*claim
	// nominations may still be on their pods.
	nominations map[gpu.PodID]*nomination
	promised    map[gpu.NodeID]main // what those take for kube-scheduler, beside the plan
	made        int                 // claims so far
	judged      int                 // nodes in this turn
	resume      gpu.PodID           // where the last turn stopped for want of time; "": at the first
	// state is the ledger's, and plan that with the room of all claims taken.
	state, plan ledger.Snapshot
	scratch     pipeline.Scratch
	homes       map[string]home // namespace -> what the plan leaves it; of some
	// unfit has, by class of waiters, since when none of the nodes that have changed fits
	// it; of this turn. Telemetry changes all nodes at once, and thousands wait that
	// are of few kinds.
	unfit map[class]ledger.Snapshot
	// left has the nodes on which a claim has come to nothing in this turn: others
	// may fit now although the node has not changed.
	left []gpu.NodeID
}

// Wake has pods tried again that were refused and fit now, until ctx ends.
// Kube-scheduler is told of pods that end and of nodes that change, but not of a
// hold that expires, or of a policy, a tenant or a quota that allows more; and of
// many nodes it offers a sample, which may have left out the one that fits.
//
// A pod is woken when it fits a node that has changed since it was refused, that
// was not offered, or that a quota kept it from which allows it now; when
// kube-scheduler has not come with it for a moment, and no other that has just been
// woken is about to take that room. In a cluster that is offered whole it is
// touched, in a larger one the node is nominated for it. For one state of a node it
// is woken once; one that is woken in vain, since kube-scheduler has reasons of its
// own against the node, is woken ever more seldom. Who waits for its task group is woken
// when that is known. While this replica does not lead, no turn is taken: another may, and
// has nominations of its own. Nor is a pod woken that room is claimed for.
//
// A turn also brings up to date what is known of requests to come, and of room for them.
func (e *Engine) Wake(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	w := newWaker(&e.waiting, e.cfg.Pods.Suits, terms{pipe: e.cfg.Pipeline()})
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if e.cfg.Leads != nil && !e.cfg.Leads() {
				continue
			}
			state := e.cfg.Ledger.Snapshot()
			e.look(state)
			e.run(ctx, w, w.next(state, e.terms(state), e.cfg.Now()))
		}
	}
}

func newWaker(pods *waiting, suits func(Target) bool, by terms) *waker {
	return &waker{
		pods: pods, suits: suits, by: by,
		claims: map[gpu.PodID]*claim{}, nominations: map[gpu.PodID]*nomination{}, homes: map[string]home{},
		unfit: map[class]ledger.Snapshot{},
	}
}

// next takes a turn and returns what to do for which pods.
func (w *waker) next(state ledger.Snapshot, by terms, now time.Time) []errand {
	w.pods.mu.Lock()
	defer w.pods.mu.Unlock()
	w.turn++
	w.now = now
	w.state, w.plan, w.left, w.judged = state, state, nil, 0
	clear(w.homes)
	clear(w.unfit)
	policy := w.by.pipe
	if w.by = by; by.pipe != policy { // another one: all is open again
		for _, at := range w.pods.byPod {
			at.anew(at.whose)
		}
	}
	errands := w.withdraw()
	errands = append(errands, w.keep(wakeErrands-len(errands))...)
	w.promise()
	w.find()
	return errands
}

// keep goes through the claims: it drops those that have come to an end, takes
// the room of the others from the plan, and returns whom to wake, so many at
// most.
func (w *waker) keep(most int) (wake []errand) {
	oldest := func(a, b gpu.PodID) int { return w.claims[a].made - w.claims[b].made }
	for _, pod := range slices.SortedFunc(maps.Keys(w.claims), oldest) {
		c, at := w.claims[pod], w.pods.byPod[pod]
		c.turns++
		if !w.holds(c, at) {
			delete(w.claims, pod)
			w.left = append(w.left, c.placement.Node)
			continue
		}
		if c.due() && len(wake) < most {
			c.touched, c.nominated, c.turns = true, w.sampled(), 0
			wake = append(wake, w.wake(c))
		}
	}
	return wake
}

// due reports whether kube-scheduler has had its time to come by itself.
func (c *claim) due() bool { return !c.touched && c.turns >= wakeGrace }

// holds reports whether the claim stands, and takes its room if so. It ends when
// the pod waits no more, has been refused once more, does not come although it
// has been woken, or when the room has gone or is not for it.
func (w *waker) holds(c *claim, at *waiter) bool {
	if at == nil || w.awaits(c.placement.Pod) {
		return false
	}
	if at.refusals != c.refusals && w.sampled() && (!c.touched || crossed(c.turns, c.again)) {
		// Of a sample without the node. What kube-scheduler does about the
		// refusal ends a nomination: that has to be over first.
		c.again = c.touched
		c.refusals, c.turns, c.touched, c.nominated = at.refusals, 0, false, false
	}
	if at.refusals != c.refusals || c.touched && c.turns > wakePatience {
		w.inVain(c, at)
		return false
	}
	if c.due() && !w.suits(c.target()) {
		return false
	}
	return w.take(c.placement) || w.moves(c, at)
}

// awaits reports whether others are on their way out for the pod. Who has them end wakes
// it when they have gone: it has nowhere else to go.
func (w *waker) awaits(pod gpu.PodID) bool {
	_, waits := w.state.Claim(pod)
	return waits
}

// take takes the room from the plan, if it is there.
func (w *waker) take(p gpu.Placement) bool {
	next, err := w.plan.With(p)
	if err == nil {
		w.plan = next
		clear(w.homes)
	}
	return err == nil
}

// moves gives the claim other room on its node, if there is any: a bind chooses
// its cards by itself.
func (w *waker) moves(c *claim, at *waiter) bool {
	n, ok := w.plan.Node(c.placement.Node)
	if !ok || !w.hasMain(n, &at.request) {
		return false
	}
	s := stand(&at.request, w.plan, w.by, w.now)
	p, v := s.assign(n)
	if !v.OK() || !w.take(p) {
		return false
	}
	c.placement = p
	return true
}

// inVain notes that the pod did not get the node that it was believed to fit. Of
// a node that was nominated that is known only when the pod has come. Who comes
// and finds that somebody else has what a quota allowed is not woken more seldom:
// kube-scheduler has nothing against the node.
func (w *waker) inVain(c *claim, at *waiter) {
	if n, ok := w.state.Node(c.placement.Node); ok && !c.nominated {
		at.try(n)
	}
	if !c.touched {
		return
	}
	w.pods.postpone(at.request.Pod)
	if outrun := at.refusals != c.refusals && at.seen.Len() > 0 && at.dear.some(); !outrun {
		at.until = w.turn + min(wakePause<<min(at.vain, 10), wakeLongest)
		at.vain++
	}
}

// find makes claims for those who fit a node that has changed since they were
// refused, that they were not offered, or that is open again. It goes on where
// the last turn had no more time.
func (w *waker) find() {
	from := max(0, slices.Index(w.pods.order, w.resume))
	for k := range w.pods.order {
		pod := w.pods.order[(from+k)%len(w.pods.order)]
		at := w.pods.byPod[pod]
		if w.claims[pod] != nil || w.nominations[pod] != nil || w.awaits(pod) || !w.open(at) {
			continue
		}
		if since, none := w.unfit[at.class(w.state)]; none && since.Same(at.seen) {
			at.seen = w.state
			continue
		}
		nodes := w.candidates(at)
		if w.judged > 0 && w.judged+len(nodes) > wakeJudgements || len(w.claims) >= wakeClaims {
			w.resume = pod
			return
		}
		c, none := w.fits(at, nodes)
		switch {
		case c != nil:
			w.claims[pod] = c
		case none:
			w.unfit[at.class(w.state)] = at.seen
		}
		at.seen = w.state
	}
	w.resume = ""
}

// open reports whether any node may do for the pod, whatever the nodes are like.
// One that a quota was in the way of may fit any node again once that allows it,
// though none has changed, and so may one that is somebody else's now, or may come
// again.
func (w *waker) open(at *waiter) bool {
	if !at.request.AsksForCards() {
		return w.turn >= at.until
	}
	h := w.home(at.request.Namespace)
	theirs := h.whose
	if theirs.waits = waits(&at.request, w.plan); theirs != at.whose {
		at.anew(theirs)
	}
	switch {
	case w.turn < at.until, theirs.closed != "", theirs.waits, !pipeline.Afford(h.purse, at.least).OK():
		return false
	case at.dear.within(h.purse):
		at.seen, at.tried, at.dear = ledger.Snapshot{}, nil, prices{}
	}
	return true
}

// home is what the plan leaves to the pods of a namespace.
type home struct {
	whose
	purse ledger.Purse
}

// home returns that of the namespace. It is asked for once a waiting pod, of
// which there are thousands in few namespaces.
func (w *waker) home(namespace string) home {
	h, known := w.homes[namespace]
	if !known {
		h = home{ownerOf(namespace, w.plan), w.plan.Purse(namespace)}
		w.homes[namespace] = h
	}
	return h
}

// candidates returns the nodes of which it is not known that the pod does not
// fit them. Those come last to which somebody is still on the way.
func (w *waker) candidates(at *waiter) []*ledger.Node {
	nodes := w.state.Since(at.seen)
	for _, id := range w.left {
		if n, ok := w.state.Node(id); ok {
			nodes = append(nodes, n)
		}
	}
	slices.SortStableFunc(nodes, func(a, b *ledger.Node) int {
		_, one := w.promised[a.ID]
		_, other := w.promised[b.ID]
		return falseFirst(one, other)
	})
	return nodes
}

// fits returns a claim on the first of the nodes that does, and takes its room;
// nil if none does. None says that none does for any other of the class either.
func (w *waker) fits(at *waiter, nodes []*ledger.Node) (c *claim, none bool) {
	if len(nodes) == 0 {
		return nil, true // as nearly always
	}
	s := stand(&at.request, w.plan, w.by, w.now)
	s.cycle.Nodes, none = len(nodes), s.gate.OK()
	for _, n := range nodes {
		now, _ := w.plan.Node(n.ID)
		w.judged++
		if at.tried[n.ID] == n.Version {
			none = false
			continue
		}
		if !w.hasMain(now, &at.request) {
			continue
		}
		v, prices := s.judge(now, &w.scratch)
		if v.Limit != nil {
			at.dear.add(s.cycle.Purse, prices...)
		}
		none = none && !v.OK() && v.Limit == nil
		if !v.OK() {
			continue
		}
		w.judged += suitsCosts
		if !w.suits(Target{Pod: at.request.Pod, Namespace: at.request.Namespace, Name: at.request.Name, Node: n.ID}) {
			continue
		}
		if p, v := s.assign(now); v.OK() && w.take(p) {
			w.made++
			return &claim{placement: p, made: w.made, refusals: at.refusals}, false
		}
	}
	return nil, none
}

// main is processors and main memory.
type main struct {
	cpu    gpu.MilliCPU
	memory gpu.Bytes
}

// hasMain reports whether the node has the processors and the main memory, which
// kube-scheduler asks for before it asks us.
func (w *waker) hasMain(n *ledger.Node, r *gpu.Request) bool {
	p := w.promised[n.ID]
	return (n.CPU == 0 || n.UsedCPU+p.cpu+r.CPU <= n.CPU) && (n.Memory == 0 || n.UsedMemory+p.memory+r.Memory <= n.Memory)
}
