package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/generated/clientset/versioned"
	kindinformers "heteroflow.io/heteroflow/pkg/generated/informers/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// claims has the ledger keep what Preemptions keep for their preemptors, on every
// replica: whoever leads next gives it to nobody else.
//
// A claim that the ledger refuses is tried again until it takes it or the preemption
// has ended: at the start its node may not be here yet, and later somebody may be
// there who goes.
type claims struct {
	ledger  claimant
	logger  klog.Logger
	missing *missing

	first   chan struct{} // closed once all claims of the first list have been tried
	mu      sync.Mutex
	kept    map[gpu.PodID][]claim // guarded by mu; preemptor -> its active preemptions, the oldest first
	started bool                  // guarded by mu; first is closed
	over    map[types.UID]bool    // guarded by mu; those that have ended while a list was read; nil: none is
}

// claimant is what claims need of the ledger.
type claimant interface {
	Claim(p gpu.Placement, victims []gpu.PodID) error
	Unclaim(gpu.PodID)
}

type claim struct {
	name    string
	place   gpu.Placement
	victims []gpu.PodID
	taken   bool
	refused string // why not, as it was last said
}

var _ cache.DoneChecker = (*claims)(nil)

func newClaims(l claimant, logger klog.Logger) *claims {
	return &claims{
		ledger: l, logger: logger, missing: &missing{logger: logger, resource: v1alpha1.PreemptionResource},
		first: make(chan struct{}), kept: map[gpu.PodID][]claim{},
	}
}

// follow has c told of what the informer sees.
func (c *claims) follow(preemptions kindinformers.TypedPreemptionInformer) (told cache.DoneChecker, err error) {
	informer := preemptions.Informer()
	c.missing.kind = informer.HasSyncedChecker()
	if err := informer.SetWatchErrorHandlerWithContext(c.missing.watch); err != nil {
		return nil, fmt.Errorf("follow preemptions: %w", err)
	}
	if err := informer.AddIndexers(cache.Indexers{owedIndex: owed}); err != nil {
		return nil, fmt.Errorf("follow preemptions: %w", err)
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { c.seen(o.(*v1alpha1.Preemption)) },
		UpdateFunc: func(before, after any) {
			was, is := before.(*v1alpha1.Preemption), after.(*v1alpha1.Preemption)
			if was.UID != is.UID {
				c.gone(was) // another of its name has come, maybe for another pod
			}
			c.seen(is)
		},
		DeleteFunc: func(o any) {
			if p, _ := last[*v1alpha1.Preemption](o); p != nil {
				c.gone(p)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("follow preemptions: %w", err)
	}
	return handler.HasSyncedChecker(), nil
}

// seen keeps what the preemption keeps. What it keeps never changes, and whether it
// does only once.
func (c *claims) seen(p *v1alpha1.Preemption) {
	if !p.Status.Phase.Active() {
		c.gone(p)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	pod := gpu.PodID(p.Spec.Preemptor.UID)
	if c.over[p.UID] {
		return // nobody would say so again
	}
	if slices.ContainsFunc(c.kept[pod], func(of claim) bool { return of.name == p.Name }) {
		return
	}
	place, err := codec.DecodeClaim(p)
	if err != nil {
		c.logger.Error(err, "what a preemption keeps cannot be read, so nothing is kept", "preemption", p.Name, "podUID", pod)
		return
	}
	of := claim{name: p.Name, place: place}
	for i := range p.Spec.Victims {
		of.victims = append(of.victims, gpu.PodID(p.Spec.Victims[i].UID))
	}
	c.kept[pod] = append(c.kept[pod], of)
	c.try(pod)
}

// gone ends what the preemption keeps, unless another keeps something for the pod.
func (c *claims) gone(p *v1alpha1.Preemption) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil {
		c.over[p.UID] = true
	}
	pod := gpu.PodID(p.Spec.Preemptor.UID)
	is := func(of claim) bool { return of.name == p.Name }
	at := slices.IndexFunc(c.kept[pod], is)
	if at < 0 {
		return
	}
	c.kept[pod] = slices.Delete(c.kept[pod], at, at+1)
	if at == 0 {
		c.ledger.Unclaim(pod)
	}
	if len(c.kept[pod]) == 0 {
		delete(c.kept, pod)
		return
	}
	c.try(pod)
}

// reading has it remembered which preemptions end while a list of them is read: what
// the list says of those is out of date.
func (c *claims) reading() (done func()) { return noteEnds(&c.mu, &c.over) }

// retry tries again what the ledger has refused.
func (c *claims) retry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for pod := range c.kept {
		c.try(pod)
	}
}

// try has the ledger keep what the first of the pod's preemptions keeps. It is called
// with mu held.
func (c *claims) try(pod gpu.PodID) {
	of := &c.kept[pod][0]
	if of.taken {
		return
	}
	err := c.ledger.Claim(of.place, of.victims)
	// One that is bound has what was kept, and the preemption is about to say so.
	of.taken = err == nil || errors.Is(err, ledger.ErrIllegal)
	if err == nil || of.taken || !c.started || of.refused == err.Error() {
		return
	}
	of.refused = err.Error()
	c.logger.Info("what a preemption keeps is not free, and is tried again", "preemption", of.name, "podUID", pod, "node", of.place.Node, "reason", of.refused)
}

// run tries all that came with the first list, once everything is here that the
// ledger judges it by, and tells meanwhile what is missing for it.
func (c *claims) run(ctx context.Context, judged []cache.DoneChecker) {
	if !c.missing.wait(ctx, judged) {
		return
	}
	c.mu.Lock()
	c.started = true
	c.mu.Unlock()
	c.retry()
	close(c.first)
}

// Name implements cache.DoneChecker.
func (c *claims) Name() string { return "claims of preemptions" }

// Done implements cache.DoneChecker: it is closed once the claims of the first list
// have been tried.
func (c *claims) Done() <-chan struct{} { return c.first }

// CatchUp brings the books up to everything that was bound before it was called, and
// has what preemptions and services keep kept, past every cache: the leader before may
// have begun one, or put one to sleep, a moment ago.
func (c *Cluster) CatchUp(ctx context.Context, client kubernetes.Interface, own versioned.Interface) error {
	if err := c.books.CatchUp(ctx, client); err != nil {
		return err
	}
	defer c.claims.reading()()
	err := eachNewest(ctx, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return own.HeteroflowV1alpha1().Preemptions().List(ctx, o)
	}, c.claims.seen)
	if err != nil {
		return fmt.Errorf("read what preemptions keep: %w", err)
	}
	c.claims.retry()
	return c.services.catchUp(ctx, own)
}
