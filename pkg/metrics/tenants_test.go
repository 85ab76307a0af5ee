package metrics

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// sliceOn is a placement of a slice.
func sliceOn(namespace, pod, node, card string) gpu.Placement {
	p := placement(pod, card, false)
	p.Namespace, p.Node = namespace, gpu.NodeID(node)
	return p
}

// neighbours are two Tenants that share, one that is alone, and one whose namespace
// another claims too.
func neighbours() *tenancy.Directory {
	limits := func(whose string) []gpu.Limit {
		return []gpu.Limit{{Quota: whose, Name: "cards", Measure: gpu.Devices, Most: 4}, {Quota: whose, Name: "memoryMiB", Measure: gpu.Memory, Most: 8000}}
	}
	return tenancy.New(tenancy.World{
		Tenants: []tenancy.Tenant{
			{Name: "alone"}, {Name: "blue", Groups: []string{"g"}, Limits: limits("Tenant blue")}, {Name: "red", Groups: []string{"g"}},
		},
		Namespaces: []tenancy.Namespace{
			{Name: "a", Claims: []string{"alone"}}, {Name: "b", Claims: []string{"blue"}}, {Name: "r", Claims: []string{"red"}},
			{Name: "own"}, {Name: "twice", Claims: []string{"alone", "red"}},
		},
		Quotas: []tenancy.Quota{{Namespace: "b", Name: "gpus", Limits: []gpu.Limit{
			{Quota: "ResourceQuota b/gpus", Name: "requests.nvidia.com/gpu", Measure: gpu.Devices, Vendor: gpu.Nvidia, Most: 2},
			{Quota: "ResourceQuota b/gpus", Name: "limits.heteroflow.io/gpu", Measure: gpu.WholeCards, Most: 1},
		}}},
	})
}

