package soak

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// body is a pod whose containers are on cards.
type body struct {
	p    gpu.Placement
	uses map[gpu.CardID]use            // of all that it asked for
	by   map[string]map[gpu.CardID]use // resource by which it asked -> likewise
	// Eras and moments between which the scheduler has decided; entered is when
	// the pod came onto its cards.
	from, to       int
	began, entered int
	// forced says that somebody else bound it; the scheduler knows since then, 0
	// if it does not.
	forced bool
	known  int
	blind  bool      // it was decided on by the ledger alone, which does not judge nodes
	until  time.Time // when its containers have ended at the latest, if its object has gone
}

// truth is what really is on the cards, and the judge of it.
type truth struct {
	mu      sync.Mutex
	eras    []*era // guarded by mu; all there have been, and the one about to come
	inForce int    // guarded by mu; the era that has certainly come
	moment  int    // guarded by mu; grows with all that happens
	bodies  map[gpu.PodID]*body
	cards   map[gpu.CardID]*gpu.Card // read only

	oversold, neighbours, overquota, leaked int64    // guarded by mu
	wrong                                   []string // guarded by mu; the first few, in detail
}

// mostTold is how many violations are told in detail.
const mostTold = 5

func newTruth(cards map[gpu.CardID]*gpu.Card, first *era) *truth {
	return &truth{bodies: map[gpu.PodID]*body{}, cards: cards, eras: []*era{first}}
}

// announce says that another era is about to come; come says that it has.
func (t *truth) announce(e *era) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.eras = append(t.eras, e)
}

func (t *truth) come() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inForce = len(t.eras) - 1
}

func (t *truth) now() *era {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.eras[len(t.eras)-1]
}

// begin is the start of a bind: no decision of it is older.
func (t *truth) begin() body {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.moment++
	return body{from: t.inForce, began: t.moment}
}

// decided is called when the Binding is sent: no decision of the bind is newer.
func (t *truth) decided(begun body, p gpu.Placement) body {
	b := newBody(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	b.from, b.began, b.to, b.blind = begun.from, begun.began, len(t.eras)-1, begun.blind
	return b
}

// newBody works out what the placement takes.
func newBody(p gpu.Placement) body {
	b := body{p: p, uses: usesOf(&p, anyResource), by: map[string]map[gpu.CardID]use{}}
	for _, resource := range resources {
		b.by[resource] = usesOf(&p, resource)
	}
	return b
}

// enter puts the pod onto its cards, and judges that.
func (t *truth) enter(b body) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.moment++
	b.entered = t.moment
	if !b.forced {
		t.judge(&b)
	}
	t.bodies[b.p.Pod] = &b
}

// learn says that the scheduler knows of the pod now.
func (t *truth) learn(pod gpu.PodID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.moment++
	if b := t.bodies[pod]; b != nil && b.known == 0 {
		b.known = t.moment
	}
}

func (t *truth) leave(pod gpu.PodID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.bodies, pod)
}

// orphan says that the pod's object has gone, and that its containers end later.
func (t *truth) orphan(pod gpu.PodID, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.bodies[pod]; b != nil {
		b.until = until
	}
}

// endOrphans ends those of which that is true.
func (t *truth) endOrphans(ends func(*body) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, b := range t.bodies {
		if !b.until.IsZero() && ends(b) {
			delete(t.bodies, id)
		}
	}
}

// before reports whether the scheduler certainly counted o when it decided on b.
func (o *body) before(b *body) bool {
	if o.forced {
		return o.known != 0 && o.known < b.began
	}
	return o.entered < b.began
}

// beside reports whether the two were decided on by the same rules: whichever
// came second counted the other.
func (o *body) beside(b *body) bool {
	return !o.forced && o.from == b.from && o.to == b.to && b.from == b.to
}

// judge looks at everything that b has come beside. It is called with mu held.
func (t *truth) judge(b *body) {
	if len(b.p.Grants) == 0 {
		return
	}
	for id := range b.uses {
		t.judgeRoom(b, id)
		t.judgePairs(b, id)
	}
	if !b.blind && !t.some(b, func(e *era) bool { return e.lets(b.p.Namespace, b.p.Node) }) {
		t.accuse(&t.neighbours, "pod %s of namespace %s is on node %s, which is kept for others%s", b.p.Pod, b.p.Namespace, b.p.Node, t.in(b))
	}
	if !t.some(b, func(e *era) bool { return e.open(b.p.Namespace) }) {
		t.accuse(&t.overquota, "pod %s has cards, and its namespace %s is closed%s", b.p.Pod, b.p.Namespace, t.in(b))
	}
	t.judgeQuotas(b)
}

