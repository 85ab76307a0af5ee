package ledger

import (
	"maps"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Boundary decides who may be on one card together. MayShare answers alike in
// both directions. A tenant may share with itself; the empty one, which is nobody
// known, shares with nobody, not even with itself.
type Boundary interface {
	MayShare(a, b gpu.TenantID) bool
}

// Budget decides how much may be held at once. What it returns is never edited,
// by either side: snapshots keep it.
type Budget interface {
	// Accounts returns what pods of the namespace are charged to, as far as
	// anybody wants to know.
	Accounts(namespace string) []gpu.Account
	// Limits returns those of the account.
	Limits(gpu.Account) []gpu.Limit
}

// Rules is what administrators have written about tenants, at one moment. It never
// changes: other rules are another value. It is called with the books locked, so it
// answers at once and calls nothing.
type Rules interface {
	Boundary
	Budget
	// Owner returns the tenant that pods of the namespace belong to, "" if that is
	// not known; and why nothing new may come from there, "" if it may.
	Owner(namespace string) (gpu.TenantID, gpu.Reason)
	// Dedicated returns the tenant that a node is for whose label says so.
	Dedicated(label string) gpu.TenantID
}

// Govern makes these the rules, and goes by them about all that is held already:
// whose it is, and what it is charged to. Who holds something keeps it, whatever
// they say: cards whose holders may not be together any more are Divided, and
// accounts may be past their limits. Every node gets another Version, so nobody
// goes by a verdict under other rules.
func (l *Ledger) Govern(r Rules) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rules, l.spent = r, spent{}
	moved := map[gpu.PodID]*Hold{}
	for namespace, holds := range l.byNamespace() {
		tenant, _ := r.Owner(namespace)
		all := &Hold{Placement: gpu.Placement{Namespace: namespace}}
		for _, h := range holds {
			all.spending = all.spending.Plus(h.spending)
			if h.Tenant != tenant {
				moved[h.Pod] = h.of(tenant)
			}
		}
		l.spent.replace(nil, all, r)
	}
	maps.Copy(l.holds, moved)
	for id, n := range l.nodes {
		l.nodes[id] = l.version(n.under(r, replaced(n.Holds, moved)))
		l.changed[id] = struct{}{}
	}
	for id, holds := range l.away {
		l.away[id] = replaced(holds, moved)
	}
}

// byNamespace returns all holds, so that the rules are asked once a namespace and
// not once a pod.
func (l *Ledger) byNamespace() map[string][]*Hold {
	all := map[string][]*Hold{}
	for _, h := range l.holds {
		all[h.Namespace] = append(all[h.Namespace], h)
	}
	return all
}

// replaced returns holds with those of moved in the place of their like; the same
// list if there are none.
func replaced(holds []*Hold, moved map[gpu.PodID]*Hold) []*Hold {
	if len(moved) == 0 {
		return holds
	}
	next := holds
	for i, h := range holds {
		if other := moved[h.Pod]; other != nil {
			if &next[0] == &holds[0] {
				next = slices.Clone(holds)
			}
			next[i] = other
		}
	}
	return next
}

// under returns the node under other rules, with these holds, of the same pods as
// its own. A card all of whose holders are one tenant's is as it was, and so is a
// node that has no other: rules change what nearly all nodes are judged by, and
// hardly any node.
func (n *Node) under(r Rules, holds []*Hold) *Node {
	same := len(holds) == 0 || &holds[0] == &n.Holds[0]
	for i := range n.Cards {
		same = same && !n.Cards[i].mixed()
	}
	if !same {
		return build(n.Facts, holds, n.Fences, r)
	}
	next := *n
	next.Rules = r
	return &next
}

// mixed reports whether anybody but pods of one tenant is on the card.
func (c *Card) mixed() bool {
	for i := range c.Holders {
		if c.Holders[i].Tenant != c.Holders[0].Tenant || c.Holders[i].Tenant == "" {
			return len(c.Holders) > 1
		}
	}
	return false
}

// divided reports whether two are on the card that may not be together.
func (c *Card) divided(b Boundary) bool {
	if !c.mixed() {
		return false
	}
	for i := range c.Holders {
		for j := range i {
			if !b.MayShare(c.Holders[i].Tenant, c.Holders[j].Tenant) {
				return true
			}
		}
	}
	return false
}
