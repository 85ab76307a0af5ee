package ledger

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Boundary decides who may be on one card together, and on which nodes. It is all of
// the rules that a node is judged by. It never changes, and keeps nothing else alive:
// nodes have it for as long as nothing happens to them.
type Boundary interface {
	// MayShare answers alike in both directions. A tenant may share with itself; the
	// empty one, which is nobody known, shares with nobody, not even with itself.
	MayShare(a, b gpu.TenantID) bool
	// Dedicated returns the tenant that a node is for whose label says so.
	Dedicated(label string) gpu.TenantID
	// Equal reports whether the other answers everything alike. It may say no where
	// it does.
	Equal(Boundary) bool
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
	Budget
	Boundary() Boundary
	// Owner returns the tenant that pods of the namespace belong to, "" if that is
	// not known; and why nothing new may come from there, "" if it may.
	Owner(namespace string) (gpu.TenantID, gpu.Reason)
}

// Govern makes these the rules, and goes by them about all that is held already:
// whose it is, and what it is charged to. Who holds something keeps it, whatever
// they say: cards whose holders may not be together any more are Divided, and
// accounts may be past their limits.
//
// Every node gets another Version where the boundary is another, so that nobody goes
// by a verdict under other rules. Where it is not, as when a namespace is made or a
// limit changes, only those nodes do whose pods are somebody else's now.
func (l *Ledger) Govern(r Rules) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rules, l.spent = r, spent{}
	for namespace, c := range l.census {
		l.spent.change(namespace, c.spending, r, gpu.Spending.Plus)
	}
	l.claims = l.claims.charge(r)
	l.keepAnew()
	moved := l.moved(r)
	touched := map[gpu.NodeID]struct{}{}
	for pod, h := range moved {
		l.holds[pod] = h
		touched[h.Node] = struct{}{}
	}
	if b := r.Boundary(); !b.Equal(l.boundary) {
		l.boundary = b
		for id := range l.nodes {
			touched[id] = struct{}{}
		}
	}
	for id := range touched {
		l.judgeAnew(id, moved)
	}
}

// moved returns the holds that are another tenant's under these rules than so far,
// as they are then. Of each namespace the rules are asked once.
func (l *Ledger) moved(r Rules) map[gpu.PodID]*Hold {
	moved := map[gpu.PodID]*Hold{}
	for namespace, c := range l.census {
		tenant, _ := r.Owner(namespace)
		if tenant == c.tenant {
			continue // as nearly always
		}
		c.tenant = tenant
		for pod := range c.pods {
			moved[pod] = l.holds[pod].of(tenant)
		}
	}
	return moved
}

// judgeAnew puts the holds that have moved in the place of their like on a node,
// known or not, and has it go by the boundary in force.
func (l *Ledger) judgeAnew(id gpu.NodeID, moved map[gpu.PodID]*Hold) {
	n, known := l.nodes[id]
	if !known {
		l.away[id] = replaced(l.away[id], moved)
		return
	}
	l.nodes[id] = l.version(n.under(l.boundary, replaced(n.Holds, moved)))
	l.changed[id] = struct{}{}
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

// under returns the node under another boundary, with these holds, of the same pods as
// its own. A card all of whose holders are one tenant's is as it was, and so is a
// node that has no other: it changes what nearly all nodes are judged by, and
// hardly any node.
func (n *Node) under(b Boundary, holds []*Hold) *Node {
	same := len(holds) == 0 || &holds[0] == &n.Holds[0]
	for i := range n.Cards {
		same = same && !n.Cards[i].mixed()
	}
	if !same {
		return build(n.Facts, holds, n.Fences, b, n)
	}
	next := *n
	next.Boundary = b
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
