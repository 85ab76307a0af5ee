package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Ledger is the live book of who holds what. It is safe for concurrent use.
type Ledger struct {
	mu    sync.Mutex
	rules Rules // guarded by mu
	// boundary is that of the rules: the value that nodes have, of several that are
	// equal the first.
	boundary Boundary               // guarded by mu
	holds    map[gpu.PodID]*Hold    // guarded by mu; pod -> its hold; each *Hold is replaced, never edited
	nodes    map[gpu.NodeID]*Node   // guarded by mu; known node -> its present; each *Node is replaced, never edited
	away     map[gpu.NodeID][]*Hold // guarded by mu; node not known (yet, or any more) -> holds on it; never empty

	versions uint64 // guarded by mu; of nodes, given out so far

	fences map[gpu.NodeID][]gpu.CardID // guarded by mu; node, known or not -> cards closed by Fence; never empty, lists never edited

	spent   spent   // guarded by mu; the sums over holds by account
	census  census  // guarded by mu; the sums over holds by namespace
	members members // guarded by mu; the nodes of holds by group
	claims  *claims // guarded by mu; where room is claimed

	services []*Service             // guarded by mu; ordered by group; never edited
	kept     map[gpu.NodeID][]*Kept // guarded by mu; node, known or not -> what is kept of it, by group; never empty, lists never edited

	lingering map[gpu.PodID]struct{} // guarded by mu; the pods whose holds Expire may end: it comes often and ends few

	// The last snapshot handed out, and what has changed since then. Snapshot is
	// asked for far more often than the set of nodes changes.
	last    Snapshot                // guarded by mu
	changed map[gpu.NodeID]struct{} // guarded by mu; known nodes that have been replaced
	reshape bool                    // guarded by mu; nodes have come or gone
}

// New returns an empty ledger that goes by these rules until Govern.
func New(r Rules) *Ledger {
	return &Ledger{
		rules:     r,
		boundary:  r.Boundary(),
		holds:     map[gpu.PodID]*Hold{},
		nodes:     map[gpu.NodeID]*Node{},
		away:      map[gpu.NodeID][]*Hold{},
		fences:    map[gpu.NodeID][]gpu.CardID{},
		lingering: map[gpu.PodID]struct{}{},
		census:    census{},
		kept:      map[gpu.NodeID][]*Kept{},
		last:      Snapshot{rules: r},
		changed:   map[gpu.NodeID]struct{}{},
	}
}

// SetNode records what a node says of itself: a new node, a changed one, or one
// that is back. Its holds stay, even on cards that are no longer there; those
// that arrived before the node begin to count. Another BootID than before means
// that the node has started anew, which ends what lingered on it.
func (l *Ledger) SetNode(f Facts) {
	f = f.ordered()
	l.mu.Lock()
	defer l.mu.Unlock()
	old, known := l.nodes[f.ID]
	if known && reflect.DeepEqual(old.Facts, f) {
		return // heartbeats arrive far more often than changes
	}
	if known && old.BootID != "" && f.BootID != "" && old.BootID != f.BootID {
		l.endLingering(f.ID)
	}
	holds := l.on(f.ID)
	delete(l.away, f.ID)
	l.nodes[f.ID] = l.version(build(f, holds, l.fences[f.ID], l.boundary, old))
	l.changed[f.ID] = struct{}{}
	l.reshape = l.reshape || !known
}

// RemoveNode forgets what a node said of itself. Holds of pods stay known, as
// the pods still exist, and count again when the node comes back; what lingered
// on it ends, as its containers have gone with it.
func (l *Ledger) RemoveNode(id gpu.NodeID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endLingering(id)
	n, known := l.nodes[id] // read after the above, which replaces it
	if !known {
		return
	}
	delete(l.nodes, id)
	l.reshape = true
	l.set(id, n.Holds)
}

// Reserve takes what p says, all of it or none, in the state Held. Reserving what
// the pod already holds is a no-op, so a retried bind is safe. Who has a claim on the
// node gets there whatever fits without it.
func (l *Ledger) Reserve(p gpu.Placement) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.reserve(p); err != nil {
		return fmt.Errorf("reserve for pod %s on %s: %w", p.Pod, p.Node, err)
	}
	return nil
}

