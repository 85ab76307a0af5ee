package ledger_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// anyRules are rules of no particular sense: any namespace may be anybody's, or
// nobody's, be charged to any accounts, and who may share is no order at all.
type anyRules struct {
	owner    map[string]gpu.TenantID
	closed   map[string]gpu.Reason
	pairs    map[[2]gpu.TenantID]bool
	accounts map[string][]gpu.Account
	limits   map[gpu.Account][]gpu.Limit
}

func (a anyRules) Owner(ns string) (gpu.TenantID, gpu.Reason) { return a.owner[ns], a.closed[ns] }
func (a anyRules) Boundary() ledger.Boundary                  { return a }
func (a anyRules) Equal(o ledger.Boundary) bool               { return maps.Equal(a.pairs, o.(anyRules).pairs) }
func (a anyRules) Dedicated(label string) gpu.TenantID        { return gpu.TenantID(label) }
func (a anyRules) Accounts(ns string) []gpu.Account           { return a.accounts[ns] }
func (a anyRules) Limits(account gpu.Account) []gpu.Limit     { return a.limits[account] }
func (a anyRules) MayShare(x, y gpu.TenantID) bool {
	return x == y && x != "" || a.pairs[[2]gpu.TenantID{x, y}] || a.pairs[[2]gpu.TenantID{y, x}]
}

func namespaces() []string { return []string{"a", "b", "c", "d"} }

func anyAccounts() []gpu.Account { return []gpu.Account{"k", "l", "m"} }

// drawRules draws from tenants u, v, w, of whom the middle one has the most
// namespaces, so that cards are shared often.
func drawRules(t *rapid.T) anyRules {
	a := anyRules{
		owner: map[string]gpu.TenantID{}, closed: map[string]gpu.Reason{}, pairs: map[[2]gpu.TenantID]bool{},
		accounts: map[string][]gpu.Account{}, limits: map[gpu.Account][]gpu.Limit{},
	}
	for _, ns := range namespaces() {
		a.owner[ns] = rapid.SampledFrom([]gpu.TenantID{"u", "v", "v", "v", "w", ""}).Draw(t, "owner of "+ns)
		if rapid.IntRange(0, 9).Draw(t, "closed") == 0 {
			a.closed[ns] = gpu.TenantInactive
		}
		for _, account := range anyAccounts() {
			if rapid.IntRange(0, 2).Draw(t, "account") == 0 {
				a.accounts[ns] = append(a.accounts[ns], account)
			}
		}
	}
	for _, pair := range [][2]gpu.TenantID{{"u", "v"}, {"v", "w"}, {"w", "u"}} {
		a.pairs[pair] = rapid.Bool().Draw(t, fmt.Sprint(pair))
	}
	for _, account := range anyAccounts() {
		for range rapid.SampledFrom([]int{0, 1, 1, 2}).Draw(t, "limits") {
			a.limits[account] = append(a.limits[account], drawLimit(t))
		}
	}
	return a
}

func drawLimit(t *rapid.T) gpu.Limit {
	l := gpu.Limit{
		Quota: "a quota", Name: "a line",
		Measure:  rapid.SampledFrom([]gpu.Measure{gpu.Devices, gpu.WholeCards, gpu.Memory, gpu.Compute}).Draw(t, "measure"),
		Vendor:   rapid.SampledFrom([]gpu.Vendor{"", "", gpu.Nvidia, gpu.Ascend}).Draw(t, "vendor"),
		Resource: rapid.SampledFrom([]string{"", "", "x"}).Draw(t, "resource"),
	}
	l.Most = rapid.SampledFrom(map[gpu.Measure][]int64{
		gpu.Devices: {0, 2, 4, 8}, gpu.WholeCards: {0, 1, 2}, gpu.Memory: {90, 91, 200}, gpu.Compute: {100, 150, 300},
	}[l.Measure]).Draw(t, "most")
	return l
}

// Govern changes the rules at random: often a little, sometimes all of them.
func (r *run) Govern(t *rapid.T) {
	rules, old := drawRules(t), r.naive.rules
	switch rapid.IntRange(0, 4).Draw(t, "what changes") {
	case 0: // everything
	case 1:
		rules = anyRules{old.owner, rules.closed, old.pairs, old.accounts, old.limits}
	case 2:
		rules = anyRules{old.owner, old.closed, rules.pairs, old.accounts, old.limits}
	case 3:
		rules = anyRules{rules.owner, old.closed, old.pairs, rules.accounts, old.limits}
	case 4:
		rules = anyRules{old.owner, old.closed, old.pairs, old.accounts, rules.limits}
	}
	before := r.ledger.Snapshot()
	r.ledger.Govern(rules)
	r.naive.rules = rules
	r.naive.unsure()
	r.forced = true
	if diff := cmp.Diff(held(before), held(r.ledger.Snapshot())); diff != "" {
		t.Fatalf("other rules have moved pods (-before +after):\n%s", diff)
	}
}

