package ledger

import (
	"fmt"
	"maps"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// spent is what the pods of each account hold together: always the sum over the
// holds, by the rules in force. A change of one of a thousand accounts copies a
// list of sums, and no map. The zero value is ready for use.
type spent struct {
	place map[gpu.Account]int // account -> its place in sums; of those that anything has been charged to
	sums  []gpu.Spending
	// shared and fixed say that sums and place are in a snapshot, and so are not
	// edited any more.
	shared, fixed bool
}

// of returns what the account is charged for.
func (s *spent) of(a gpu.Account) gpu.Spending {
	if i, ok := s.place[a]; ok {
		return s.sums[i]
	}
	return nil
}

// used is what the account is charged for, with what claims will take besides.
func used(s *spent, c *claims, a gpu.Account) gpu.Spending {
	sum := s.of(a)
	if due := c.owed(a); len(due) > 0 {
		return sum.Plus(due)
	}
	return sum
}

// affords says why h may not be entered whatever the room: nothing may come from
// its namespace, or a quota would be passed. Who holds no card is not asked.
func affords(h *Hold, r Rules, used func(gpu.Account) gpu.Spending) error {
	if len(h.spending) == 0 {
		return nil
	}
	if _, closed := r.Owner(h.Namespace); closed != "" {
		return fmt.Errorf("namespace %s: %s: %w", h.Namespace, closed, ErrInactive)
	}
	for _, account := range r.Accounts(h.Namespace) {
		if x, over := gpu.Check(r.Limits(account), used(account), h.spending); over {
			return fmt.Errorf("%s: %w", x, ErrQuota)
		}
	}
	return nil
}

// replace charges for h in the place of old, either of which may be nil.
func (s *spent) replace(old, h *Hold, r Rules) {
	if old != nil && h != nil && old.Namespace == h.Namespace && slices.Equal(old.charged(), h.charged()) {
		return // as nearly always: a bind that is confirmed, a pod that ends
	}
	if old != nil {
		s.change(old.Namespace, old.charged(), r, gpu.Spending.Minus)
	}
	if h != nil {
		s.change(h.Namespace, h.charged(), r, gpu.Spending.Plus)
	}
}

// change charges what pods of the namespace hold to its accounts, or takes it off.
func (s *spent) change(namespace string, spending gpu.Spending, r Rules, by func(a, b gpu.Spending) gpu.Spending) {
	if len(spending) == 0 {
		return
	}
	for _, account := range r.Accounts(namespace) {
		s.set(account, by(s.of(account), spending))
	}
}

// set notes what the account is charged for, where nobody else sees it.
func (s *spent) set(a gpu.Account, sum gpu.Spending) {
	if s.shared {
		s.sums, s.shared = slices.Clone(s.sums), false
	}
	i, known := s.place[a]
	if !known {
		s.own()
		i = len(s.sums)
		s.place[a] = i
		s.sums = append(s.sums, nil)
	}
	if s.sums[i] = sum; len(sum) == 0 {
		s.sums[i] = nil // equal books have equal sums
	}
}

// own makes place one that may be edited.
func (s *spent) own() {
	if s.place == nil {
		s.place = map[gpu.Account]int{}
	} else if s.fixed {
		s.place = maps.Clone(s.place)
	}
	s.fixed = false
}

// share returns s for a snapshot.
func (s *spent) share() spent {
	s.shared, s.fixed = true, true
	return *s
}

// with returns what is spent when h is held, in the place of old if there is one. It
// is for snapshots, whose sums are shared: s stays as it is.
func (s spent) with(old, h *Hold, r Rules) spent {
	s.replace(old, h, r)
	return s.share()
}

// without returns what is spent when h is held no more; likewise.
func (s spent) without(h *Hold, r Rules) spent {
	s.replace(h, nil, r)
	return s.share()
}

// Purse is what pods of one namespace may still take, at the moment of a snapshot.
// The zero Purse has no bottom.
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
			p.accounts = append(p.accounts, purse{limits, s.Spent(account)})
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

// Check returns the first limit that asked would pass, false when there is none.
// Reserve answers alike, as long as nothing changes.
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

// Spent returns what the account is charged for: all holds, of claims what they take
// beyond what those still take who are to go for them. It is never edited.
func (s Snapshot) Spent(a gpu.Account) gpu.Spending { return used(&s.spent, s.claims, a) }