func (l *Ledger) reserve(p gpu.Placement) error {
	p.Tenant, _ = l.rules.Owner(p.Namespace)
	old, state := l.at(p.Pod)
	switch {
	case state == Claimed && old.Node == p.Node:
		h, err := l.snapshot().redeem(old, p)
		if err == nil {
			l.put(h)
		}
		return err
	case state != none:
		return old.again(&p)
	}
	n, ok := l.nodes[p.Node]
	if !ok {
		return ErrUnknownNode
	}
	h := newHold(p, none.after(reserve))
	if err := affords(h, l.rules, l.used); err != nil {
		return err
	}
	if err := n.admit(h); err != nil {
		return err
	}
	l.put(h)
	return nil
}

// Unreserve gives back a hold in state Held, and does nothing to any other: a
// bind that was believed to have failed may have been confirmed since. One that stands
// on a claim is Claimed again, with the cards that it has by now.
func (l *Ledger) Unreserve(pod gpu.PodID) { l.end(pod, unreserve) }

// Confirm records that the API server says the pod is bound so. It counts
// whatever the ledger believed before, and wherever: it adopts the pod, replaces
// what it held, and may put more onto a card than there is. A pod that is being
// stopped is so still; one that lingered is back.
func (l *Ledger) Confirm(p gpu.Placement) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.Tenant, _ = l.rules.Owner(p.Namespace)
	old, state := l.at(p.Pod)
	next := state.after(confirm)
	if next == state && reflect.DeepEqual(old.Placement, p) {
		return // informers repeat themselves
	}
	if state != none && old.Node != p.Node {
		l.drop(old)
	}
	l.put(newHold(p, next))
}

// Drain marks a bound pod as being stopped. It counts all the same. A repeat is
// a no-op; any other state is ErrIllegal.
func (l *Ledger) Drain(pod gpu.PodID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, state := l.at(pod)
	switch next := state.after(drain); next {
	case illegal:
		return fmt.Errorf("drain pod %s, whose state is %s: %w", pod, state, ErrIllegal)
	case state:
	default:
		l.put(h.in(next, time.Time{}))
	}
	return nil
}

// Linger records that the pod object is gone while its containers may still run:
// what it holds counts until then. The last call decides; nothing happens for a
// pod that holds nothing.
func (l *Ledger) Linger(pod gpu.PodID, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, state := l.at(pod)
	switch next := state.after(linger); {
	case next != none:
		l.put(h.in(next, until))
	case state != none: // a claim: nobody of it was there
		l.drop(h)
	}
}

// Release ends the pod's hold, whatever its state.
func (l *Ledger) Release(pod gpu.PodID) { l.end(pod, release) }

// end drops the pod's hold if e leads there, or has it be what e leads to.
func (l *Ledger) end(pod gpu.PodID, e event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.holds[pod]
	if h == nil {
		return
	}
	switch next := h.after(e); next {
	case none:
		l.drop(h)
	case h.State:
	default:
		l.put(h.in(next, time.Time{}))
	}
}

// Fence closes these cards to newcomers, and opens all others that were fenced
// before: node -> cards. Who is on a fenced card stays. It is for cards about
// which the books disagree, until it is known who is right.
func (l *Ledger) Fence(cards map[gpu.NodeID][]gpu.CardID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	touched := maps.Clone(l.fences)
	maps.Copy(touched, cards)
	for id := range touched {
		if next := slices.Sorted(slices.Values(cards[id])); len(next) == 0 {
			delete(l.fences, id)
		} else {
			l.fences[id] = next
		}
		if n, known := l.nodes[id]; known && !slices.Equal(n.Fences, l.fences[id]) {
			l.set(id, n.Holds)
		}
	}
}

// Expire ends the lingering holds whose time has come and returns their pods in
// order.
func (l *Ledger) Expire(now time.Time) []gpu.PodID {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ended []gpu.PodID
	for pod := range l.lingering {
		if !now.Before(l.holds[pod].Until) {
			ended = append(ended, pod)
		}
	}
	slices.Sort(ended)
	for _, pod := range ended {
		l.drop(l.holds[pod])
	}
	return ended
}

// Hold returns what the pod holds, false when it holds nothing.
func (l *Ledger) Hold(pod gpu.PodID) (Hold, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h, ok := l.holds[pod]; ok {
		return *h, true
	}
	return Hold{}, false
}

// Unconfirmed returns the holds in state Held, ordered by pod.
func (l *Ledger) Unconfirmed() []Hold { return l.holdsIn(Held) }

// Confirmed returns the holds that the API server has said are there, in the
// states Bound and Draining, ordered by pod.
func (l *Ledger) Confirmed() []Hold { return l.holdsIn(Bound, Draining) }