func TestTenantsAreRead(t *testing.T) {
	d := neighbours()
	l := ledger.New(d)
	l.SetNode(ledger.Facts{ID: "n1", Cards: []gpu.Card{
		card("free", 0, nil), card("blue", 1, nil), card("both", 2, nil), card("own", 3, nil), card("whole", 4, nil), card("divided", 5, nil),
		card("sick", 6, func(c *gpu.Card) { c.Healthy = false }), card("full", 7, func(c *gpu.Card) { c.MaxSlices = 1 }),
	}})
	for _, p := range []gpu.Placement{
		sliceOn("b", "1", "n1", "blue"), sliceOn("b", "2", "n1", "both"), sliceOn("r", "3", "n1", "both"), sliceOn("own", "4", "n1", "own"),
		sliceOn("a", "5", "n1", "divided"), sliceOn("r", "6", "n1", "divided"), sliceOn("r", "7", "n1", "sick"), sliceOn("r", "8", "n1", "full"),
	} {
		l.Confirm(p)
	}
	whole := placement("9", "whole", true)
	whole.Namespace = "b"
	l.Confirm(whole)

	m := New(View{Ledger: l.Snapshot, Ready: func() bool { return true }, Tenancy: func() *tenancy.Directory { return d }})
	want := `
# HELP heteroflow_contested_namespaces Namespaces that more than one Tenant claims. Their pods share cards with nobody.
# TYPE heteroflow_contested_namespaces gauge
heteroflow_contested_namespaces 1
# HELP heteroflow_divided_cards Cards held together by pods that may not share one any more, as after the end of a sharing group. They are closed to all others.
# TYPE heteroflow_divided_cards gauge
heteroflow_divided_cards 1
# HELP heteroflow_resourcequota_limit What they may hold at most by that line, in the same unit.
# TYPE heteroflow_resourcequota_limit gauge
heteroflow_resourcequota_limit{namespace="b",resource="limits.heteroflow.io/gpu",resourcequota="gpus"} 1
heteroflow_resourcequota_limit{namespace="b",resource="requests.nvidia.com/gpu",resourcequota="gpus"} 2
# HELP heteroflow_resourcequota_used What the pods of a namespace hold of what a line of a ResourceQuota counts: cards, MiB, or percent of one card. Of more than 10,000 lines some have no series.
# TYPE heteroflow_resourcequota_used gauge
heteroflow_resourcequota_used{namespace="b",resource="limits.heteroflow.io/gpu",resourcequota="gpus"} 1
heteroflow_resourcequota_used{namespace="b",resource="requests.nvidia.com/gpu",resourcequota="gpus"} 3
# HELP heteroflow_tenant_closed_cards Cards with room for a slice onto which none of the Tenant comes, for one is there of a tenant that it may not share with.
# TYPE heteroflow_tenant_closed_cards gauge
heteroflow_tenant_closed_cards{tenant="alone"} 3
heteroflow_tenant_closed_cards{tenant="blue"} 1
heteroflow_tenant_closed_cards{tenant="red"} 1
# HELP heteroflow_tenant_limit What they may hold at most by spec.quota of the Tenant. There is no series of what has no limit.
# TYPE heteroflow_tenant_limit gauge
heteroflow_tenant_limit{measure="cards",tenant="blue"} 4
heteroflow_tenant_limit{measure="memory_mib",tenant="blue"} 8000
# HELP heteroflow_tenant_used What the pods of all namespaces of a Tenant hold: cards, of which a slice counts as one, their memory in MiB, and compute in percent of one card.
# TYPE heteroflow_tenant_used gauge
heteroflow_tenant_used{measure="cards",tenant="alone"} 1
heteroflow_tenant_used{measure="cards",tenant="blue"} 3
heteroflow_tenant_used{measure="cards",tenant="red"} 4
heteroflow_tenant_used{measure="cores_percent",tenant="alone"} 30
heteroflow_tenant_used{measure="cores_percent",tenant="blue"} 160
heteroflow_tenant_used{measure="cores_percent",tenant="red"} 120
heteroflow_tenant_used{measure="memory_mib",tenant="alone"} 300
heteroflow_tenant_used{measure="memory_mib",tenant="blue"} 1600
heteroflow_tenant_used{measure="memory_mib",tenant="red"} 1200
`
	var names []string
	for _, f := range tenantFamilies() {
		names = append(names, f.Name)
	}
	if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

// crowd is Tenants in random groups, and random pods of theirs, of namespaces of
// their own and of contested ones.
func crowd(seed uint64, tenants, namespaces, groups, nodes, pods int) (*tenancy.Directory, ledger.Snapshot) {
	r := rand.New(rand.NewPCG(seed, 0))
	var w tenancy.World
	for i := range tenants {
		t := tenancy.Tenant{Name: fmt.Sprintf("t%04d", i)}
		for range r.IntN(3) {
			t.Groups = append(t.Groups, fmt.Sprint("g", r.IntN(groups)))
		}
		w.Tenants = append(w.Tenants, t)
	}
	for i := range namespaces {
		n := tenancy.Namespace{Name: fmt.Sprint("ns", i)}
		for range []int{0, 1, 1, 1, 1, 1, 1, 2}[r.IntN(8)] {
			n.Claims = append(n.Claims, fmt.Sprintf("t%04d", r.IntN(tenants)))
		}
		w.Namespaces = append(w.Namespaces, n)
	}
	d := tenancy.New(w)
	l := ledger.New(d)
	for i := range nodes {
		var cards []gpu.Card
		for j := range 8 {
			cards = append(cards, card(fmt.Sprintf("c%d-%d", i, j), j, nil))
		}
		l.SetNode(ledger.Facts{ID: gpu.NodeID(fmt.Sprintf("n%05d", i)), Cards: cards})
	}
	for i := range pods {
		node := r.IntN(nodes)
		l.Confirm(sliceOn(fmt.Sprint("ns", r.IntN(namespaces)), fmt.Sprint(i), fmt.Sprintf("n%05d", node), fmt.Sprintf("c%d-%d", node, r.IntN(8))))
	}
	return d, l.Snapshot()
}

// However cards are counted together, the sum is that over every card.
func TestClosedCardsAreThoseOfEachCard(t *testing.T) {
	some := false
	for seed := range uint64(40) {
		d, s := crowd(seed, 12, 20, 4, 6, 60)
		want := make([]int64, len(d.Tenants()))
		for i, tenant := range d.Tenants() {
			for _, n := range s.Nodes() {
				for j := range n.Cards {
					shut := false
					for _, h := range n.Cards[j].Holders {
						shut = shut || !d.Boundary().MayShare(gpu.TenantID(tenant.Name), h.Tenant)
					}
					if shut && n.Cards[j].FreeSlots() > 0 && n.Cards[j].FreeMemory() > 0 {
						want[i]++
					}
				}
			}
		}
		c := census(s)
		got := c.closedTo(d)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
		for i := range got {
			some = some || got[i] > 0 && got[i] < c.cards
		}
	}
	if !some {
		t.Error("no card is open to one and closed to another: nothing was tried")
	}
}

// Who may write ResourceQuotas cannot fill the memory of what scrapes us.
func TestQuotaSeriesAreBounded(t *testing.T) {
	var w tenancy.World
	for i := range mostQuotaLines + 500 {
		w.Quotas = append(w.Quotas, tenancy.Quota{Namespace: "ns", Name: fmt.Sprintf("q%05d", i),
			Limits: []gpu.Limit{{Name: "requests.nvidia.com/gpu", Most: 1}}})
	}
	d := tenancy.New(w)
	c := newTenants(View{Ledger: ledger.New(d).Snapshot, Tenancy: func() *tenancy.Directory { return d }})
	if n := testutil.CollectAndCount(c, nameQuotaUsed); n != mostQuotaLines {
		t.Errorf("%d series, want %d", n, mostQuotaLines)
	}
}

// As long as nothing is known there are no tenants.
func TestNoTenantsBeforeTheyAreKnown(t *testing.T) {
	c := newTenants(View{Ledger: ledger.New((*tenancy.Directory)(nil)).Snapshot, Tenancy: func() *tenancy.Directory { return nil }})
	if n := testutil.CollectAndCount(c); n != 2 {
		t.Errorf("%d series, want those of divided cards and contested namespaces", n)
	}
}

// BenchmarkTenants is a scrape of 5,000 nodes with 60,000 slices of 1,000 Tenants.
func BenchmarkTenants(b *testing.B) {
	for _, groups := range []int{2, 100} {
		b.Run(fmt.Sprintf("groups-%d", groups), func(b *testing.B) {
			d, s := crowd(1, 1000, 5000, groups, 5000, 60000)
			c := newTenants(View{Ledger: func() ledger.Snapshot { return s }, Tenancy: func() *tenancy.Directory { return d }})
			out := make(chan prometheus.Metric, 100)
			go func() {
				for range out {
				}
			}()
			b.ReportAllocs()
			for b.Loop() {
				c.Collect(out)
			}
			close(out)
		})
	}
}
