package kube

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/generated/clientset/versioned"
	kindinformers "heteroflow.io/heteroflow/pkg/generated/informers/heteroflow/v1alpha1"
	kindlisters "heteroflow.io/heteroflow/pkg/generated/listers/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// services has the ledger know the TaskGroups of type inference, on every replica: whose
// members are placed one by one, and what is kept for whom.
type services struct {
	ledger  serving
	logger  klog.Logger
	missing *missing

	mu      sync.Mutex
	known   map[gpu.GroupID]service // guarded by mu; what the ledger has been told of
	over    map[types.UID]bool      // guarded by mu; those that have gone while a list was read; nil: none is
	changed chan struct{}           // guarded by mu; closed when any is asked for something else
}

// serving is what services need of the ledger.
type serving interface {
	SetService(ledger.Service)
	DropService(gpu.GroupID)
}

// service is of which TaskGroup, and of which version of it, the ledger knows.
type service struct {
	uid     types.UID
	version string
	listed  bool   // from a list that was read past the watch, which may be behind it
	fault   string // what of it cannot be read, as it was last said
}

func newServices(l serving, logger klog.Logger) *services {
	return &services{
		ledger: l, logger: logger, missing: &missing{logger: logger, resource: v1alpha1.TaskGroupResource},
		known: map[gpu.GroupID]service{}, changed: make(chan struct{}),
	}
}

// follow has s told of what the informer sees.
func (s *services) follow(groups kindinformers.TypedTaskGroupInformer) (told cache.DoneChecker, err error) {
	informer := groups.Informer()
	s.missing.kind = informer.HasSyncedChecker()
	if err := informer.SetWatchErrorHandlerWithContext(s.missing.watch); err != nil {
		return nil, fmt.Errorf("follow task groups: %w", err)
	}
	registration, err := informer.AddEventHandler(s.handler())
	if err != nil {
		return nil, fmt.Errorf("follow task groups: %w", err)
	}
	return registration.HasSyncedChecker(), nil
}

func (s *services) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			s.seen(o.(*v1alpha1.TaskGroup), false)
			s.announce()
		},
		UpdateFunc: func(before, after any) {
			was, is := before.(*v1alpha1.TaskGroup), after.(*v1alpha1.TaskGroup)
			s.seen(is, false)
			if !sameGroup(was, is) {
				s.announce()
			}
		},
		DeleteFunc: func(o any) {
			if g, _ := last[*v1alpha1.TaskGroup](o); g != nil {
				s.gone(g)
			}
			s.announce()
		},
	}
}

// sameGroup reports whether the same is asked for by both. What is written into the
// status is an answer to that.
func sameGroup(was, is *v1alpha1.TaskGroup) bool {
	return was.UID == is.UID && was.Generation == is.Generation && was.DeletionTimestamp.Equal(is.DeletionTimestamp)
}

// seen tells the ledger what the TaskGroup says. Of a list and the watch, which tell of
// the same ones side by side, the newer word counts.
func (s *services) seen(g *v1alpha1.TaskGroup, listed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := codec.GroupOf(g.Namespace, g.Name)
	was, known := s.known[id]
	switch {
	case s.over[g.UID]:
		return // nobody would say so again
	case known && (listed || was.listed) && older(g.ResourceVersion, was.version):
		return
	case g.Spec.Type != v1alpha1.TaskGroupInference:
		s.drop(id)
		return
	}
	is := service{uid: g.UID, version: g.ResourceVersion, listed: listed}
	of, err := codec.Service(g)
	if err != nil {
		is.fault = err.Error()
	}
	s.known[id] = is
	s.ledger.SetService(of)
	if err != nil && is.fault != was.fault {
		s.logger.Error(err, "what the status of a TaskGroup says cannot be read, so it is not gone by", "taskGroup", klog.KObj(g))
	}
}

// older reports whether the one version is of a time before the other.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// gone ends what the ledger knows of the TaskGroup, unless another of its name has come.
func (s *services) gone(g *v1alpha1.TaskGroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		s.over[g.UID] = true
	}
	if id := codec.GroupOf(g.Namespace, g.Name); s.known[id].uid == g.UID {
		s.drop(id)
	}
}

// drop is called with mu held.
func (s *services) drop(id gpu.GroupID) {
	if _, known := s.known[id]; known {
		delete(s.known, id)
		s.ledger.DropService(id)
	}
}

// announce says that any TaskGroup is asked for something else, once the lister has it.
func (s *services) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// catchUp reads all TaskGroups past every cache. What it reads that the watch has not
// told of yet is not announced: the lister does not have it.
func (s *services) catchUp(ctx context.Context, own versioned.Interface) error {
	defer s.reading()()
	err := eachNewest(ctx, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return own.HeteroflowV1alpha1().TaskGroups("").List(ctx, o)
	}, func(g *v1alpha1.TaskGroup) { s.seen(g, true) })
	if err != nil {
		return fmt.Errorf("read what services keep: %w", err)
	}
	return nil
}

// reading has it remembered which TaskGroups go while a list of them is read: what the
// list says of those is out of date.
func (s *services) reading() (done func()) { return noteEnds(&s.mu, &s.over) }

// TaskGroups finds TaskGroups in what the cluster has seen.
func (c *Cluster) TaskGroups() kindlisters.TaskGroupLister {
	return c.kinds.Heteroflow().V1alpha1().TaskGroups().Lister()
}

// TaskGroupsChanged is closed when a TaskGroup comes, goes, or is asked for something
// else than now; what is written into its status is none of that. Who asks for it before
// looking at TaskGroups misses nothing.
func (c *Cluster) TaskGroupsChanged() <-chan struct{} {
	c.services.mu.Lock()
	defer c.services.mu.Unlock()
	return c.services.changed
}
