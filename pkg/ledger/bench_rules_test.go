package ledger_test

import (
	"fmt"
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// city are rules that are looked up: 1,000 namespaces of 100 tenants, each charged
// to its own account and to its tenant's.
type city struct {
	owner    map[string]gpu.TenantID
	accounts map[string][]gpu.Account
	limits   map[gpu.Account][]gpu.Limit
}

func newCity(shift int) city {
	c := city{map[string]gpu.TenantID{}, map[string][]gpu.Account{}, map[gpu.Account][]gpu.Limit{}}
	for i := range 1000 {
		ns, tenant := fmt.Sprintf("namespace-%d", i), fmt.Sprintf("tenant-%d", (i+shift)%100)
		c.owner[ns] = gpu.TenantID(tenant)
		c.accounts[ns] = []gpu.Account{gpu.TenantAccount(tenant), gpu.NamespaceAccount(ns)}
		for _, a := range c.accounts[ns] {
			c.limits[a] = []gpu.Limit{cardsOf("a quota", 1<<40), memoryOf("a quota", 1<<40)}
		}
	}
	return c
}

func (c city) Owner(ns string) (gpu.TenantID, gpu.Reason) { return c.owner[ns], "" }
func (c city) Boundary() ledger.Boundary                  { return c }
func (c city) Equal(ledger.Boundary) bool                 { return true }
func (c city) Dedicated(label string) gpu.TenantID        { return gpu.TenantID(label) }
func (c city) Accounts(ns string) []gpu.Account           { return c.accounts[ns] }
func (c city) Limits(a gpu.Account) []gpu.Limit           { return c.limits[a] }
func (c city) MayShare(a, b gpu.TenantID) bool            { return a == b && a != "" }

// peopled returns 5,000 nodes with 8 cards each and a pod on every card, of all
// namespaces in turn.
func peopled(b *testing.B, r ledger.Rules) *ledger.Ledger {
	b.Helper()
	l := ledger.New(r)
	for i := range benchNodes {
		f := ledger.Facts{ID: benchNode(i), CPU: 1000, Memory: 1000, BootID: "boot"}
		for j := range benchCards {
			f.Cards = append(f.Cards, card(benchCard(i, j), j, gpu.Nvidia))
		}
		l.SetNode(f)
		for j := range benchCards {
			p := on(f.ID, pod(gpu.PodID(fmt.Sprintf("pod-%d-%d", i, j)), slice(benchCard(i, j), 10, 10)))
			p.Namespace = fmt.Sprintf("namespace-%d", (i*benchCards+j)%1000)
			if err := l.Reserve(p); err != nil {
				b.Fatal(err)
			}
		}
	}
	l.Snapshot()
	return l
}

// Every pod changes hands, and with 40,000 of them that is the most there is to do.
func BenchmarkGovernMovesAll(b *testing.B) {
	here, there := newCity(0), newCity(1)
	l := peopled(b, here)
	for b.Loop() {
		l.Govern(there)
		l.Govern(here)
	}
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N)/2, "ms/Govern")
}

// A limit changes, as when somebody edits a quota: nobody moves.
func BenchmarkGovern(b *testing.B) {
	l := peopled(b, newCity(0))
	r := newCity(0)
	for b.Loop() {
		l.Govern(r)
	}
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/Govern")
}

// With a snapshot between any two changes, as engines make one for each pod.
func BenchmarkReserveReleaseAccounts(b *testing.B) {
	for name, r := range map[string]ledger.Rules{"none": apart{}, "1100": newCity(0)} {
		b.Run(name, func(b *testing.B) {
			l := peopled(b, r)
			p := on(benchNode(0), pod("p", slice(benchCard(0, 0), 10, 10)))
			p.Namespace = "namespace-0"
			for b.Loop() {
				if err := l.Reserve(p); err != nil {
					b.Fatal(err)
				}
				l.Snapshot()
				l.Confirm(p)
				l.Snapshot()
				l.Release("p")
				l.Snapshot()
			}
		})
	}
}

func BenchmarkPurse(b *testing.B) {
	s := peopled(b, newCity(0)).Snapshot()
	asked := gpu.Spending{{Vendor: gpu.Nvidia, Devices: 1, Memory: 100}}
	b.ReportAllocs()
	for b.Loop() {
		s.Purse("namespace-0").Check(asked)
	}
}
