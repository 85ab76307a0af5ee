package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ended reports whether a pod counts for nothing any more.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// books add up who holds what.
type books struct {
	rules  *rules
	lines  []line
	before map[string]bool  // pods that were bound under other rules
	nodes  map[string]*node // by name
	bills  []bill
	wrong  []string
}

type node struct {
	object *corev1.Node
	cards  map[string]*entry // UUID -> card
}

type entry struct {
	card
	holders []holder
}

type holder struct {
	pod       string
	namespace string
	use       use
}

func newBooks(w World) *books {
	b := &books{rules: newRules(w), before: map[string]bool{}, nodes: map[string]*node{}}
	b.lines = b.rules.lines(w.Quotas)
	for i := range w.Nodes {
		n := &node{object: &w.Nodes[i], cards: map[string]*entry{}}
		b.nodes[n.object.Name] = n
		cards, err := inventory(n.object)
		if err != nil {
			b.say("node %s: %v", n.object.Name, err)
		}
		for _, c := range cards {
			n.cards[c.UUID] = &entry{card: c}
		}
	}
	return b
}

func (b *books) say(format string, args ...any) {
	b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
}

func name(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// enterAll enters those pods that count.
func (b *books) enterAll(pods []corev1.Pod) {
	for i := range pods {
		if !ended(&pods[i]) {
			b.enter(&pods[i])
		}
	}
}

// enter judges one pod by itself and adds what it holds.
func (b *books) enter(pod *corev1.Pod) {
	wanted, err := asks(pod)
	bound := pod.Spec.NodeName != ""
	switch {
	case bound && err != nil:
		b.say("pod %s: bound, but its request is invalid: %v", name(pod), err)
	case bound && (len(wanted) > 0 || recorded(pod)):
		b.enterBound(pod, wanted)
	default:
		for _, key := range marks(pod) {
			b.say("pod %s: has %s without being bound to cards", name(pod), key)
		}
	}
}

// recorded reports whether the pod says what it has got: one that asks for no card
// says that it got none, if it was bound through the extender all the same.
func recorded(pod *corev1.Pod) bool {
	_, found := pod.Annotations[allocationAnnotation]
	return found
}

func (b *books) enterBound(pod *corev1.Pod, wanted []ask) {
	text, found := pod.Annotations[allocationAnnotation]
	if !found {
		b.say("pod %s: bound without %s", name(pod), allocationAnnotation)
		return
	}
	a, err := decode(text)
	if err != nil {
		b.say("pod %s: %s cannot be read: %v", name(pod), allocationAnnotation, err)
		return
	}
	n := b.nodes[pod.Spec.NodeName]
	if n == nil {
		b.say("pod %s: bound to %s, which does not exist", name(pod), pod.Spec.NodeName)
		return
	}
	b.judgeMarks(pod, a)
	if len(wanted) > 0 { // whose cards they are
		b.judgeTenant(pod, n, a)
	}
	b.judgeGrants(pod, n, wanted, a)
	b.judgeNUMA(pod, n, a)
	b.judgeVisible(pod, n, wanted, a)
	b.hold(pod, n, wanted, a)
}

// judgeMarks checks what says who bound the pod, and for whom.
func (b *books) judgeMarks(pod *corev1.Pod, a allocation) {
	if got := pod.Labels[boundByLabel]; got != "heteroflow" {
		b.say("pod %s: label %s is %q", name(pod), boundByLabel, got)
	}
	if got := pod.Annotations[epochAnnotation]; a.Epoch < 0 || got != strconv.FormatInt(a.Epoch, 10) {
		b.say("pod %s: epoch is %d, annotation %s is %q", name(pod), a.Epoch, epochAnnotation, got)
	}
	if a.BoundAt.IsZero() {
		b.say("pod %s: boundAt is missing", name(pod))
	}
}

// judgeTenant checks that the pod's tenant may be here, and is recorded.
func (b *books) judgeTenant(pod *corev1.Pod, n *node, a allocation) {
	if b.before[name(pod)] {
		return
	}
	owner := b.rules.owner(pod.Namespace)
	if a.Tenant != owner.id {
		b.say("pod %s: tenant is %q, recorded as %q", name(pod), owner.id, a.Tenant)
	}
	if !owner.active {
		b.say("pod %s: its tenant is inactive", name(pod))
	}
	if !b.rules.mayUse(pod.Namespace, n.object) {
		b.say("pod %s: node %s is kept for %s", name(pod), n.object.Name, n.object.Labels[tenantLabel])
	}
}

// judgeGrants checks that each container has exactly what it asked for.
func (b *books) judgeGrants(pod *corev1.Pod, n *node, wanted []ask, a allocation) {
	given := grants(a)
	if len(given) < len(a.Containers) {
		b.say("pod %s: a container has two grants", name(pod))
	}
	for i := range wanted {
		w := &wanted[i]
		g := given[w.container]
		delete(given, w.container)
		if g.Init != (w.role != app) && len(g.Cards) > 0 {
			b.say("pod %s: container %s has init %t", name(pod), w.container, g.Init)
		}
		if int64(len(g.Cards)) != w.count {
			b.say("pod %s: container %s has %d cards, asked were %d", name(pod), w.container, len(g.Cards), w.count)
		}
		b.judgeShares(pod, n, w, g.Cards)
	}
	for _, other := range slices.Sorted(maps.Keys(given)) {
		if len(given[other].Cards) > 0 {
			b.say("pod %s: container %s has cards and asked for none", name(pod), other)
		}
	}
}

// judgeNUMA checks that a pod that wants it has all its cards on one NUMA node,
// which each of them names.
func (b *books) judgeNUMA(pod *corev1.Pod, n *node, a allocation) {
	if wish(pod, "numa-bind") != "true" {
		return
	}
	sides := map[int]bool{}
	for _, g := range a.Containers {
		for _, s := range g.Cards {
			c := n.cards[s.UUID]
			switch {
			case c == nil: // complained of elsewhere
			case c.NUMA == nil:
				b.say("pod %s: card %s names no NUMA node", name(pod), s.UUID)
			default:
				sides[*c.NUMA] = true
			}
		}
	}
	if len(sides) > 1 {
		b.say("pod %s: its cards are on %d NUMA nodes", name(pod), len(sides))
	}
}

func grants(a allocation) map[string]grant {
	m := map[string]grant{}
	for _, g := range a.Containers {
		m[g.Name] = g
	}
	return m
}

func (b *books) judgeShares(pod *corev1.Pod, n *node, w *ask, shares []share) {
	seen, vendors := map[string]bool{}, map[string]bool{}
	for _, s := range shares {
		if seen[s.UUID] {
			b.say("pod %s: container %s has card %s twice", name(pod), w.container, s.UUID)
		}
		seen[s.UUID], vendors[s.Vendor] = true, true
		for _, fault := range faults(pod, n, w, s) {
			b.say("pod %s: container %s: card %s %s", name(pod), w.container, s.UUID, fault)
		}
	}
	if len(vendors) > 1 {
		b.say("pod %s: container %s has cards of %d vendors", name(pod), w.container, len(vendors))
	}
}

// faults says what is wrong with one card of one container.
func faults(pod *corev1.Pod, n *node, w *ask, s share) []string {
	c := n.cards[s.UUID]
	if c == nil {
		return []string{"does not exist on " + pod.Spec.NodeName}
	}
	var all []string
	say := func(wrong bool, format string, args ...any) {
		if wrong {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	want, got := w.on(&c.card), s.use()
	say(got != want, "gives %+v, asked was %+v", got, want)
	say(s.Vendor != c.Vendor || s.Index != c.Index, "is %s %d, recorded as %s %d", c.Vendor, c.Index, s.Vendor, s.Index)
	say(w.whole && !c.whole(), "is of mode %s and was given out whole", c.Mode)
	say(!w.whole && !c.sliced(), "is of mode %s, isolation %q and was sliced", c.Mode, c.Isolation)
	isolation := isolationOf(w, &c.card)
	say(s.Isolation != isolation, "is recorded with isolation %q, want %q", s.Isolation, isolation)
	if misfit := suits(pod, w, &c.card); misfit != "" {
		say(true, "%s", misfit)
	}
	return all
}

func isolationOf(w *ask, c *card) string {
	if w.whole {
		return "exclusive"
	}
	return c.Isolation
}

// hold adds what the pod holds on each card: the larger of its app containers'
// sum and its largest ordinary init container, plus its sidecars.
func (b *books) hold(pod *corev1.Pod, n *node, wanted []ask, a allocation) {
	given := grants(a)
	uses := map[string]*parts{}
	for _, w := range wanted {
		for _, s := range given[w.container].Cards {
			if uses[s.UUID] == nil {
				uses[s.UUID] = &parts{}
			}
			uses[s.UUID].add(w.role, s.use())
		}
	}
	for uuid, p := range uses {
		if c := n.cards[uuid]; c != nil {
			c.holders = append(c.holders, holder{name(pod), pod.Namespace, p.sum()})
		}
	}
	b.bills = append(b.bills, bill{name(pod), pod.Namespace, charges(wanted, cardsOf(n, wanted, given))})
}

// cardsOf are the cards that each ask was given.
func cardsOf(n *node, wanted []ask, given map[string]grant) []map[*card]use {
	taken := make([]map[*card]use, len(wanted))
	for i, w := range wanted {
		taken[i] = map[*card]use{}
		for _, s := range given[w.container].Cards {
			if c := n.cards[s.UUID]; c != nil {
				taken[i][&c.card] = s.use()
			}
		}
	}
	return taken
}

// parts is what the containers of one pod take of one card, by when they run.
type parts struct{ app, ordinary, sidecar use }

func (p *parts) add(r role, u use) {
	switch r {
	case app:
		p.app = p.app.plus(u)
	case ordinary:
		p.ordinary = p.ordinary.larger(u)
	case sidecar:
		p.sidecar = p.sidecar.plus(u)
	}
}

func (p *parts) sum() use { return p.app.larger(p.ordinary).plus(p.sidecar) }

// balance judges each card by all who hold it.
func (b *books) balance() {
	for _, name := range slices.Sorted(maps.Keys(b.nodes)) {
		for _, uuid := range slices.Sorted(maps.Keys(b.nodes[name].cards)) {
			c := b.nodes[name].cards[uuid]
			for _, fault := range append(c.faults(), b.neighbours(c)...) {
				b.say("node %s: card %s: %s", name, uuid, fault)
			}
		}
	}
}

// faults says how the card's holders together break its bounds.
func (c *entry) faults() []string {
	var total use
	var pods []string
	for _, h := range c.holders {
		total = total.plus(h.use)
		pods = append(pods, h.pod)
	}
	var all []string
	say := func(wrong bool, format string, args ...any) {
		if wrong {
			all = append(all, fmt.Sprintf(format, args...)+" by "+strings.Join(pods, ", "))
		}
	}
	memory := c.usable
	if total.exclusive {
		memory = c.MemoryMiB
	}
	say(total.memory > memory, "%d of %d MiB are held", total.memory, memory)
	say(total.cores > 100, "%d percent of its compute are held", total.cores)
	say(total.slots > c.MaxSlices, "%d of %d slots are held", total.slots, c.MaxSlices)
	say(total.exclusive && len(c.holders) > 1, "is exclusive and shared")
	return all
}

// neighbours names the holders of a card that may not be on it together, each
// two of them by themselves.
func (b *books) neighbours(c *entry) []string {
	var all []string
	for i, h := range c.holders {
		for _, o := range c.holders[:i] {
			if b.before[h.pod] && b.before[o.pod] || b.rules.mayShare(h.namespace, o.namespace) {
				continue
			}
			all = append(all, fmt.Sprintf("is shared by %s of %q and %s of %q",
				o.pod, b.rules.owner(o.namespace).id, h.pod, b.rules.owner(h.namespace).id))
		}
	}
	return all
}
