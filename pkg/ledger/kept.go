package ledger

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Kept is what a service takes back of one node. It is a promise and no hold: Reserve
// does not look at it, For does. It never changes.
type Kept struct {
	Group   gpu.GroupID
	Service string // namespace/name of its TaskGroup, for people
	From    time.Time

	// hold is what its members had there together.
	hold *Hold
}

// binds reports whether who is no member of another group than that, and stays until
// then, has to leave it room. until zero is for ever.
func (k *Kept) binds(g gpu.GroupID, until time.Time) bool {
	return k.Group != g && (until.IsZero() || until.After(k.From))
}

// kept returns what the service takes back of each node: of all that its members had
// there the sum. Cards that cannot be named are not kept.
func (s *Service) kept(r Rules) map[gpu.NodeID]*Kept {
	all := map[gpu.NodeID]*Kept{}
	if s == nil {
		return all
	}
	for i := range s.Kept {
		p := &s.Kept[i]
		k := all[p.Node]
		if k == nil {
			k = &Kept{Group: s.Group, Service: s.Name, From: s.From, hold: s.claims(p, r)}
			all[p.Node] = k
		}
		k.hold.CPU += p.CPU
		k.hold.Memory += p.Memory
		k.hold.add(p.Uses())
	}
	return all
}

// claims returns the empty claim of the service to cards of the node on which the member
// was. No pod has that ID: those of pods are without a colon.
func (s *Service) claims(member *gpu.Placement, r Rules) *Hold {
	tenant, _ := r.Owner(member.Namespace)
	return &Hold{
		State: Claimed, claim: newClaim(nil),
		Placement: gpu.Placement{
			Pod: "kept:" + gpu.PodID(s.Group), Namespace: member.Namespace, Name: s.Name, Node: member.Node, Tenant: tenant, Group: s.Group,
		},
	}
}

// add adds uses to those of the hold. It is for one that nobody else has yet.
func (h *Hold) add(uses []gpu.CardUse) {
	for _, u := range uses {
		i, there := slices.BinarySearchFunc(h.uses, u.Card, func(x gpu.CardUse, id gpu.CardID) int { return cmp.Compare(x.Card, id) })
		if there {
			h.uses[i].Use = h.uses[i].Use.Plus(u.Use)
		} else {
			h.uses = slices.Insert(h.uses, i, u)
		}
	}
}

// keep notes what next keeps in the place of what old, of the same group, did. Either
// may be nil. It is called with mu held.
func (l *Ledger) keep(old, next *Service) {
	was, is := old.kept(l.rules), next.kept(l.rules)
	for id := range was {
		if is[id] == nil {
			l.keepOn(id, old.Group, nil)
		}
	}
	for id, k := range is {
		l.keepOn(id, k.Group, k)
	}
}

// keepOn has k kept on the node for the group; nil: nothing.
func (l *Ledger) keepOn(id gpu.NodeID, g gpu.GroupID, k *Kept) {
	next := slices.Clone(l.kept[id])
	i, there := slices.BinarySearchFunc(next, g, func(k *Kept, g gpu.GroupID) int { return cmp.Compare(k.Group, g) })
	switch {
	case there && k == nil:
		next = slices.Delete(next, i, i+1)
	case there && reflect.DeepEqual(next[i], k), k == nil:
		return // as when the next closing is another
	case there:
		next[i] = k
	default:
		next = slices.Insert(next, i, k)
	}
	if l.kept[id] = next; len(next) == 0 {
		delete(l.kept, id)
	}
	if n, known := l.nodes[id]; known {
		same := *n
		l.nodes[id] = l.version(&same)
		l.changed[id] = struct{}{}
	}
}

// promise notes on a new state of a node what is kept of it, and gives what that is to
// those from whom all of it is kept a version of its own. It is called with mu held.
func (l *Ledger) promise(n *Node) {
	n.kept = nil
	all := l.kept[n.ID]
	if len(all) == 0 {
		return // as nearly always
	}
	n.kept = &promises{all: all}
	rest := n.less(func(*Kept) bool { return true })
	if rest != n {
		l.versions++
		rest.Version = l.versions
	}
	n.kept.rest = rest
}

// keepAnew has what is kept be whose the rules in force say.
func (l *Ledger) keepAnew() {
	for _, s := range l.services {
		if len(s.Kept) > 0 {
			l.keep(s, s)
		}
	}
}

// promises are what is kept of one state of a node. They never change, and there is at
// least one.
type promises struct {
	all []*Kept // one of each service, in the order of their groups
	// rest is the node to those from whom all of that is kept; nil where that has not been
	// worked out.
	rest *Node
}

// planned returns the same of another state of the node, which a plan may make.
func (p *promises) planned() *promises {
	if p == nil {
		return nil // as nearly always
	}
	return &promises{all: p.all}
}