// some reports whether that was true in any era in which b was decided on.
func (t *truth) some(b *body, f func(*era) bool) bool {
	return slices.ContainsFunc(t.eras[b.from:b.to+1], f)
}

// on returns who else is on the card.
func (t *truth) on(b *body, card gpu.CardID) (others []*body) {
	for id, o := range t.bodies {
		if _, there := o.uses[card]; there && id != b.p.Pod {
			others = append(others, o)
		}
	}
	return others
}

func (t *truth) judgeRoom(b *body, id gpu.CardID) {
	c, sum, pods := t.cards[id], b.uses[id], 1
	for _, o := range t.on(b, id) {
		if !o.forced || o.before(b) {
			sum.add(o.uses[id])
			pods++
		}
	}
	over := sum.memory > int64(c.Usable) || sum.cores > int64(c.UsableCores) || sum.slots > int64(c.MaxSlices)
	if sum.whole && pods > 1 || !sum.whole && over {
		t.accuse(&t.oversold, "card %s has %d pods, which use %+v, with pod %s%s", id, pods, sum, b.p.Pod, t.in(b))
	}
}

func (t *truth) judgePairs(b *body, id gpu.CardID) {
	sure := []*body{b}
	for _, o := range t.on(b, id) {
		switch {
		case o.before(b):
			sure = append(sure, o)
		case o.beside(b) && !t.eras[b.from].share(b.p.Namespace, o.p.Namespace):
			t.accuse(&t.neighbours, "pods %s of %s and %s of %s have come onto card %s at once%s", b.p.Pod, b.p.Namespace, o.p.Pod, o.p.Namespace, id, t.in(b))
		}
	}
	if !t.some(b, func(e *era) bool { return e.friends(sure) }) {
		t.accuse(&t.neighbours, "card %s has pods that may not be together: %s%s", id, list(sure), t.in(b))
	}
}

// friends reports whether all of these may be on one card.
func (e *era) friends(all []*body) bool {
	for i, b := range all {
		for _, o := range all[:i] {
			if !e.share(b.p.Namespace, o.p.Namespace) {
				return false
			}
		}
	}
	return true
}

func (t *truth) judgeQuotas(b *body) {
	var why string
	kept := func(e *era) bool {
		for _, q := range e.quotas(b.p.Namespace) {
			for i := range q.limits {
				if used := t.used(b, &q, &q.limits[i]); used > q.limits[i].Most {
					why = fmt.Sprintf("%s of %s: %d of %d used", q.limits[i].Name, q.name, used, q.limits[i].Most)
					return false
				}
			}
		}
		return true
	}
	if !t.some(b, kept) {
		t.accuse(&t.overquota, "%s, with pod %s of namespace %s%s", why, b.p.Pod, b.p.Namespace, t.in(b))
	}
}

// used is how much of the limit is used with b; 0 where b takes nothing of it.
func (t *truth) used(b *body, q *quota, l *gpu.Limit) int64 {
	sum := b.takes(l, t.cards)
	if sum == 0 {
		return 0
	}
	for _, o := range t.bodies {
		if q.counts(o.p.Namespace) && o.p.Pod != b.p.Pod && (o.before(b) || o.beside(b)) {
			sum += o.takes(l, t.cards)
		}
	}
	return sum
}

// accuse counts a violation. It is called with mu held.
func (t *truth) accuse(count *int64, format string, args ...any) {
	*count++
	if len(t.wrong) < mostTold {
		t.wrong = append(t.wrong, fmt.Sprintf(format, args...))
	}
}

func (t *truth) in(b *body) string {
	return fmt.Sprintf(" (placement %+v, decided between eras %d and %d: %+v)", b.p, b.from, b.to, t.eras[b.from].world)
}

func list(all []*body) string {
	var parts []string
	for _, b := range all {
		parts = append(parts, fmt.Sprintf("%s of %s", b.p.Pod, b.p.Namespace))
	}
	return strings.Join(parts, ", ")
}
