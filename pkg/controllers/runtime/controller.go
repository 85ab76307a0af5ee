package runtime

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/metrics"
)

// Controller ends pods that have run for as long as they may. Its fields are set before
// Run and not changed.
type Controller struct {
	PodLister corelisters.PodLister

	// What is asked of the API server.
	Pods Pods
	Jobs Jobs

	// Max returns how long the pod may run by its own word; false where it says nothing.
	Max func(*corev1.Pod) (time.Duration, bool)
	// Default is how long others may; 0: for ever. Where it is not Enforced they are
	// only told.
	Default  time.Duration
	Enforced bool
	// Inference reports whether the pod is part of a service, which runs for ever.
	Inference func(*corev1.Pod) bool
	// Ours reports whether the pod was bound by us, and asks for cards.
	Ours func(*corev1.Pod) bool

	Tell  func(kube.Notice) // never blocks
	Meter Meter
	Now   func() time.Time

	began  time.Time // when the first round was
	memory memory
}

// Pods is what is asked of the API server about pods. What changes one is of the pod
// that was read: another of its name, or another version, is a conflict.
type Pods interface {
	Get(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	// SetDeadline has the kubelet end the pod once it has run for so many seconds.
	SetDeadline(ctx context.Context, pod *corev1.Pod, seconds int64) error
	// Hasten has a pod that is being deleted end so many seconds after it was asked to.
	Hasten(ctx context.Context, pod *corev1.Pod, seconds int64) error
	// Evict evicts the pod with its own grace.
	Evict(ctx context.Context, pod *corev1.Pod, dryRun bool) error
}

// Jobs is what is asked of the API server about Jobs.
type Jobs interface {
	Get(ctx context.Context, namespace, name string) (*batchv1.Job, error)
	// Suspend suspends the Job of that version; no annotations leave its own alone.
	Suspend(ctx context.Context, j *batchv1.Job, suspend bool, annotations map[string]any) error
}

var (
	_ Pods = kube.PodAPI{}
	_ Jobs = kube.JobAPI{}
)

// Meter counts what is done.
type Meter interface {
	RuntimeExceeded(metrics.RuntimeAction)
}

var _ Meter = (*metrics.Metrics)(nil)

const (
	period = 5 * time.Second
	// pace is the least time between two rounds.
	pace = time.Second
	// mostDeeds bounds who is told, and who is ended, in a round.
	mostDeeds = 200
	// again is after how long it is looked again at a pod that was asked to end.
	again = time.Minute
	// patience is for how long a pod may go on whose Job is suspended, until it is ended
	// by itself.
	patience = 5 * time.Minute
)

// Run ends pods until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	return kube.Rounds(ctx, period, pace, nil, c.round)
}

// round looks, decides and applies once.
func (c *Controller) round(ctx context.Context) {
	pods, err := c.PodLister.List(labels.Everything())
	if err != nil { // of a lister that serves from memory
		klog.FromContext(ctx).Error(err, "pods cannot be listed")
		return
	}
	now := c.Now()
	if c.began.IsZero() || now.Before(c.began) { // the clock has been put back
		c.began = now
	}
	c.memory.begin()
	var soon []run // few of many
	for _, pod := range pods {
		r, limited := c.run(pod)
		if !limited {
			continue
		}
		c.memory.see(pod.UID)
		if r.soon(now) {
			soon = append(soon, r)
		}
	}
	c.memory.forget()
	c.apply(ctx, decide(soon, c.memory.pods, now))
}
