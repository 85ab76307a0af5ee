package metrics

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// measure names what a tenant's quota counts, with its unit.
type measure string

const (
	measureCards  measure = "cards"
	measureMemory measure = "memory_mib"
	measureCores  measure = "cores_percent"
)

func measures() []measure { return []measure{measureCards, measureMemory, measureCores} }

// nameOf returns the measure's name; "" for one that Tenants have no quota of.
func nameOf(m gpu.Measure) measure {
	switch m {
	case gpu.Devices:
		return measureCards
	case gpu.Memory:
		return measureMemory
	case gpu.Compute:
		return measureCores
	}
	return ""
}

// mostQuotaLines bounds the series of ResourceQuotas: who may write into a namespace
// may make as many of those as he likes. Tenants are made by administrators only.
const mostQuotaLines = 10000

// tenants reads who holds how much, and who is kept from which cards, when it is
// scraped. What has gone has no series any more.
type tenants struct {
	ledger                                            func() ledger.Snapshot
	read                                              func() *tenancy.Directory
	used, limit, closed, divided, contested, of, most *prometheus.Desc
}

func newTenants(v View) *tenants {
	return &tenants{
		ledger: v.Ledger, read: v.Tenancy, used: desc(nameTenantUsed), limit: desc(nameTenantLimit), closed: desc(nameTenantClosed),
		divided: desc(nameDivided), contested: desc(nameContested), of: desc(nameQuotaUsed), most: desc(nameQuotaLimit),
	}
}

// Describe implements prometheus.Collector.
func (t *tenants) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{t.used, t.limit, t.closed, t.divided, t.contested, t.of, t.most} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (t *tenants) Collect(out chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, value int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	s, d := t.ledger(), t.read()
	c := census(s)
	closed := c.closedTo(d)
	for i, tenant := range d.Tenants() {
		spent := s.Spent(gpu.TenantAccount(tenant.Name))
		for _, m := range []gpu.Measure{gpu.Devices, gpu.Memory, gpu.Compute} {
			send(t.used, spent.Sum(m), tenant.Name, string(nameOf(m)))
		}
		for _, l := range tenant.Limits {
			send(t.limit, l.Most, tenant.Name, string(nameOf(l.Measure)))
		}
		send(t.closed, closed[i], tenant.Name)
	}
	send(t.divided, c.divided)
	send(t.contested, int64(len(d.Contested())))
	lines := 0
	for _, q := range d.Quotas() {
		spent := s.Spent(gpu.NamespaceAccount(q.Namespace))
		if lines += len(q.Limits); lines > mostQuotaLines {
			return
		}
		for i := range q.Limits {
			l := &q.Limits[i]
			send(t.of, l.Of(spent), q.Namespace, q.Name, l.Name)
			send(t.most, l.Most, q.Namespace, q.Name, l.Name)
		}
	}
}

// company is the cards with room on which the same tenants are.
type company struct {
	tenants []gpu.TenantID // in order, each once
	cards   int64
}

// cardCensus is who is with whom on cards. Of a large cluster's cards many have the
// same company, mostly one tenant: what is asked about each is asked once.
type cardCensus struct {
	companies map[string]*company // by all names
	cards     int64               // of all companies
	divided   int64               // cards on which two are that may not be together
}

func census(s ledger.Snapshot) cardCensus {
	c := cardCensus{companies: map[string]*company{}}
	var on []gpu.TenantID
	for _, n := range s.Nodes() {
		for i := range n.Cards {
			card := &n.Cards[i]
			if card.Divided {
				c.divided++
			}
			if len(card.Holders) > 0 && hasRoom(card) {
				on = on[:0]
				for j := range card.Holders {
					on = append(on, card.Holders[j].Tenant)
				}
				c.enter(on)
			}
		}
	}
	return c
}

// hasRoom reports whether a slice could come onto the card, if only its tenant
// might.
func hasRoom(c *ledger.Card) bool {
	return c.Healthy && !c.Cordoned && c.FreeSlots() > 0 && c.FreeMemory() > 0
}

