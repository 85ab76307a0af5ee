package kube

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"heteroflow.io/heteroflow/pkg/generated/clientset/versioned"
	kinds "heteroflow.io/heteroflow/pkg/generated/informers"
	kindinformers "heteroflow.io/heteroflow/pkg/generated/informers/heteroflow/v1alpha1"
	kindlisters "heteroflow.io/heteroflow/pkg/generated/listers/heteroflow/v1alpha1"
)

// Cluster follows the API server's nodes and pods, the rules for tenants, and what
// preemptions and services keep. Make one with NewCluster.
type Cluster struct {
	factory  informers.SharedInformerFactory
	kinds    kinds.SharedInformerFactory
	books    *Books
	rules    *Rules
	claims   *claims
	services *services
	pods     corelisters.PodLister
	nodes    corelisters.NodeLister
	caches   []cache.DoneChecker // are done once the first lists are here
	told     []cache.DoneChecker // are done once the books have been told of them
	judged   []cache.DoneChecker // those of told by which claims are judged
}

// NewCluster returns a cluster that tells books what it sees, once it runs, and has
// their ledger go by the rules that are written down there.
func NewCluster(client kubernetes.Interface, own versioned.Interface, books *Books) (*Cluster, error) {
	slim := newSlimmer().slim
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTransform(slim), informers.WithTweakListOptions(consistent))
	core := factory.Core().V1()
	c := &Cluster{factory: factory, books: books, pods: core.Pods().Lister(), nodes: core.Nodes().Lister(),
		kinds: kinds.NewSharedInformerFactoryWithOptions(own, 0, kinds.WithTransform(slim), kinds.WithTweakListOptions(consistent))}
	for name, follow := range map[string]struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		"nodes": {core.Nodes().Informer(), nodeHandler(books)},
		"pods":  {core.Pods().Informer(), podHandler(books)},
	} {
		told, err := follow.informer.AddEventHandler(follow.handler)
		if err != nil {
			return nil, fmt.Errorf("follow %s: %w", name, err)
		}
		c.caches = append(c.caches, follow.informer.HasSyncedChecker())
		c.told = append(c.told, told.HasSyncedChecker())
	}
	var err error
	if c.rules, err = followRules(core, c.kinds.Heteroflow().V1alpha1(), books.Ledger, books.Logger); err != nil {
		return nil, err
	}
	c.told = append(c.told, c.rules)
	if err := c.followKept(c.kinds.Heteroflow().V1alpha1()); err != nil {
		return nil, err
	}
	return c, nil
}

// followKept has the ledger told of what preemptions and services keep.
func (c *Cluster) followKept(own kindinformers.Interface) error {
	c.claims, c.services = newClaims(c.books.Ledger, c.books.Logger), newServices(c.books.Ledger, c.books.Logger)
	claims, err := c.claims.follow(own.Preemptions())
	if err != nil {
		return err
	}
	services, err := c.services.follow(own.TaskGroups())
	if err != nil {
		return err
	}
	c.judged = append(slices.Clone(c.told), claims)
	c.told = append(slices.Clone(c.judged), c.claims, services)
	return nil
}

// consistent makes the first list a read of the newest state. A reflector asks
// for it at resource version 0, "whatever some API server's cache has", which
// may be seconds old: a scheduler that has just been started would not see its
// predecessor's last binds and give their cards away again.
//
// Servers that can stream the list (the default since client-go 0.35) are asked
// for resource version "", the newest, without our doing; this is for the
// fall-back to an ordinary list, and keeps the rule in sight. Later lists ask for
// what is at least as new as the last event seen, which never goes back.
func consistent(o *metav1.ListOptions) {
	if o.ResourceVersion == "0" {
		o.ResourceVersion = ""
	}
}

// Ready reports whether the books have been told of everything in the first
// lists, and the ledger goes by the rules in them. That the informers have it is
// not enough: their handlers run behind.
func (c *Cluster) Ready() bool {
	for _, t := range c.told {
		if !cache.IsDone(t) {
			return false
		}
	}
	return true
}

// Pods finds pods in what the cluster has seen.
func (c *Cluster) Pods() corelisters.PodLister { return c.pods }

// Nodes finds nodes in what the cluster has seen.
func (c *Cluster) Nodes() corelisters.NodeLister { return c.nodes }

// Preemptions finds Preemptions in what the cluster has seen.
func (c *Cluster) Preemptions() kindlisters.PreemptionLister {
	return c.kinds.Heteroflow().V1alpha1().Preemptions().Lister()
}

// Rules returns the rules for tenants, as far as they have been seen.
func (c *Cluster) Rules() *Rules { return c.rules }

// expiry is how often lingering holds are looked at.
const expiry = time.Second

// Run follows the API server until ctx ends.
func (c *Cluster) Run(ctx context.Context) error {
	c.factory.StartWithContext(ctx)
	defer c.factory.Shutdown() // waits for the informers, which ctx has ended
	c.kinds.StartWithContext(ctx)
	defer c.kinds.Shutdown()
	var beside sync.WaitGroup
	beside.Go(func() { c.rules.run(ctx) })
	beside.Go(func() { c.announce(ctx) })
	beside.Go(func() { c.claims.run(ctx, c.judged) })
	beside.Go(func() { c.services.missing.wait(ctx, c.told) })
	defer beside.Wait()
	tick := time.NewTicker(expiry)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			c.books.Expire()
			c.claims.retry()
		}
	}
}

// announce says how far the start has come, and how long each part took.
func (c *Cluster) announce(ctx context.Context) {
	b, began := c.books, c.books.Now()
	if !waitFor(ctx, c.caches) {
		return
	}
	synced := b.Now()
	b.Logger.Info("caches synced: the API server's nodes and pods are here", "took", synced.Sub(began))
	if !waitFor(ctx, c.told) {
		return
	}
	b.Logger.Info("ready: the ledger has been built", "nodes", b.Ledger.Snapshot().Len(), "pods", len(b.Ledger.Pods()), "afterCaches", b.Now().Sub(synced))
}

// waitFor waits until all are done; false when ctx ends before.
func waitFor(ctx context.Context, all []cache.DoneChecker) bool {
	for _, c := range all {
		select {
		case <-c.Done():
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Expire ends the holds that have lingered long enough.
func (b *Books) Expire() {
	for _, pod := range b.Ledger.Expire(b.Now()) {
		b.Logger.V(2).Info("lingering hold has ended", "podUID", pod)
	}
}
