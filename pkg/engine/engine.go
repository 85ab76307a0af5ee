// Package engine answers the questions that are asked of the scheduler: which
// nodes a request fits, which of them is best, and binding a pod to one.
//
// Filter and Score read a frozen snapshot, write nothing and wait for nothing;
// where a pod goes by their answer is a hint to the answers after it. Bind is the only one that changes anything, in this order:
//
//	one at a time per pod -> the pod as it is now -> one at a time per node:
//	    re-check on live state -> choose cards -> reserve -> (node free again)
//	-> send the Binding -> refused: give back; unknown: find out; done: keep
//
// Finding out never trusts that a pod is not bound yet: a Binding that is still
// on its way could come to pass after the look. A touch of the pod makes every
// Binding that was sent before it impossible, and only then are cards given back.
//
// No lock of a node or of the ledger is held while the API server is asked; the
// pod's own is, so that two binds of one pod never overlap. All methods are
// safe for concurrent use.
package engine

import (
	"context"
	"errors"
	"time"

	"heteroflow.io/heteroflow/pkg/demand"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Sentinels of the interfaces that the engine is given.
var (
	// ErrNoPod means that there is no such pod.
	ErrNoPod = errors.New("no such pod")
	// ErrRefused means that the Binding has definitely not happened.
	ErrRefused = errors.New("binding refused")
	// ErrUnknown means that the Binding may have happened.
	ErrUnknown = errors.New("outcome of binding unknown")
)

// Pod is a pod as the API server has it.
type Pod struct {
	Request gpu.Request
	Says    map[string]string // its annotations, for the Binder; never edited
	Node    gpu.NodeID        // bound to; "" if not bound
	Ours    bool              // bound, with an allocation of ours that can be read
	Gone    bool              // being deleted, or ended
	Invalid error             // the request cannot be understood; names the field
}

// Pods finds pods. All return ErrNoPod when there is none of that name.
type Pods interface {
	// Pod answers from the cache where it can.
	Pod(ctx context.Context, namespace, name string) (Pod, error)
	// Live asks the API server.
	Live(ctx context.Context, namespace, name string) (Pod, error)
	// Touch changes the pod in a way that means nothing, and returns it as it
	// is then. The pod is of this UID, or there is none. The change wakes
	// kube-scheduler, and no Binding that was sent before can happen after it.
	Touch(ctx context.Context, t Target, why string) (Pod, error)
	Nominator
}

// Nominator points kube-scheduler to a node that it may not have looked at.
type Nominator interface {
	// Suits reports whether kube-scheduler's own filters let the pod onto
	// t.Node, as far as can be told from what has been seen of the two. It asks
	// nobody.
	Suits(t Target) bool
	// Nominate touches the pod and has kube-scheduler try t.Node first. It
	// leaves alone what somebody else has nominated, and then only touches.
	Nominate(ctx context.Context, t Target, why string) (Pod, error)
	// Withdraw ends the nomination of t.Node, if it is there.
	Withdraw(ctx context.Context, t Target) error
}

// Binder binds a pod together with its cards, or not at all. Its errors wrap
// ErrRefused or ErrUnknown. A Binding is for the pod as it was when it was sent:
// it fails if the pod has been changed since, see Pods.Touch; and if it does not wish what
// it did, by its annotations, when it was placed.
type Binder interface {
	Bind(ctx context.Context, p gpu.Placement, said map[string]string) error
}

// Config is what an engine works with.
type Config struct {
	Ledger   *ledger.Ledger
	Pipeline func() *pipeline.Pipeline // the one in force
	// Demand learns what is asked for; nil: nothing does, and plugins know nothing of it.
	Demand   *demand.Learner
	Now      func() time.Time
	Pods     Pods
	Binder   Binder
	Wait     time.Duration // longest wait for another bind of the same pod or node
	Readback time.Duration // longest search for the outcome of a Binding
	Retry    time.Duration // between two looks during that search; at least shortestRetry
	// Linger is how long the containers of a pod that has gone may run on, as far as
	// nobody else says: see ledger.Linger.
	Linger time.Duration
	// Leads reports whether this replica decides now; nil: it always does. Nobody
	// is woken by one that does not.
	Leads func() bool
}

// Engine decides. Make one with New.
type Engine struct {
	cfg       Config
	pods      gates[gpu.PodID]
	nodes     gates[gpu.NodeID]
	decisions decisions
	waiting   waiting
	verdicts  verdicts
	hints     hints
	counted   counted
	catalogue catalogue
}

// shortestRetry keeps a search for an outcome from flooding an API server that
// is in trouble already.
const shortestRetry = 50 * time.Millisecond

// New returns an engine.
func New(cfg Config) *Engine {
	cfg.Retry = max(cfg.Retry, shortestRetry)
	return &Engine{cfg: cfg}
}

// Forget drops what is known of a pod that is gone.
func (e *Engine) Forget(pod gpu.PodID) {
	e.waiting.forget(pod)
	e.hints.drop(pod)
}