func (l *Ledger) holdsIn(states ...State) []Hold {
	l.mu.Lock()
	var in []Hold
	for _, h := range l.holds {
		if slices.Contains(states, h.State) {
			in = append(in, *h)
		}
	}
	l.mu.Unlock()
	slices.SortFunc(in, func(a, b Hold) int { return cmp.Compare(a.Pod, b.Pod) })
	return in
}

// Pods returns all pods that hold something, in order.
func (l *Ledger) Pods() []gpu.PodID {
	l.mu.Lock()
	pods := slices.AppendSeq(make([]gpu.PodID, 0, len(l.holds)), maps.Keys(l.holds))
	l.mu.Unlock() // the sorting of tens of thousands keeps nobody waiting
	slices.Sort(pods)
	return pods
}

// Snapshot returns the known nodes as they are now. It costs nothing when nothing
// has changed, and one copy of a list of pointers otherwise.
func (l *Ledger) Snapshot() Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.snapshot()
}

// snapshot is Snapshot for who has the lock.
func (l *Ledger) snapshot() Snapshot {
	switch {
	case l.reshape:
		l.last = arrange(l.nodes)
	case len(l.changed) > 0:
		l.last.nodes = slices.Clone(l.last.nodes)
		for id := range l.changed {
			l.last.nodes[l.last.index[id]] = l.nodes[id]
		}
	}
	l.last.rules, l.last.spent, l.last.members, l.last.claims = l.rules, l.spent.share(), l.members, l.claims
	l.last.services, l.last.keeps = l.services, len(l.kept) > 0
	clear(l.changed)
	l.reshape = false
	return l.last
}

// What follows works on the books with mu held.

// at returns the pod's hold and how far it has come; nil and none without one.
func (l *Ledger) at(pod gpu.PodID) (*Hold, State) {
	if h, ok := l.holds[pod]; ok {
		return h, h.State
	}
	return nil, none
}

// holding returns the pod's hold, nil if it has none.
func (l *Ledger) holding(pod gpu.PodID) *Hold { return l.holds[pod] }

// used is what the account is charged for, claims included.
func (l *Ledger) used(a gpu.Account) gpu.Spending { return used(&l.spent, l.claims, a) }

// put enters h, in place of what the pod held on the same node.
func (l *Ledger) put(h *Hold) {
	old := l.holds[h.Pod]
	l.spent.replace(old, h, l.rules)
	l.census.replace(old, h)
	l.holds[h.Pod] = h
	l.claims = l.claims.replace(old, h, l.holding, l.rules)
	if h.State.after(expire) == none {
		l.lingering[h.Pod] = struct{}{}
	} else {
		delete(l.lingering, h.Pod)
	}
	holds := with(l.on(h.Node), h)
	l.set(h.Node, holds)
	l.members = l.members.enter(h)
	if old != nil && old.Group != h.Group {
		l.members = l.members.leave(old, holds)
	}
}

// drop takes h out.
func (l *Ledger) drop(h *Hold) {
	l.spent.replace(h, nil, l.rules)
	l.census.replace(h, nil)
	delete(l.holds, h.Pod)
	l.claims = l.claims.replace(h, nil, l.holding, l.rules)
	delete(l.lingering, h.Pod)
	rest := without(l.on(h.Node), func(o *Hold) bool { return o.Pod == h.Pod })
	l.set(h.Node, rest)
	l.members = l.members.leave(h, rest)
}

// on returns the holds on a node, known or not.
func (l *Ledger) on(id gpu.NodeID) []*Hold {
	if n, known := l.nodes[id]; known {
		return n.Holds
	}
	return l.away[id]
}

// set replaces the holds on a node, known or not.
func (l *Ledger) set(id gpu.NodeID, holds []*Hold) {
	n, known := l.nodes[id]
	switch {
	case known:
		l.nodes[id] = l.version(build(n.Facts, holds, l.fences[id], l.boundary, n))
		l.changed[id] = struct{}{}
	case len(holds) > 0:
		l.away[id] = holds
	default:
		delete(l.away, id)
	}
}

// version gives a new state of a node its number, and those of its cards that
// somebody has left, and notes what is kept of it.
func (l *Ledger) version(n *Node) *Node {
	l.versions++
	n.Version = l.versions
	for i := range n.Cards {
		if c := &n.Cards[i]; c.Departures == 0 { // made by build, and so not shared yet
			c.Departures = l.versions
		}
	}
	l.promise(n)
	return n
}

// endLingering ends the lingering holds on a node.
func (l *Ledger) endLingering(id gpu.NodeID) {
	for _, h := range l.on(id) { // the list as it was: each drop makes a new one
		if h.State == Lingering {
			l.drop(h)
		}
	}
}
