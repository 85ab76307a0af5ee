package window

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// fund is what pods of a namespace are charged to, and what is kept by services that
// sleep, as if their members were there.
type fund struct {
	account gpu.Account
	limits  []gpu.Limit
	kept    gpu.Spending
}

// funds are those of one namespace that have limits.
type funds []fund

func fundsOf(b ledger.Budget, namespace string) (all funds) {
	for _, account := range b.Accounts(namespace) {
		if limits := b.Limits(account); len(limits) > 0 {
			all = append(all, fund{account: account, limits: limits})
		}
	}
	return all
}

// shares reports whether any of the accounts is among them.
func (f funds) shares(accounts []gpu.Account) bool {
	return slices.ContainsFunc(f, func(one fund) bool { return slices.Contains(accounts, one.account) })
}

// charge notes what is kept by a service that is charged to these accounts.
func (f funds) charge(accounts []gpu.Account, kept gpu.Spending) {
	for i := range f {
		if slices.Contains(accounts, f[i].account) {
			f[i].kept = f[i].kept.Plus(kept)
		}
	}
}

// pay notes what is kept by a service of the namespace, or returns the first limit that
// this would pass.
func (f funds) pay(kept gpu.Spending) *gpu.Limit {
	for i := range f {
		if x, over := gpu.Check(f[i].limits, f[i].kept, kept); over {
			return x.Limit
		}
	}
	for i := range f {
		f[i].kept = f[i].kept.Plus(kept)
	}
	return nil
}

// fit returns those of all, in order, that can be paid for, and the first limit that one
// of the others would pass.
func (f funds) fit(all []holding) (paid []holding, limit *gpu.Limit) {
	for i := range all {
		over := f.pay(all[i].placement.Spending())
		if over == nil {
			paid = append(paid, all[i])
		} else if limit == nil {
			limit = over
		}
	}
	return paid, limit
}

// affordable returns those of all, in order, that can be kept within the quotas of the
// namespace, beside what is kept for others by then. What pods hold does not count: a
// tenant may use all of its quota while its services sleep.
func (p *pass) affordable(all []holding) []holding {
	budget := p.Budget()
	f := fundsOf(budget, p.group.Namespace)
	if len(f) == 0 || len(all) == 0 {
		return all
	}
	groups, err := p.Groups.List(labels.Everything())
	if err != nil { // of a lister that serves from memory
		return nil
	}
	for _, g := range groups {
		if g.Namespace == p.group.Namespace && g.Name == p.group.Name {
			continue
		}
		if accounts := budget.Accounts(g.Namespace); f.shares(accounts) {
			f.charge(accounts, p.memory.keeps(g, p.now, p.spending))
		}
	}
	paid, limit := f.fit(all)
	if limit != nil {
		p.part = fmt.Sprintf("%d of %s are kept: what services keep while they sleep stays within %s of %s (%d)",
			count(paid), cards(count(all)), limit.Name, limit.Quota, limit.Most)
	}
	return paid
}
