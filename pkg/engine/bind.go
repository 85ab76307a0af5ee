package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Target names the pod to bind and where to.
type Target struct {
	Pod       gpu.PodID
	Namespace string
	Name      string
	Node      gpu.NodeID
}

// Bound is a bind that happened.
type Bound struct {
	Placement gpu.Placement // empty when Already
	Already   bool          // it had happened before
	Decision  Decision
}

// Refusal is a bind that did not happen, by its reason code.
type Refusal struct {
	Reason gpu.Reason
	Detail string
	Cause  error
}

// Error reads as a path: the code, what is the case, and why.
func (r *Refusal) Error() string {
	text := fmt.Sprintf("%s: %s", r.Reason, r.Detail)
	if r.Cause != nil {
		text += ": " + r.Cause.Error()
	}
	return text
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Cause }

func conflict(cause error, format string, args ...any) *Refusal {
	return &Refusal{Reason: gpu.BindConflict, Detail: fmt.Sprintf(format, args...), Cause: cause}
}

// Bind binds the pod to the node with the cards it chooses. It is safe to
// repeat: a pod that is bound there already, by us, is a success. The error is
// a *Refusal; unless its cause is ErrUnknown nothing is held for the pod then.
func (e *Engine) Bind(ctx context.Context, t Target) (Bound, error) {
	began := e.cfg.Now()
	leave, err := waitFor(ctx, e.cfg.Wait, &e.pods, t.Pod)
	if err != nil {
		return Bound{}, conflict(err, "another bind of the pod is in progress")
	}
	defer leave()
	defer e.hints.drop(t.Pod)
	left := e.cfg.Wait - e.cfg.Now().Sub(began) // for whatever else has to be waited for
	pod, err := e.lookup(ctx, t)
	if err != nil {
		return Bound{}, err
	}
	if done, err := bindable(pod, t); done || err != nil {
		return Bound{Already: done}, err
	}
	p, err := e.reserve(ctx, left, &pod.Request, t.Node)
	if err != nil {
		return Bound{}, err
	}
	if err := e.send(ctx, t, p, pod.Says); err != nil {
		return Bound{}, err
	}
	e.waiting.forget(t.Pod)
	return Bound{Placement: p, Decision: e.decisions.take(t.Pod)}, nil
}

// lookup finds the pod. One that an earlier bind holds cards for, whose outcome
// nobody has learnt, is looked up where the outcome is known.
func (e *Engine) lookup(ctx context.Context, t Target) (Pod, error) {
	if h, ok := e.cfg.Ledger.Hold(t.Pod); ok && h.State == ledger.Held {
		pod, err := e.settle(ctx, t)
		if err != nil {
			return Pod{}, conflict(err, "outcome of an earlier bind of pod %s/%s", t.Namespace, t.Name)
		}
		return pod, nil
	}
	pod, err := e.cfg.Pods.Pod(ctx, t.Namespace, t.Name)
	if err == nil && pod.Request.Pod != t.Pod {
		// A pod made anew under its name: kube-scheduler may have seen it
		// before us.
		pod, err = e.cfg.Pods.Live(ctx, t.Namespace, t.Name)
	}
	if err != nil {
		return Pod{}, conflict(err, "look up pod %s/%s", t.Namespace, t.Name)
	}
	return pod, nil
}

func waitFor[K comparable](ctx context.Context, longest time.Duration, g *gates[K], key K) (leave func(), err error) {
	ctx, stop := context.WithTimeout(ctx, longest)
	defer stop()
	return g.enter(ctx, key)
}

// bindable says whether the pod is the one meant and still wants a node; done
// when it is on this very node already.
func bindable(pod Pod, t Target) (done bool, err error) {
	switch {
	case pod.Request.Pod == "": // settle found none
		return false, conflict(ErrNoPod, "pod %s/%s", t.Namespace, t.Name)
	case pod.Request.Pod != t.Pod:
		return false, conflict(nil, "pod %s/%s is another one now (UID %s, asked for %s)", t.Namespace, t.Name, pod.Request.Pod, t.Pod)
	case pod.Node == t.Node && pod.Ours:
		return true, nil
	case pod.Node != "":
		return false, conflict(nil, "pod %s/%s is bound to %s", t.Namespace, t.Name, pod.Node)
	case pod.Gone:
		return false, conflict(nil, "pod %s/%s is being deleted", t.Namespace, t.Name)
	case pod.Invalid != nil:
		return false, &Refusal{Reason: gpu.InvalidRequest, Detail: pod.Invalid.Error()}
	}
	return false, nil
}