// enter counts a card with these on it. on is used as it likes.
func (c *cardCensus) enter(on []gpu.TenantID) {
	c.cards++
	slices.Sort(on)
	on = slices.Compact(on)
	key := string(on[0])
	if len(on) > 1 {
		var all strings.Builder
		for _, t := range on {
			all.WriteString(string(t))
			all.WriteByte(' ') // in no name
		}
		key = all.String()
	}
	of := c.companies[key]
	if of == nil {
		of = &company{tenants: slices.Clone(on)}
		c.companies[key] = of
	}
	of.cards++
}

// closedTo returns for each Tenant, in their order, on how many cards with room are
// others that it may not share with. Only who has a sharing group in common with
// the first of a company can be open to it, so that the others are not asked about.
func (c *cardCensus) closedTo(d *tenancy.Directory) []int64 {
	all := d.Tenants()
	members := map[string][]int{} // sharing group -> places in all
	for i := range all {
		for _, group := range all[i].Groups {
			members[group] = append(members[group], i)
		}
	}
	closed, seen := make([]int64, len(all)), make([]int, len(all))
	for i := range closed {
		closed[i], seen[i] = c.cards, -1
	}
	turn := 0
	for _, of := range c.companies {
		at, known := slices.BinarySearchFunc(all, of.tenants[0], func(t tenancy.Tenant, id gpu.TenantID) int { return cmp.Compare(t.Name, string(id)) })
		if !known {
			continue // of a namespace of its own, or of nobody: closed to every Tenant
		}
		turn++
		for i := range likely(at, all[at].Groups, members) {
			if seen[i] != turn && of.open(gpu.TenantID(all[i].Name), d) {
				closed[i] -= of.cards
			}
			seen[i] = turn
		}
	}
	return closed
}

// likely yields the place of a Tenant, and those of who has a sharing group in
// common with it, as often as they have.
func likely(at int, groups []string, members map[string][]int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if !yield(at) {
			return
		}
		for _, group := range groups {
			for _, i := range members[group] {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// open reports whether the tenant may share a card with all of them.
func (c *company) open(t gpu.TenantID, d *tenancy.Directory) bool {
	return !slices.ContainsFunc(c.tenants, func(other gpu.TenantID) bool { return !d.Boundary().MayShare(t, other) })
}

// The names.
const (
	nameTenantUsed   = "heteroflow_tenant_used"
	nameTenantLimit  = "heteroflow_tenant_limit"
	nameTenantClosed = "heteroflow_tenant_closed_cards"
	nameDivided      = "heteroflow_divided_cards"
	nameContested    = "heteroflow_contested_namespaces"
	nameQuotaUsed    = "heteroflow_resourcequota_used"
	nameQuotaLimit   = "heteroflow_resourcequota_limit"
)

// tenantFamilies are those of this file.
func tenantFamilies() []Family {
	tenant := Label{Name: "tenant", About: "each Tenant"}
	kind := Label{Name: "measure", Values: texts(measures())}
	line := []Label{{Name: "namespace", About: "that of the ResourceQuota"}, {Name: "resourcequota", About: "its name"},
		{Name: "resource", About: "the line of spec.hard, as it is written"}}
	return []Family{
		{nameTenantUsed, Gauge, "What the pods of all namespaces of a Tenant hold: cards, of which a slice counts as one, their memory in MiB, and compute in percent of one card.",
			[]Label{tenant, kind}},
		{nameTenantLimit, Gauge, "What they may hold at most by spec.quota of the Tenant. There is no series of what has no limit.", []Label{tenant, kind}},
		{nameTenantClosed, Gauge, "Cards with room for a slice onto which none of the Tenant comes, for one is there of a tenant that it may not share with.", []Label{tenant}},
		{nameDivided, Gauge, "Cards held together by pods that may not share one any more, as after the end of a sharing group. They are closed to all others.", nil},
		{nameContested, Gauge, "Namespaces that more than one Tenant claims. Their pods share cards with nobody.", nil},
		{nameQuotaUsed, Gauge, "What the pods of a namespace hold of what a line of a ResourceQuota counts: cards, MiB, or percent of one card. Of more than 10,000 lines some have no series.", line},
		{nameQuotaLimit, Gauge, "What they may hold at most by that line, in the same unit.", line},
	}
}
