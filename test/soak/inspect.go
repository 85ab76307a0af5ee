package soak

import (
	"maps"
	"math/rand/v2"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// hearAll tells the ledger all that has happened.
func (r *run) hearAll() {
	r.informer.Lock()
	defer r.informer.Unlock()
	for e, ok := r.server.next(); ok; e, ok = r.server.next() {
		r.tell(e)
	}
}

// inspect looks at the books while nothing moves, and at what other rules make of
// them.
func (r *run) inspect(rnd *rand.Rand) {
	r.server.settle(true)
	r.server.deliver()
	r.hearAll()
	r.findOut()
	r.hearAll()
	r.agree()
	r.addUp()
	for range 8 {
		r.write(rnd)
		r.addUp()
	}
	r.server.settle(false)
}

// findOut settles the binds whose outcome nobody has learnt, as their retry does.
func (r *run) findOut() {
	for _, h := range r.ledger.Unconfirmed() {
		r.bind(&gpu.Request{Pod: h.Pod, Namespace: h.Namespace, Name: h.Name}, h.Node)
	}
}

// agree looks whether the ledger holds what is bound, and nothing else but what
// lingers.
func (r *run) agree() {
	r.truth.mu.Lock()
	defer r.truth.mu.Unlock()
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	there := map[gpu.PodID]bool{}
	for name, at := range r.server.pods {
		if at.Node == "" {
			continue
		}
		there[at.Request.Pod] = true
		h, ok := r.ledger.Hold(at.Request.Pod)
		if !ok || h.Node != at.Node || !maps.Equal(usesOf(&h.Placement, anyResource), usesOf(&at.p, anyResource)) {
			r.truth.accuse(&r.truth.leaked, "pod %s is bound to %s with %+v, and the ledger has %+v", name, at.Node, at.p.Grants, h)
		}
	}
	for _, id := range r.ledger.Pods() {
		h, ok := r.ledger.Hold(id)
		if ok && !there[id] && h.State != ledger.Lingering {
			r.truth.accuse(&r.truth.leaked, "the ledger has %+v, and the pod is not bound", h)
		}
	}
	for id, b := range r.truth.bodies {
		if _, ok := r.ledger.Hold(id); !ok {
			r.truth.accuse(&r.truth.leaked, "containers of pod %s run on %s with %+v, and the ledger has nothing", id, b.p.Node, b.p.Grants)
		}
	}
}

// addUp works out once more what follows from the holds by the rules in force:
// which cards are divided, and what every quota is charged for.
func (r *run) addUp() {
	r.truth.mu.Lock()
	defer r.truth.mu.Unlock()
	e, s := r.truth.eras[r.truth.inForce], r.ledger.Snapshot()
	var all []*body
	for _, id := range r.ledger.Pods() {
		h, _ := r.ledger.Hold(id)
		b := newBody(h.Placement)
		all = append(all, &b)
	}
	for _, n := range s.Nodes() {
		for i := range n.Cards {
			c := &n.Cards[i]
			sharing := slices.DeleteFunc(slices.Clone(all), func(b *body) bool { _, on := b.uses[c.ID]; return !on })
			if e.friends(sharing) == c.Divided || c.Divided && c.FreeSlots() > 0 {
				r.truth.accuse(&r.truth.neighbours, "card %s is divided: %t, with %s", c.ID, c.Divided, list(sharing))
			}
		}
	}
	for _, n := range e.world.Namespaces {
		for _, q := range e.quotas(n.Name) {
			r.addUpQuota(s, &q, all)
		}
	}
}

func (r *run) addUpQuota(s ledger.Snapshot, q *quota, all []*body) {
	for i := range q.limits {
		l, sum := &q.limits[i], int64(0)
		for _, b := range all {
			if q.counts(b.p.Namespace) {
				sum += b.takes(l, r.truth.cards)
			}
		}
		if got := l.Of(s.Spent(q.account)); got != sum {
			r.truth.accuse(&r.truth.overquota, "%s of %s: %d are charged, %d are held", l.Name, q.name, got, sum)
		}
	}
}

// finish ends every pod, and looks whether all cards are free then.
func (r *run) finish(rnd *rand.Rand) {
	r.server.settle(true)
	for _, q := range r.alive {
		r.server.end(q.Name)
	}
	r.inspect(rnd)
	r.server.settle(true)
	r.tick(2 * grace)
	r.truth.mu.Lock()
	defer r.truth.mu.Unlock()
	for _, id := range r.ledger.Pods() {
		h, _ := r.ledger.Hold(id)
		r.truth.accuse(&r.truth.leaked, "all pods have ended, and the ledger has %+v", h)
	}
	for _, n := range r.ledger.Snapshot().Nodes() {
		for i := range n.Cards {
			if c := &n.Cards[i]; !c.Free() || c.Divided || c.Used != (gpu.Use{}) {
				r.truth.accuse(&r.truth.leaked, "all pods have ended, and card %s is not free: %+v", c.ID, c)
			}
		}
	}
	for _, ns := range r.truth.eras[r.truth.inForce].world.Namespaces {
		for _, q := range r.truth.eras[r.truth.inForce].quotas(ns.Name) {
			if s := r.ledger.Snapshot().Spent(q.account); len(s) > 0 {
				r.truth.accuse(&r.truth.leaked, "all pods have ended, and %s is charged for %+v", q.name, s)
			}
		}
	}
}