// reserve re-checks the node as it is now and takes the cards. Before that it waits
// no longer than that.
func (e *Engine) reserve(ctx context.Context, longest time.Duration, r *gpu.Request, node gpu.NodeID) (gpu.Placement, error) {
	ctx, stop := context.WithTimeout(ctx, longest)
	defer stop()
	defer e.hints.drop(r.Pod)
	own, err := e.claimed(r, node)
	if err != nil {
		return gpu.Placement{}, err
	}
	if !own {
		e.giveWay(ctx, longest*3/5, r, node)
	}
	leave, err := e.nodes.enter(ctx, node)
	if err != nil {
		return gpu.Placement{}, conflict(err, "node %s is busy", node)
	}
	defer leave()
	live, claimed := e.view(r)
	n, ok := live.Node(node)
	if !ok {
		return gpu.Placement{}, &Refusal{Reason: gpu.NodeNotRegistered, Detail: fmt.Sprintf("node %s is not known", node)}
	}
	s := stand(r, live, e.terms(live), e.cfg.Now())
	if claimed != "" {
		n = n.Unkept()
	}
	p, v := s.choose(n)
	switch {
	case v.OK():
	case claimed != "":
		return gpu.Placement{}, &Refusal{Reason: gpu.PreemptionPending, Detail: fmt.Sprintf("others are still to make room on node %s%s", node, figures(v))}
	default:
		return gpu.Placement{}, &Refusal{Reason: v.Reason, Detail: fmt.Sprintf("node %s no longer fits%s", node, figures(v))}
	}
	if err := e.cfg.Ledger.Reserve(p); err != nil {
		return gpu.Placement{}, &Refusal{Reason: refusedBy(err), Detail: fmt.Sprintf("reserve on %s", node), Cause: err}
	}
	return p, nil
}

// claimed reports whether room is claimed there for the pod, and refuses the node if it
// is on another. A pod that asks
// for no card has been through no filter of ours: it has found a node by itself, and
// gives up what is claimed for it.
func (e *Engine) claimed(r *gpu.Request, node gpu.NodeID) (own bool, err error) {
	at, ok := e.cfg.Ledger.Snapshot().Claim(r.Pod)
	switch {
	case !ok || at == node:
		return ok, nil
	case !r.AsksForCards():
		e.cfg.Ledger.Unclaim(r.Pod)
		return false, nil
	}
	return false, &Refusal{Reason: gpu.PreemptionPending, Detail: fmt.Sprintf("room is made for the pod on node %s, and not on %s", at, node)}
}

// refusedBy is the reason for what the ledger answers.
func refusedBy(err error) gpu.Reason {
	switch {
	case errors.Is(err, ledger.ErrQuota):
		return gpu.QuotaExceeded
	case errors.Is(err, ledger.ErrInactive):
		return gpu.TenantInactive
	}
	return gpu.BindConflict
}

// giveWay waits for pods of higher priority that are on their way to the node, or
// that are to take of the same quotas, if there is room for the request, but not
// after them. kube-scheduler has taken them first, and what it binds in the
// background arrives in any order.
func (e *Engine) giveWay(ctx context.Context, longest time.Duration, r *gpu.Request, node gpu.NodeID) {
	ctx, stop := context.WithTimeout(ctx, longest)
	defer stop()
	for {
		now := e.cfg.Now()
		ahead, until, change := e.hints.ahead(r, e.rivals(r, node), now)
		if len(ahead) == 0 || !e.fits(r, node) || e.fits(r, node, ahead...) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-change:
		case <-time.After(until.Sub(now)):
		}
	}
}

// rivals says which placements may take what the request wants on the node.
func (e *Engine) rivals(r *gpu.Request, node gpu.NodeID) func(*gpu.Placement) bool {
	limited := e.cfg.Ledger.Snapshot().Purse(r.Namespace).Limited()
	return func(p *gpu.Placement) bool { return limited || p.Node == node }
}