// spends is what the pod is charged for of one vendor's cards by one resource.
func (m *naive) spends(p *gpu.Placement, v gpu.Vendor, resource string) gpu.Spend {
	s := gpu.Spend{Vendor: v, Resource: resource}
	some := *p
	some.Grants = nil
	for _, g := range p.Grants {
		if g.Resource == resource {
			some.Grants = append(some.Grants, g)
		}
	}
	for _, id := range allCards() {
		if u, ok := m.use(&some, id); ok && vendorOf(id) == v {
			s.Devices += int64(u.Slots)
			s.Memory += u.Memory
			s.Cores += u.Cores
			if u.Exclusive {
				s.Whole++
			}
		}
	}
	for _, f := range p.Foreign {
		if f.Vendor == v && resource == "" {
			n := int64(f.Cards)
			if f.Cards == gpu.AllCards {
				n = 1
			}
			s.Devices, s.Whole, s.Cores = s.Devices+n, s.Whole+n, s.Cores+gpu.Cores(100*n)
		}
	}
	return s
}

// kinds are all that spending is told apart by, in order.
func kinds() (all []gpu.Spend) {
	for _, v := range []gpu.Vendor{"", gpu.Ascend, gpu.Nvidia} {
		for _, resource := range []string{"", "x"} {
			all = append(all, gpu.Spend{Vendor: v, Resource: resource})
		}
	}
	return all
}

// spent adds up what the account is charged for, and p besides if it is not nil.
func (m *naive) spent(account gpu.Account, p *gpu.Placement) gpu.Spending {
	var charged []*gpu.Placement
	if p != nil {
		charged = append(charged, p)
	}
	for _, h := range m.pods {
		if slices.Contains(m.rules.accounts[h.p.Namespace], account) && h.state != ledger.Claimed {
			charged = append(charged, &h.p)
		}
	}
	var all gpu.Spending
	for _, kind := range kinds() {
		sum := m.due(account, kind)
		for _, p := range charged {
			s := m.spends(p, kind.Vendor, kind.Resource)
			sum.Devices, sum.Whole, sum.Memory, sum.Cores = sum.Devices+s.Devices, sum.Whole+s.Whole, sum.Memory+s.Memory, sum.Cores+s.Cores
		}
		if sum != kind {
			all = append(all, sum)
		}
	}
	return all
}

// counted is how much of s a limit counts.
func counted(l gpu.Limit, s gpu.Spending) (sum int64) {
	for _, e := range s {
		if l.Vendor != "" && l.Vendor != e.Vendor {
			continue
		}
		if l.Resource == "" || e.Resource == "" || l.Resource == e.Resource {
			sum += map[gpu.Measure]int64{gpu.Devices: e.Devices, gpu.WholeCards: e.Whole, gpu.Memory: int64(e.Memory), gpu.Compute: int64(e.Cores)}[l.Measure]
		}
	}
	return sum
}

// passes lists the limits that are passed when p is held too, and that p adds to.
func (m *naive) passes(p *gpu.Placement) (all []gpu.Limit) {
	for _, account := range m.rules.accounts[p.Namespace] {
		for _, l := range m.rules.limits[account] {
			before, after := counted(l, m.spent(account, nil)), counted(l, m.spent(account, p))
			if after > before && after > l.Most {
				all = append(all, l)
			}
		}
	}
	return all
}

// CheckSpent: what is charged is the sum over the holds, and what is past a limit
// has come there by somebody else's binding, or by other rules.
func (r *run) CheckSpent(t *rapid.T, s ledger.Snapshot) {
	for _, account := range anyAccounts() {
		want := r.naive.spent(account, nil)
		if diff := cmp.Diff(want, s.Spent(account)); diff != "" {
			t.Fatalf("account %s (-want +got):\n%s", account, diff)
		}
		for i, l := range r.naive.rules.limits[account] {
			key := fmt.Sprint(account, i)
			switch used := counted(l, want); {
			case used <= l.Most:
				delete(r.past, key)
			case r.forced:
				r.past[key] = used
			case r.past[key] < used:
				t.Fatalf("account %s: %d of %d used of %+v, were %d", account, used, l.Most, l, r.past[key])
			default:
				r.past[key] = used
			}
		}
	}
}

// CheckPairs: who is on a card together and may not be has come there by somebody
// else's binding, or by other rules; and then the card takes nobody.
func (r *run) CheckPairs(t *rapid.T, s ledger.Snapshot) {
	for _, n := range s.Nodes() {
		for i := range n.Cards {
			c := &n.Cards[i]
			holders := r.naive.holders(n.ID, c.ID)
			switch {
			case !r.naive.mixed(holders):
				delete(r.split, c.ID)
			case r.forced:
				r.split[c.ID] = len(holders)
			case len(holders) > r.split[c.ID]:
				t.Fatalf("%s is shared by whom it must not, and they have become more: %+v", c.ID, holders)
			default:
				r.split[c.ID] = len(holders)
			}
		}
	}
}

// checkPurse: a snapshot's purse answers as Reserve would.
func (r *run) checkPurse(t *rapid.T, before ledger.Snapshot, p *gpu.Placement, err error) {
	_, over := before.Purse(p.Namespace).Check(p.Spending())
	if want := len(r.naive.passes(p)) > 0; over != want {
		t.Fatalf("Purse.Check: %t, want %t", over, want)
	}
	if _, known := before.Node(p.Node); known && r.naive.rules.closed[p.Namespace] == "" && over != errors.Is(err, ledger.ErrQuota) {
		t.Fatalf("Purse.Check: %t, Reserve = %v", over, err)
	}
}
