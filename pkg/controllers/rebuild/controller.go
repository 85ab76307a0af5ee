package rebuild

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"

	kindlisters "heteroflow.io/heteroflow/pkg/generated/listers/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/metrics"
)

// Rules say when a node is given up, and how fast what was there is replaced.
type Rules struct {
	// Grace is how long a node has been gone or not ready before its pods are evicted.
	Grace time.Duration
	// AtOnce is how many pods of a TaskGroup may be on their way at once. 1 or more.
	AtOnce int
}

// Controller has pods of services replaced whose nodes are lost. Its fields are set
// before Run and not changed.
type Controller struct {
	// What has been seen of the cluster.
	PodLister  corelisters.PodLister
	NodeLister corelisters.NodeLister
	Groups     kindlisters.TaskGroupLister

	// What is asked of the API server.
	Pods  Pods
	Nodes Nodes

	Rules Rules

	Tell  func(kube.Notice) // never blocks
	Meter Meter
	Now   func() time.Time

	memory memory
}

// Pods is what is asked of the API server about pods.
type Pods interface {
	Get(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	// Evict evicts the pod of the version that was read, with its own grace.
	Evict(ctx context.Context, pod *corev1.Pod, dryRun bool) error
}

// Nodes is what is asked of it about nodes.
type Nodes interface {
	Get(ctx context.Context, name string) (*corev1.Node, error)
}

var (
	_ Pods  = kube.PodAPI{}
	_ Nodes = kube.NodeAPI{}
)

// Meter counts what is done.
type Meter interface {
	Rebuilt(metrics.RebuildOutcome)
	// RebuildHalted is told, each round, of how many TaskGroups nothing is rebuilt
	// since too many nodes are lost at once.
	RebuildHalted(groups int)
}

var _ Meter = (*metrics.Metrics)(nil)

const (
	period = 10 * time.Second
	// pace is the least time between two rounds.
	pace = time.Second
	// mostLooks bounds at how many pods a round looks anew.
	mostLooks = 200
)

// Run has pods replaced until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	defer c.Meter.RebuildHalted(0)
	return kube.Rounds(ctx, period, pace, nil, c.round)
}

// round looks, decides and applies once.
func (c *Controller) round(ctx context.Context) {
	s, err := c.look()
	if err != nil { // of listers that serve from memory
		klog.FromContext(ctx).Error(err, "what there is of services cannot be listed")
		return
	}
	p := decide(&s, c.Rules)
	c.tellHalted(ctx, p.halted)
	c.Meter.RebuildHalted(len(p.halted))
	c.apply(ctx, &p)
}
