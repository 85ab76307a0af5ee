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
	pods     int
	spending gpu.Spending // of all of them
}

// replace enters h in the place of old, either of which may be nil.
func (c census) replace(old, h *Hold) {
	if old != nil && h != nil && old.Namespace == h.Namespace && slices.Equal(old.spending, h.spending) {
		return
	}
	if h != nil { // first, so that nobody is forgotten who stays
		c.enter(h)
	}
	if old != nil {
		c.leave(old)
	}
}

func (c census) enter(h *Hold) {
	at := c[h.Namespace]
	if at == nil {
		at = &residents{tenant: h.Tenant}
		c[h.Namespace] = at
	}
	at.pods++
	at.spending = at.spending.Plus(h.spending)
}

func (c census) leave(h *Hold) {
	at := c[h.Namespace]
	at.pods--
	at.spending = at.spending.Minus(h.spending)
	if at.pods == 0 {
		delete(c, h.Namespace)
	}
}

// Namespaces returns those whose pods hold something, in order.
func (l *Ledger) Namespaces() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.census))
}
