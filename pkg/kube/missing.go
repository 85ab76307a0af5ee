package kube

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
)

// missing tells that a kind is not known to the API server. Without Tenants nobody can
// say who may share cards with whom, and without Preemptions and TaskGroups which cards
// are kept, so nothing is decided: unknown is not free.
type missing struct {
	logger   klog.Logger
	resource string            // of the kind, in our group
	kind     cache.DoneChecker // is done once its objects have been listed

	mu   sync.Mutex
	so   bool      // guarded by mu; it was not known when last asked for
	told time.Time // guarded by mu
}

// remind is how often it is said.
const remind = 30 * time.Second

// watch is a cache.WatchErrorHandlerWithContext.
func (m *missing) watch(ctx context.Context, r *cache.Reflector, err error) {
	so := apierrors.IsNotFound(err)
	m.mu.Lock()
	m.so = so
	m.mu.Unlock()
	if so {
		m.tell(remind)
	} else {
		cache.DefaultWatchErrorHandler(ctx, r, err)
	}
}

// tell says so if it is so, and has not been said for that long.
func (m *missing) tell(quiet time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); m.so && now.Sub(m.told) >= quiet {
		m.told = now
		m.logger.Error(nil, "the API server knows no "+m.resource+"."+v1alpha1.GroupName+": install the chart's CRDs")
	}
}

// wait waits until all are done, and tells meanwhile if it is so; false when ctx
// ends before.
func (m *missing) wait(ctx context.Context, all []cache.DoneChecker) bool {
	tick := time.NewTicker(remind)
	defer tick.Stop()
	for i := 0; i < len(all); {
		select {
		case <-ctx.Done():
			return false
		case <-all[i].Done():
			i++
		case <-tick.C:
			if !cache.IsDone(m.kind) { // or it is another list that is waited for
				m.tell(remind / 2) // the last time was not exactly one period ago
			}
		}
	}
	return true
}
