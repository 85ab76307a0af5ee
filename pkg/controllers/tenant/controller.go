package tenant

import (
	"cmp"
	"context"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	typed "heteroflow.io/heteroflow/pkg/generated/clientset/versioned/typed/heteroflow/v1alpha1"
	kindlisters "heteroflow.io/heteroflow/pkg/generated/listers/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Controller looks after the Tenants' status. Its fields are set before Run and not
// changed.
type Controller struct {
	Tenants kindlisters.TenantLister
	Quotas  corelisters.ResourceQuotaLister
	Law     func() *kube.Law
	Changed func() <-chan struct{} // closed when there is another law
	Ledger  func() ledger.Snapshot
	Writer  writer
	Tell    func(kube.Notice) // never blocks
	Now     func() time.Time

	told    teller
	written string // the Tenant whose status was the last that was written
}

// writer is the part of the API that a round writes by.
type writer interface {
	UpdateStatus(ctx context.Context, t *v1alpha1.Tenant, o metav1.UpdateOptions) (*v1alpha1.Tenant, error)
}

var _ writer = typed.TenantInterface(nil)

const (
	// period is between two rounds while nothing is written by administrators: what
	// is held changes all the time.
	period = 5 * time.Second
	// pace is the least time between two rounds.
	pace = time.Second
	// mostWrites bounds the statuses that one round writes, and the events.
	mostWrites = 200
	// writeTime bounds one of them.
	writeTime = 5 * time.Second
)

// Run keeps what is written as it is found until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	return kube.Rounds(ctx, period, pace, c.Changed, c.round)
}

// round lists, decides and applies once.
func (c *Controller) round(ctx context.Context) {
	law := c.Law()
	if law.Directory == nil {
		return // nothing is known yet
	}
	tenants, err := c.Tenants.List(labels.Everything())
	if err != nil { // of a lister that serves from memory
		klog.FromContext(ctx).Error(err, "Tenants cannot be listed")
		return
	}
	slices.SortFunc(tenants, func(a, b *v1alpha1.Tenant) int { return cmp.Compare(a.Name, b.Name) })
	s := c.Ledger()
	f := find(s, law.Directory)
	c.tell(ctx, append(f.notices(tenants), c.uncounted(law)...))
	c.write(ctx, c.differing(tenants, law, s, &f))
}

// differing returns the Tenants whose status is not as it should be, as they should
// be: name -> Tenant. One whose spec has changed since the law was read has its turn
// when there is a law of it.
func (c *Controller) differing(tenants []*v1alpha1.Tenant, law *kube.Law, s ledger.Snapshot, f *findings) map[string]*v1alpha1.Tenant {
	differ := map[string]*v1alpha1.Tenant{}
	for _, t := range tenants {
		if generation, known := law.Generations[t.Name]; !known || generation != t.Generation {
			continue
		}
		want := f.status(t, law, s.Spent(gpu.TenantAccount(t.Name)), c.Now())
		if !apiequality.Semantic.DeepEqual(want, t.Status) {
			next := *t // nothing that it points to is edited
			next.Status = want
			differ[t.Name] = &next
		}
	}
	return differ
}

// write writes the statuses of as many of them as one round may.
func (c *Controller) write(ctx context.Context, differ map[string]*v1alpha1.Tenant) {
	for i, name := range inOrder(differ, c.written) {
		if i == mostWrites || ctx.Err() != nil {
			return
		}
		c.written = name
		if err := c.writeOne(ctx, differ[name]); err != nil {
			klog.FromContext(ctx).Error(err, "status of Tenant not written", "tenant", name)
			if !kube.Answered(err) {
				return // it would be the same for the others
			}
		}
	}
}

// writeOne writes one. That it has changed or gone meanwhile is no fault: the next
// round sees what is there then.
func (c *Controller) writeOne(ctx context.Context, t *v1alpha1.Tenant) error {
	ctx, stop := context.WithTimeout(ctx, writeTime)
	defer stop()
	_, err := c.Writer.UpdateStatus(ctx, t, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
