package kube

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	kindinformers "heteroflow.io/heteroflow/pkg/generated/informers/heteroflow/v1alpha1"
	kindlisters "heteroflow.io/heteroflow/pkg/generated/listers/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// Rules follows what administrators write about tenants: the namespaces with their
// labels, Tenants, and ResourceQuotas. When it changes the ledger is told, at once
// if it has been quiet, so that a rule is in force a moment after it is written.
//
// They follow by watch, on a new leader as well, so they may be that moment old: a
// decision by the rule before cannot be told from one that was made just before the
// rule was written. What is held is another matter, see Books.CatchUp.
type Rules struct {
	tenants    kindlisters.TenantLister
	namespaces corelisters.NamespaceLister
	quotas     corelisters.ResourceQuotaLister
	caches     []cache.DoneChecker // are done once the first lists are here
	books      governed
	former     former // of the goroutine that runs
	logger     klog.Logger
	news       chan struct{} // something may be different from what was last read

	first   chan struct{} // closed once the ledger goes by rules
	mu      sync.Mutex
	law     *Law          // guarded by mu; what is in force; never edited
	changed chan struct{} // guarded by mu; closed when another law comes into force

	missing *missing
}

var _ cache.DoneChecker = (*Rules)(nil)

// governed is what rules need of the ledger.
type governed interface {
	Govern(ledger.Rules)
	// PodsIn returns the pods of the namespace that hold something, in order.
	PodsIn(namespace string) []gpu.PodID
}

const (
	// rulesPace is the least time between two laws. A thousand objects that are
	// applied together are a few laws, not a thousand.
	rulesPace = 50 * time.Millisecond
	// rulesShare bounds what laws cost under a flood, where they take long to make:
	// the pause is so many times the work.
	rulesShare = 4
	// rulesPatience is far more than it takes to see a namespace, and a part of the
	// time that a request for admission has.
	rulesPatience = time.Second
)

func newRules(tenants kindlisters.TenantLister, namespaces corelisters.NamespaceLister, quotas corelisters.ResourceQuotaLister,
	books governed, logger klog.Logger) *Rules {
	return &Rules{
		tenants: tenants, namespaces: namespaces, quotas: quotas, books: books, former: former{podsIn: books.PodsIn}, logger: logger, missing: &missing{logger: logger, resource: v1alpha1.TenantResource},
		news: make(chan struct{}, 1), first: make(chan struct{}), changed: make(chan struct{}), law: &Law{},
	}
}

// followRules returns rules that are told of what these informers see.
func followRules(core coreinformers.Interface, own kindinformers.Interface, books governed, logger klog.Logger) (*Rules, error) {
	tenants, namespaces, quotas := own.Tenants(), core.Namespaces(), core.ResourceQuotas()
	r := newRules(tenants.Lister(), namespaces.Lister(), quotas.Lister(), books, logger)
	r.missing.kind = tenants.Informer().HasSyncedChecker()
	if err := tenants.Informer().SetWatchErrorHandlerWithContext(r.missing.watch); err != nil {
		return nil, fmt.Errorf("follow tenants: %w", err)
	}
	for name, follow := range map[string]struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		"tenants":         {tenants.Informer(), rulesHandler(r, sameTenant)},
		"namespaces":      {namespaces.Informer(), rulesHandler(r, sameNamespace)},
		"resource quotas": {quotas.Informer(), rulesHandler(r, sameQuota)},
	} {
		if _, err := follow.informer.AddEventHandler(follow.handler); err != nil {
			return nil, fmt.Errorf("follow %s: %w", name, err)
		}
		r.caches = append(r.caches, follow.informer.HasSyncedChecker())
	}
	return r, nil
}

// rulesHandler has the rules read anew for what is not the same as before. A
// ResourceQuota's status changes with every pod of its namespace, a Tenant's with
// what we find of it.
func rulesHandler[T any](r *Rules, same func(was, is T) bool) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { r.look() },
		UpdateFunc: func(before, after any) {
			if !same(before.(T), after.(T)) {
				r.look()
			}
		},
		DeleteFunc: func(any) { r.look() },
	}
}

// sameNamespace looks at the UID too: that one has gone and another has come may be
// told as a change.
func sameNamespace(was, is *corev1.Namespace) bool {
	return was.UID == is.UID && reflect.DeepEqual(was.Labels, is.Labels)
}

func sameQuota(was, is *corev1.ResourceQuota) bool { return reflect.DeepEqual(was.Spec, is.Spec) }

func sameTenant(was, is *v1alpha1.Tenant) bool {
	return was.Generation == is.Generation && reflect.DeepEqual(was.Spec, is.Spec)
}

// look has the rules read anew.
func (r *Rules) look() {
	select {
	case r.news <- struct{}{}:
	default: // they will be, after this
	}
}

// Law returns what is in force: nothing but what is closed, before the first lists
// are here.
func (r *Rules) Law() *Law {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.law
}

// Changed is closed when another law than now comes into force.
func (r *Rules) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// MaxPriority is Directory.MaxPriority of what is in force. Of a namespace that has
// only just been made nothing may have been seen yet, while its first pods are
// there: where that makes a difference it is waited for, a moment.
func (r *Rules) MaxPriority(namespace string) (most int, known bool) {
	late := time.NewTimer(rulesPatience)
	defer late.Stop()
	for {
		changed := r.Changed() // before the law is read, so that none is missed
		if most, known = r.Law().Directory.MaxPriority(namespace); known || most >= tenancy.MostPriority {
			return most, known
		}
		select {
		case <-changed:
		case <-late.C:
			return most, known
		}
	}
}

// Tenants finds Tenants in what has been seen.
func (r *Rules) Tenants() kindlisters.TenantLister { return r.tenants }

// Quotas finds ResourceQuotas in what has been seen.
func (r *Rules) Quotas() corelisters.ResourceQuotaLister { return r.quotas }

// Name implements cache.DoneChecker.
func (r *Rules) Name() string { return "rules for tenants" }

// Done implements cache.DoneChecker: it is closed once the ledger goes by rules.
func (r *Rules) Done() <-chan struct{} { return r.first }

// run keeps the law as it is written until ctx ends.
func (r *Rules) run(ctx context.Context) {
	if !r.missing.wait(ctx, r.caches) {
		return
	}
	tick := time.NewTicker(expiry)
	defer tick.Stop()
	for r.look(); ; {
		select {
		case <-ctx.Done():
			return
		case <-r.news:
		case <-tick.C:
			if !r.former.anyOver() {
				continue // as nearly always
			}
		}
		began := time.Now()
		r.follow()
		if !pause(ctx, max(rulesPace, rulesShare*time.Since(began))) {
			return
		}
	}
}

// follow puts into force what is written now, if that is not what is in force.
func (r *Rules) follow() {
	next, err := r.read()
	if err != nil { // of listers that serve from memory
		r.logger.Error(err, "the rules for tenants cannot be read and stay as they are")
		return
	}
	was := r.Law()
	first := was.Directory == nil
	switch {
	case first || !next.rules(was):
		next.Directory = tenancy.New(next.world)
		r.books.Govern(next.Directory)
	case next.equal(was):
		return
	default: // another generation, another fault: nothing that the ledger goes by
		next.Directory = was.Directory
	}
	next.tell(r.logger, was)
	r.mu.Lock()
	r.law = next
	close(r.changed)
	r.changed = make(chan struct{})
	r.mu.Unlock()
	if first {
		close(r.first)
	}
}
