package preempt

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/engine"
	kindlisters "heteroflow.io/heteroflow/pkg/generated/listers/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// Controller plans preemptions and carries them out. Its fields are set before Run
// and not changed.
type Controller struct {
	// What has been seen of the cluster.
	PodLister   corelisters.PodLister
	Preemptions kindlisters.PreemptionLister
	Changed     func() <-chan struct{} // closed when there is something to look at; nil: a round each second is soon enough

	// What is asked of the API server.
	Pods  Pods
	Plans Plans
	Jobs  Jobs

	Ledger  Ledger
	Planner Planner
	Codec   Codec
	// Base is what a round plans by, but for State, Pods, Now, History and Blocked.
	Base     func() preempt.World
	Nominate func(ctx context.Context, t engine.Target, why string) (engine.Pod, error)
	Withdraw func(ctx context.Context, t engine.Target) error
	// Resume reports whether the pods of a Job of this template fit now, beside
	// everybody else's.
	Resume func(namespace string, template *corev1.PodTemplateSpec, pods int32) bool

	Tell  func(kube.Notice) // never blocks
	Meter Meter
	// Ended is told of each preemption that has come to an end, and how long after its
	// plan.
	Ended func(outcome v1alpha1.PreemptionPhase, took time.Duration)
	Now   func() time.Time

	memory memory
}

// Ledger is the part of the ledger that keeps the room for preemptors.
type Ledger interface {
	Claim(p gpu.Placement, victims []gpu.PodID) error
	Unclaim(pod gpu.PodID)
	Hold(pod gpu.PodID) (ledger.Hold, bool)
	Snapshot() ledger.Snapshot
}

// Planner decides who is ended for whom.
type Planner struct {
	Plan    func(w *preempt.World, a *preempt.Asker) (preempt.Plan, preempt.Outcome)
	Certify func(w *preempt.World, p *preempt.Plan) error
}

// Codec reads pods and plans, and writes them.
type Codec struct {
	Bound    func(*corev1.Pod) preempt.Pod
	Asking   func(*corev1.Pod) (preempt.Asker, bool)
	Manifest func(pod *corev1.Pod, count int) ([]byte, error)
	// Allocation and Claim write down which cards are kept for the preemptor, and
	// read it again.
	Allocation func(p *gpu.Placement) (string, error)
	Claim      func(p *v1alpha1.Preemption) (gpu.Placement, error)
}

// Meter counts what is done.
type Meter interface {
	// PreemptionPlanning is told of each plan that was tried, whatever came of it.
	PreemptionPlanning(took time.Duration)
	// PreemptionPlanned is told of each that was written down.
	PreemptionPlanned(victims int)
	// Disrupted is told how long a victim was without a successor.
	Disrupted(d time.Duration)
}

const (
	// period is between two rounds; what has changed has one at once, and pace is
	// the least time between two.
	period = time.Second
	pace   = 100 * time.Millisecond
	// mostSteps bounds what is done for one Preemption in a round, and mostDeeds
	// for all.
	mostSteps = 8
	mostDeeds = 400
	// mostActive bounds how many preemptors are waited for at once.
	mostActive = 100
	// mostAskers bounds for how many a round plans.
	mostAskers = 200
	// mostVictims is how many a Preemption may name.
	mostVictims = 256
	// planningTime bounds how long a round plans, but for the last plan.
	planningTime = 500 * time.Millisecond
	// callTime bounds one request.
	callTime = 5 * time.Second
)

// Run plans and carries out until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	return kube.Rounds(ctx, period, pace, c.Changed, c.round)
}

// round goes on with what has been begun, oldest first, and plans for those who wait.
func (c *Controller) round(ctx context.Context) {
	all, err := c.Preemptions.List(labels.Everything())
	if err != nil { // of a lister that serves from memory
		klog.FromContext(ctx).Error(err, "Preemptions cannot be listed")
		return
	}
	all = c.memory.begin(all, c.Now())
	slices.SortFunc(all, func(a, b *v1alpha1.Preemption) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	pods, err := c.PodLister.List(labels.Everything())
	if err != nil {
		klog.FromContext(ctx).Error(err, "pods cannot be listed")
		return
	}
	r := &round{Controller: c, all: all, pods: pods, deeds: mostDeeds}
	for _, p := range all {
		if ctx.Err() != nil || r.deeds <= 0 {
			return
		}
		if err := r.advance(ctx, p); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "preemption does not go on", "preemption", p.Name, "pod", klog.KRef(p.Spec.Preemptor.Namespace, p.Spec.Preemptor.Name), "node", p.Spec.Node)
		}
	}
	r.plan(ctx)
}
