package ledger

import (
	"fmt"
	"maps"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Boundary decides who may be on one card together. MayShare answers alike in
// both directions.
type Boundary interface {
	MayShare(a, b gpu.TenantID) bool
}

// Budget decides how much may be held at once. What it returns is never edited.
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

// Govern makes these the rules. Who holds something keeps it, whatever they say:
// cards whose holders may not be together any more are Divided, and accounts may
// be past their limits. Every node gets another Version.
func (l *Ledger) Govern(r Rules) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rules = r
	moved := map[gpu.PodID]*Hold{}
	l.spent = spent{}
	for pod, h := range l.holds {
		if tenant, _ := r.Owner(h.Namespace); tenant != h.Tenant {
			h = h.of(tenant)
			moved[pod] = h
		}
		l.spent.add(h, r)
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

// replaced returns holds with those of moved in the place of their like; the same
// list if there are none.
func replaced(holds []*Hold, moved map[gpu.PodID]*Hold) []*Hold {
	next := holds
	for i, h := range holds {
		if other := moved[h.Pod]; other != nil {
			if &next[0] == &holds[0] {
				next = append([]*Hold(nil), holds...)
			}
			next[i] = other
		}
	}
	return next
}

// under returns the node under other rules, with these holds.
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

// spent is what the pods of each account hold together. The zero value is ready
// for use.
type spent struct {
	by     map[gpu.Account]gpu.Spending // only of accounts that somebody wants to know about
	frozen bool                         // by is in a snapshot, and so never edited
}

// admit says why h may not be entered whatever the room: the namespace is closed,
// or a quota would be passed.
func (s *spent) admit(h *Hold, r Rules) error {
	if _, closed := r.Owner(h.Namespace); closed != "" {
		return fmt.Errorf("namespace %s: %w", h.Namespace, ErrInactive)
	}
	asked := gpu.Spending(nil)
	for i, account := range r.Accounts(h.Namespace) {
		if i == 0 {
			asked = h.Spending()
		}
		if x, over := gpu.Check(r.Limits(account), s.by[account], asked); over {
			return fmt.Errorf("%s: %w", x, ErrQuota)
		}
	}
	return nil
}

func (s *spent) add(h *Hold, r Rules) {
	s.change(h, r, gpu.Spending.Plus)
}

func (s *spent) take(h *Hold, r Rules) {
	s.change(h, r, gpu.Spending.Minus)
}

func (s *spent) change(h *Hold, r Rules, by func(a, b gpu.Spending) gpu.Spending) {
	accounts := r.Accounts(h.Namespace)
	if len(accounts) == 0 || len(h.uses) == 0 && len(h.Foreign) == 0 {
		return
	}
	if s.frozen || s.by == nil {
		s.by, s.frozen = maps.Clone(s.by), false
		if s.by == nil {
			s.by = map[gpu.Account]gpu.Spending{}
		}
	}
	spending := h.Spending()
	for _, account := range accounts {
		if sum := by(s.by[account], spending); len(sum) > 0 {
			s.by[account] = sum
		} else {
			delete(s.by, account)
		}
	}
}

// freeze returns s for a snapshot.
func (s *spent) freeze() spent {
	s.frozen = true
	return *s
}

// Purse is what pods of one namespace may still take, at the moment of a snapshot.
type Purse struct {
	accounts []purse
}

type purse struct {
	limits []gpu.Limit
	used   gpu.Spending
}

// Purse returns that of the namespace.
func (s Snapshot) Purse(namespace string) Purse {
	var p Purse
	if s.rules == nil {
		return p
	}
	for _, account := range s.rules.Accounts(namespace) {
		if limits := s.rules.Limits(account); len(limits) > 0 {
			p.accounts = append(p.accounts, purse{limits, s.spent.by[account]})
		}
	}
	return p
}

// Limited reports whether there is any limit.
func (p Purse) Limited() bool { return len(p.accounts) > 0 }

// Equal reports whether q leaves as much as p.
func (p Purse) Equal(q Purse) bool {
	return slices.EqualFunc(p.accounts, q.accounts, func(a, b purse) bool {
		return slices.Equal(a.limits, b.limits) && slices.Equal(a.used, b.used)
	})
}

// Check returns the first limit that asked would pass.
func (p Purse) Check(asked gpu.Spending) (gpu.Excess, bool) {
	for i := range p.accounts {
		if x, over := gpu.Check(p.accounts[i].limits, p.accounts[i].used, asked); over {
			return x, true
		}
	}
	return gpu.Excess{}, false
}

// Owner is that of the rules: whose pods of the namespace are, and why nothing new
// may come from there.
func (s Snapshot) Owner(namespace string) (gpu.TenantID, gpu.Reason) {
	if s.rules == nil {
		return "", gpu.TenantInactive
	}
	return s.rules.Owner(namespace)
}

// Spent returns what the account is charged for.
func (s Snapshot) Spent(a gpu.Account) gpu.Spending { return s.spent.by[a] }
