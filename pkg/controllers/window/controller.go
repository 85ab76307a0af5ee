package window

import (
	"context"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	kindlisters "heteroflow.io/heteroflow/pkg/generated/listers/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/metrics"
)

// Controller does what windows ask for. Its fields are set before Run and not changed.
type Controller struct {
	// What has been seen of the cluster.
	Groups  kindlisters.TaskGroupLister
	Changed func() <-chan struct{} // closed when there is a change of a TaskGroup: without it that waits for up to a minute

	// What is asked of the API server.
	Client  Groups
	Targets Targets

	// Group is how the ledger calls a TaskGroup, and Members who of it has a node.
	Group   func(namespace, name string) gpu.GroupID
	Members func(gpu.GroupID) []gpu.Placement
	// Encode and Decode write down which cards a member has, and read it again.
	Encode func(*gpu.Placement) (string, error)
	Decode func(*v1alpha1.TaskGroupMember) (gpu.Placement, error)
	// Inactive reports whether the tenant of the namespace is inactive.
	Inactive func(namespace string) bool
	// Budget is what namespaces may hold, by the quotas in force.
	Budget func() ledger.Budget

	Tell  func(kube.Notice) // never blocks
	Meter Meter
	Now   func() time.Time

	memory memory
	cursor types.NamespacedName // the group that was the last to be looked at
}

// Meter counts what is done.
type Meter interface {
	// WindowStep is told of each write, and how it went.
	WindowStep(step metrics.WindowStep, outcome metrics.WindowOutcome)
	// WindowLag is told how long after the opening or closing its first step was done.
	WindowLag(lag time.Duration)
}

var _ Meter = (*metrics.Metrics)(nil)

const (
	// least is between two rounds where nothing has changed, and pace in any case.
	least = time.Second
	pace  = 200 * time.Millisecond
	// period is after how long a group is looked at again of which nothing is known to
	// have changed, watching while others may still undo what was set, and retry where
	// something is left to be done.
	period   = 60 * time.Second
	watching = 15 * time.Second
	retry    = 5 * time.Second
	// mostGroups bounds how many groups a round looks at, and mostPasses how often each.
	mostGroups = 200
	mostPasses = 4
	// passTime is how long a pass may write: less than a lease lasts, so that one which
	// was stopped in the middle does not go on beside another leader.
	passTime = 10 * time.Second
	// callTime bounds one request.
	callTime = 5 * time.Second
)

// Run does what windows ask for until ctx ends. It sleeps until a group has changed or is
// due, so that it is there when windows open and close, or a while, to see who of the
// members has come and gone.
func (c *Controller) Run(ctx context.Context) error {
	for {
		news := c.Changed() // before the round, or what comes during it would wait
		wait := c.round(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pace):
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-news:
		case <-time.After(wait):
		}
	}
}

// round looks at the groups that are due, and returns for how long there is nothing to be
// done. Where the API server does not answer it ends: it would be the same for the others,
// who come first in the next.
func (c *Controller) round(ctx context.Context) (wait time.Duration) {
	groups, err := c.Groups.List(labels.Everything())
	if err != nil { // of a lister that serves from memory
		klog.FromContext(ctx).Error(err, "TaskGroups cannot be listed")
		return period
	}
	for i, name := range c.memory.due(groups, c.members, c.cursor, c.Now()) {
		if i == mostGroups || ctx.Err() != nil {
			return least
		}
		c.cursor = name
		if err := c.handle(ctx, name); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "TaskGroup does not go on", "taskGroup", klog.KRef(name.Namespace, name.Name))
			if !kube.Answered(err) {
				return least
			}
		}
	}
	return min(max(c.memory.next(c.Now()), least), watching) // nobody says that members have come
}

// members is how many of the group have a node.
func (c *Controller) members(g *v1alpha1.TaskGroup) int {
	return len(c.Members(c.Group(g.Namespace, g.Name)))
}

// handle looks at the group until nothing is left to be done at once.
func (c *Controller) handle(ctx context.Context, name types.NamespacedName) error {
	of := c.memory.of(name)
	of.at, of.due = c.Now(), c.Now().Add(of.backoff()) // unless all goes well
	of.failures++
	var err error
	for range mostPasses {
		p := &pass{Controller: c, name: name, known: of}
		var again bool
		switch again, err = p.run(ctx); {
		case changed(err): // meanwhile: what is to be done is decided anew
		case err != nil:
			return err
		case !again:
			of.due, of.failures = p.next(), 0
			return nil
		}
	}
	if changed(err) {
		klog.FromContext(ctx).V(2).Info("TaskGroup or its target keeps changing", "taskGroup", klog.KRef(name.Namespace, name.Name), "cause", err)
	}
	return nil
}

// changed reports whether what was read is not what there is any more.
func changed(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

// byName orders groups.
func byName(a, b types.NamespacedName) int {
	if order := strings.Compare(a.Namespace, b.Namespace); order != 0 {
		return order
	}
	return strings.Compare(a.Name, b.Name)
}

// from returns the names in order, those after last first.
func from(names []types.NamespacedName, last types.NamespacedName) []types.NamespacedName {
	slices.SortFunc(names, byName)
	i := slices.IndexFunc(names, func(n types.NamespacedName) bool { return byName(n, last) > 0 })
	if i < 0 {
		return names
	}
	return slices.Concat(names[i:], names[:i])
}
