package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// shownWhole is the number of nodes up to which kube-scheduler looks at all of
// them, whatever its configuration. A touch is enough there; a nomination would
// take the node's processors and main memory from others until it is gone.
const shownWhole = 100

// How long nominations are left to kube-scheduler, in turns of Wake.
const (
	// nominationEnds is from the refusal to when kube-scheduler has ended the
	// nomination. It does not where its profile has a PostFilter plugin.
	nominationEnds = 4
	// nominationLongest is more than the longest back-off of our configuration
	// of kube-scheduler, 10 s, in which a pod does not come.
	nominationLongest = 60
)

// errand is what Wake does for a pod by asking the API server.
type errand struct {
	Target
	deed deed
}

type deed int

const (
	toTouch deed = iota
	toNominate
	toWithdraw
)

// nomination is one of ours that may still be on its pod.
type nomination struct {
	target   Target
	refusals int // of the pod by then
	refused  bool
	turns    int  // since it was made, or since the refusal after it
	again    bool // the one before has met with another attempt
}

// errandTime bounds one errand.
const errandTime = time.Second

// run does errands, all at once. Pods that turn out to wait no more are
// forgotten; what fails is done again.
func (e *Engine) run(ctx context.Context, w *waker, errands []errand) {
	ctx, stop := context.WithTimeout(ctx, errandTime)
	defer stop()
	over, failed := make([]bool, len(errands)), make([]bool, len(errands))
	var all sync.WaitGroup
	for i, t := range errands {
		all.Go(func() {
			pod, err := e.do(ctx, t)
			over[i] = errors.Is(err, ErrNoPod) || err == nil && (pod.Node != "" || pod.Gone)
			failed[i] = err != nil
		})
	}
	all.Wait()
	for i, t := range errands {
		switch {
		case over[i]:
			e.waiting.forget(t.Pod)
		case failed[i]:
			w.failed(t)
		case t.deed == toWithdraw:
			delete(w.nominations, t.Pod)
		}
	}
}

func (e *Engine) do(ctx context.Context, t errand) (Pod, error) {
	const why = "a node has room for it"
	switch t.deed {
	case toNominate:
		return e.cfg.Pods.Nominate(ctx, t.Target, why)
	case toWithdraw:
		return Pod{}, e.cfg.Pods.Withdraw(ctx, t.Target)
	}
	return e.cfg.Pods.Touch(ctx, t.Target, why)
}

// failed has a pod woken anew. A nomination that failed may have been written.
func (w *waker) failed(t errand) {
	if c := w.claims[t.Pod]; c != nil && t.deed != toWithdraw {
		c.touched, c.nominated, c.turns = false, false, 0
	}
}

// sampled reports whether kube-scheduler looks at a part of the nodes only.
func (w *waker) sampled() bool { return w.state.Len() > shownWhole }

// wake returns how the pod of the claim is woken.
func (w *waker) wake(c *claim) errand {
	t := errand{Target: c.target()}
	if c.nominated {
		t.deed = toNominate
		w.nominations[t.Pod] = &nomination{target: t.Target, refusals: c.refusals, again: c.again}
	}
	return t
}

// withdraw returns the nominations to be taken back: of pods that have been
// refused, unless kube-scheduler has done it, and of pods that do not come. A pod
// that waits no more is about to be bound, which ends its nomination.
func (w *waker) withdraw() (back []errand) {
	for _, pod := range slices.Sorted(maps.Keys(w.nominations)) {
		n, at := w.nominations[pod], w.pods.byPod[pod]
		if claimed, ok := w.state.Claim(pod); at == nil || ok && claimed == n.target.Node {
			delete(w.nominations, pod) // of a claimed node: it is no more ours to take back
			continue
		}
		n.turns++
		if at.refusals != n.refusals && !n.refused {
			if node, ok := w.state.Node(n.target.Node); ok && !crossed(n.turns, n.again) {
				at.try(node)
			}
			n.refused, n.turns = true, 0
		}
		over := n.refused && n.turns >= nominationEnds || n.turns >= nominationLongest
		if over && len(back) < wakeErrands {
			back = append(back, errand{n.target, toWithdraw})
		}
	}
	return back
}

// promise adds up what nominations take whose claims have ended, so that the
// plan does not have it.
func (w *waker) promise() {
	w.promised = map[gpu.NodeID]main{}
	for pod, n := range w.nominations {
		if at := w.pods.byPod[pod]; at != nil && w.claims[pod] == nil {
			was := w.promised[n.target.Node]
			w.promised[n.target.Node] = main{was.cpu + at.request.CPU, was.memory + at.request.Memory}
		}
	}
}

// crossed reports whether a refusal so many turns after a nomination is taken for
// that of an attempt which kube-scheduler had begun before. It may have ended the
// nomination, which is made once more then.
func crossed(turns int, again bool) bool { return turns <= 1 && !again }

func (c *claim) target() Target {
	p := &c.placement
	return Target{Pod: p.Pod, Namespace: p.Namespace, Name: p.Name, Node: p.Node}
}