// fits reports whether the request fits the node once these have arrived.
func (e *Engine) fits(r *gpu.Request, node gpu.NodeID, ahead ...gpu.Placement) bool {
	state, _ := e.view(r)
	for _, p := range ahead {
		if next, err := state.With(p); err == nil {
			state = next
		}
	}
	n, ok := state.Node(node)
	s := stand(r, state, e.terms(state), e.cfg.Now())
	return ok && s.fits(n)
}

// figures are those of the refusal, as they stand in its text.
func figures(v pipeline.Verdict) string {
	switch {
	case v.Limit != nil:
		return fmt.Sprintf(" (%s)", gpu.Excess{Limit: v.Limit, Used: v.Have, Asked: v.Want})
	case v.Gauge != "":
		return fmt.Sprintf(" (%s)", measured(v.Gauge, v.Have, v.Want))
	case v.Closed > 0:
		return fmt.Sprintf(" (%s closed; left: %d of %d %s)", cardsText(v.Closed), v.Have, v.Want, v.Reason.Info().Unit)
	case v.Want == 0:
		return ""
	}
	return fmt.Sprintf(" (%d of %d %s%s)", v.Have, v.Want, v.Reason.Info().Unit, foreignText(v.Foreign))
}

// send writes the Binding. What is refused is given back at once; what may have
// happened is looked up before anything is given back.
func (e *Engine) send(ctx context.Context, t Target, p gpu.Placement, said map[string]string) error {
	sending, stop := e.leavingReadback(ctx)
	defer stop()
	err := e.cfg.Binder.Bind(sending, p, said)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrUnknown):
	case errors.Is(err, ErrRefused):
		e.cfg.Ledger.Unreserve(t.Pod)
		return conflict(err, "bind pod %s/%s to %s", t.Namespace, t.Name, t.Node)
	default: // it says neither, so it may have happened
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	pod, lost := e.settle(ctx, t)
	switch {
	case lost != nil:
		return conflict(err, "bind pod %s/%s to %s, and the hold stays", t.Namespace, t.Name, t.Node)
	case pod.Request.Pod == t.Pod && pod.Node == t.Node && pod.Ours:
		return nil
	}
	return conflict(err, "bind pod %s/%s to %s", t.Namespace, t.Name, t.Node)
}

// leavingReadback ends early enough before ctx that the outcome can be read back
// by the time that the caller waits for.
func (e *Engine) leavingReadback(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, end.Add(-e.cfg.Readback))
}

// settle finds out what became of a Binding, until the API server answers or the
// time is up, and gives the hold back if the pod is not bound and cannot be by
// that Binding any more. The time counts from now, even if the caller's own has
// run out: that is when it is needed.
func (e *Engine) settle(ctx context.Context, t Target) (Pod, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.Readback)
	defer stop()
	for {
		pod, err := e.outcome(ctx, t)
		if err == nil {
			e.settled(t.Pod, pod)
			return pod, nil
		}
		select {
		case <-ctx.Done():
			return Pod{}, fmt.Errorf("%w: %w", ErrUnknown, err)
		case <-time.After(e.cfg.Retry):
		}
	}
}

// settled gives back what is held for a pod that is not bound. One that has gone
// may have been bound before that, and deleted by force: its containers may run.
func (e *Engine) settled(id gpu.PodID, pod Pod) {
	switch h, ok := e.cfg.Ledger.Hold(id); {
	case !ok || h.State != ledger.Held:
	case pod.Request.Pod != id:
		e.cfg.Ledger.Linger(id, e.cfg.Now().Add(e.cfg.Linger))
	case pod.Node == "":
		e.cfg.Ledger.Unreserve(id)
	}
}

// outcome returns the pod in a state that no Binding from before can change;
// the zero Pod if there is none. One that is bound is not touched.
func (e *Engine) outcome(ctx context.Context, t Target) (Pod, error) {
	pod, err := e.cfg.Pods.Live(ctx, t.Namespace, t.Name)
	if err == nil && pod.Request.Pod == t.Pod && pod.Node == "" {
		pod, err = e.cfg.Pods.Touch(ctx, t, "the outcome of a Binding was not known")
	}
	if errors.Is(err, ErrNoPod) {
		return Pod{}, nil
	}
	return pod, err
}