// Keeps reports whether anything is kept of the node.
func (n *Node) Keeps() bool { return n.kept != nil }

// Kept returns what is, in the order of the groups. The list is never edited.
func (n *Node) Kept() []*Kept {
	if n.kept == nil {
		return nil
	}
	return n.kept.all
}

// For returns the node as somebody meets it who is of that group, if of any, and stays
// until then, zero being for ever: what is kept for others and taken back before is
// claimed there, as far as no member of theirs has it. It is the node itself where
// nothing of it is kept from them.
func (n *Node) For(g gpu.GroupID, until time.Time) *Node {
	if n.kept == nil {
		return n // as nearly always
	}
	binding := 0
	for _, k := range n.kept.all {
		if k.binds(g, until) {
			binding++
		}
	}
	switch {
	case binding == 0:
		return n
	case binding == len(n.kept.all) && n.kept.rest != nil:
		return n.kept.rest
	}
	return n.less(func(k *Kept) bool { return k.binds(g, until) })
}

// FirstKept returns what is taken back first of all that is kept from somebody who is of
// that group, if of any, and stays until then; nil if nothing is.
func (n *Node) FirstKept(g gpu.GroupID, until time.Time) (first *Kept) {
	for _, k := range n.Kept() {
		if k.binds(g, until) && (first == nil || k.From.Before(first.From)) {
			first = k
		}
	}
	return first
}

// less returns the node where what is kept that binds is claimed; itself if members have
// all of that. Nothing else is kept of what it returns.
func (n *Node) less(binds func(*Kept) bool) *Node {
	var missing []*Hold
	for _, k := range n.kept.all {
		if !binds(k) {
			continue
		}
		if h := k.missing(n); h != nil {
			missing = append(missing, h)
		}
	}
	if len(missing) == 0 {
		return n
	}
	next := *n
	next.kept, next.Version = nil, 0
	next.enterKept(missing)
	return &next
}

// missing returns what is kept that no member has who is on the node; nil if they have
// all of it. Members that are back may be others than those who left.
func (k *Kept) missing(n *Node) *Hold {
	h := *k.hold
	h.uses = slices.Clone(h.uses)
	for _, m := range n.Holds {
		if m.Group != k.Group || isClaim(m) {
			continue
		}
		h.CPU, h.Memory = h.CPU-m.CPU, h.Memory-m.Memory
		for i := range m.uses {
			h.minus(&m.uses[i])
		}
	}
	h.CPU, h.Memory = max(0, h.CPU), max(0, h.Memory)
	h.uses = slices.DeleteFunc(h.uses, func(u gpu.CardUse) bool { return u.Use == gpu.Use{} })
	if len(h.uses) == 0 && h.CPU == 0 && h.Memory == 0 {
		return nil
	}
	return &h
}

// minus takes off what somebody has of a card. Who has it alone has all of it.
func (h *Hold) minus(had *gpu.CardUse) {
	for i := range h.uses {
		u := &h.uses[i]
		switch {
		case u.Card != had.Card:
		case had.Use.Exclusive:
			u.Use = gpu.Use{}
		default:
			u.Use.Memory = max(0, u.Use.Memory-had.Use.Memory)
			u.Use.Cores = max(0, u.Use.Cores-had.Use.Cores)
			u.Use.Slots = max(0, u.Use.Slots-had.Use.Slots)
		}
	}
}

// enterKept enters claims of services, where nobody else sees them: all at once, as there
// may be many on one card.
func (n *Node) enterKept(all []*Hold) {
	cards := n.Cards
	n.Cards = slices.Clone(cards)
	for i := range n.Cards {
		n.Cards[i].Claims = slices.Clip(n.Cards[i].Claims)
	}
	n.Claims += len(all)
	n.Holds = slices.Concat(n.Holds, all)
	slices.SortFunc(n.Holds, func(a, b *Hold) int { return cmp.Compare(a.Pod, b.Pod) })
	for _, h := range all {
		n.UsedCPU += h.CPU
		n.UsedMemory += h.Memory
		for _, u := range h.uses {
			if c := n.card(u.Card); c != nil {
				c.Claims = append(c.Claims, Holder{h.Pod, h.Tenant, u.Use})
				c.Claimed = c.Claimed.Plus(u.Use)
			}
		}
	}
	for i := range n.Cards {
		if c := &n.Cards[i]; len(c.Claims) > len(cards[i].Claims) {
			slices.SortFunc(c.Claims, func(a, b Holder) int { return cmp.Compare(a.Pod, b.Pod) })
		}
	}
}

// Unkept returns the node as it would be if nothing of it were kept; itself if that is so.
func (n *Node) Unkept() *Node {
	if n.kept == nil {
		return n
	}
	next := *n
	next.kept = nil
	return &next
}
