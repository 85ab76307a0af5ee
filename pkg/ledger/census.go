package ledger

import (
	"maps"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// census has the namespaces that hold something, so that other rules cost what there
// are of those, and not what there are of pods.
type census map[string]*residents

// residents are the pods of a namespace that hold something. There is at least one.
type residents struct {
	tenant   gpu.TenantID // theirs, by the rules in force
	pods     map[gpu.PodID]struct{}
	spending gpu.Spending // of all of them
}

// replace enters h in the place of old, of the same pod; either may be nil.
func (c census) replace(old, h *Hold) {
	if old != nil && h != nil && old.Namespace == h.Namespace && slices.Equal(old.charged(), h.charged()) {
		return
	}
	if old != nil {
		c.leave(old)
	}
	if h != nil {
		c.enter(h)
	}
}

func (c census) enter(h *Hold) {
	at := c[h.Namespace]
	if at == nil {
		at = &residents{tenant: h.Tenant, pods: map[gpu.PodID]struct{}{}}
		c[h.Namespace] = at
	}
	at.pods[h.Pod] = struct{}{}
	at.spending = at.spending.Plus(h.charged())
}

func (c census) leave(h *Hold) {
	at := c[h.Namespace]
	delete(at.pods, h.Pod)
	at.spending = at.spending.Minus(h.charged())
	if len(at.pods) == 0 {
		delete(c, h.Namespace)
	}
}

// PodsIn returns the pods of the namespace that hold something, in order.
func (l *Ledger) PodsIn(namespace string) []gpu.PodID {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.census[namespace]
	if at == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(at.pods))
}
