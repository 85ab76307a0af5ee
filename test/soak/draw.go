package soak

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// The world of a run: pods ask for more than there is, in space and in quotas, and
// there are few cards, so that every rule is met all the time.
const (
	machines   = 8
	each       = 4
	tenants    = 6
	namespaces = 14
	together   = 150 // pods that are there at once
)

func nodeName(i int) gpu.NodeID             { return gpu.NodeID(fmt.Sprintf("node-%d", i)) }
func tenantName(i int) string               { return fmt.Sprintf("tenant-%d", i) }
func namespaceName(i int) string            { return fmt.Sprintf("ns-%d", i) }
func pick[T any](rnd *rand.Rand, of ...T) T { return of[rnd.IntN(len(of))] }

// facts is a machine; the last ones have cards of another vendor.
func facts(i int, label string, boot int) ledger.Facts {
	f := ledger.Facts{ID: nodeName(i), CPU: 64000, Memory: 1 << 40, BootID: fmt.Sprint(boot), Dedicated: label}
	vendor := gpu.Nvidia
	if i >= machines-2 {
		vendor = gpu.Ascend
	}
	for j := range each {
		f.Cards = append(f.Cards, gpu.Card{
			ID: gpu.CardID(fmt.Sprintf("%s-card-%d", f.ID, j)), Index: j, Vendor: vendor, Model: "A100", Memory: 1000, Usable: 900,
			Cores: 100, UsableCores: 100, MaxSlices: 4, NUMA: gpu.NoNUMA, Healthy: true, Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft,
		})
	}
	return f
}

// firstEra has two groups that overlap: tenant-1 shares with tenant-0 and with
// tenant-2, and these two do not share with one another. tenant-4 has a quota, and
// tenant-5 is not active.
func firstEra() *era {
	var w tenancy.World
	for i := range tenants {
		w.Tenants = append(w.Tenants, tenancy.Tenant{Name: tenantName(i), MaxPriority: tenancy.MostPriority})
	}
	w.Tenants[0].Groups = []string{"g"}
	w.Tenants[1].Groups = []string{"g", "h"}
	w.Tenants[2].Groups = []string{"h"}
	w.Tenants[4].Limits = []gpu.Limit{{Quota: "Tenant tenant-4", Name: "cards", Measure: gpu.Devices, Most: 6}}
	w.Tenants[5].Inactive = true
	for i := range namespaces {
		n := tenancy.Namespace{Name: namespaceName(i)}
		if i < 2*tenants {
			n.Claims = []string{tenantName(i % tenants)}
		}
		w.Namespaces = append(w.Namespaces, n)
	}
	return newEra(w, map[gpu.NodeID]string{})
}

// change is the era with one thing written otherwise.
func (e *era) change(rnd *rand.Rand) *era {
	w := e.world
	switch i := rnd.IntN(tenants); rnd.IntN(6) {
	case 0:
		w.Tenants = replace(w.Tenants, tenantOf, drawTenant(rnd, i))
	case 1: // deleted, as long as nobody writes it anew
		gone := func(t tenancy.Tenant) bool { return t.Name == tenantName(i) }
		w.Tenants = slices.DeleteFunc(slices.Clone(w.Tenants), gone)
		if rnd.IntN(8) > 0 {
			w.Tenants = append(w.Tenants, drawTenant(rnd, i))
		}
	case 2, 3:
		w.Namespaces = replace(w.Namespaces, namespaceOf, drawNamespace(rnd))
	default:
		w.Quotas = replace(w.Quotas, quotaOf, drawQuota(rnd))
	}
	return newEra(w, e.labels)
}

// relabel is the era with another node kept for somebody, or for nobody any more.
func (e *era) relabel(node gpu.NodeID, label string) *era {
	labels := maps.Clone(e.labels)
	labels[node] = label
	return newEra(e.world, labels)
}

func tenantOf(t tenancy.Tenant) string       { return t.Name }
func namespaceOf(n tenancy.Namespace) string { return n.Name }
func quotaOf(q tenancy.Quota) string         { return q.Namespace + "/" + q.Name }

// replace is the list with x in the place of its like, or at the end.
func replace[T any](all []T, name func(T) string, x T) []T {
	next := slices.Clone(all)
	for i := range next {
		if name(next[i]) == name(x) {
			next[i] = x
			return next
		}
	}
	return append(next, x)
}

func drawTenant(rnd *rand.Rand, i int) tenancy.Tenant {
	t := tenancy.Tenant{Name: tenantName(i), MaxPriority: tenancy.MostPriority, Inactive: rnd.IntN(16) == 0}
	for _, g := range []string{"g", "h", "i"} {
		if rnd.IntN(3) == 0 {
			t.Groups = append(t.Groups, g)
		}
	}
	if rnd.IntN(3) > 0 {
		t.Limits = drawLimits(rnd, "Tenant "+t.Name, 3)
	}
	return t
}

func drawNamespace(rnd *rand.Rand) tenancy.Namespace {
	n := tenancy.Namespace{Name: namespaceName(rnd.IntN(namespaces))}
	for range pick(rnd, 0, 1, 1, 1, 1, 1, 2) {
		n.Claims = append(n.Claims, tenantName(rnd.IntN(tenants)))
	}
	return n
}

func drawQuota(rnd *rand.Rand) tenancy.Quota {
	q := tenancy.Quota{Namespace: namespaceName(rnd.IntN(namespaces)), Name: pick(rnd, "a", "a", "b")}
	if rnd.IntN(2) == 0 {
		q.Limits = drawLimits(rnd, "ResourceQuota "+q.Namespace+"/"+q.Name, 2)
	}
	return q
}

func drawLimits(rnd *rand.Rand, quota string, scale int64) (all []gpu.Limit) {
	for range 1 + rnd.IntN(3) {
		l := gpu.Limit{Quota: quota, Measure: gpu.Measure(rnd.IntN(4)), Vendor: pick(rnd, "", "", gpu.Nvidia, gpu.Ascend)}
		if l.Vendor == gpu.Nvidia {
			l.Resource = pick(rnd, "", resources[1])
		}
		l.Name = fmt.Sprintf("measure-%d", l.Measure)
		l.Most = scale * pick(rnd, map[gpu.Measure][]int64{
			gpu.Devices: {0, 2, 4, 6}, gpu.WholeCards: {0, 1, 2}, gpu.Memory: {900, 1500, 3000}, gpu.Compute: {100, 200, 400},
		}[l.Measure]...)
		all = append(all, l)
	}
	return all
}

// drawRequest is a pod; one in twenty asks for no card.
func drawRequest(rnd *rand.Rand, name string) gpu.Request {
	r := gpu.Request{
		Pod: gpu.PodID("uid-" + name), Namespace: namespaceName(rnd.IntN(namespaces)), Name: name, NUMA: gpu.NoNUMA, CPU: 100,
		Memory: 1 << 20, Priority: int32(rnd.IntN(3)),
	}
	if rnd.IntN(20) == 0 {
		return r
	}
	for i := range pick(rnd, 1, 1, 1, 1, 2, 3) {
		a := drawAsk(rnd)
		a.Container, a.Number = fmt.Sprintf("c%d", i), i
		if i > 0 {
			a.Role = pick(rnd, gpu.App, gpu.App, gpu.Sidecar, gpu.Init)
		}
		r.Asks = append(r.Asks, a)
	}
	return r
}

func drawAsk(rnd *rand.Rand) gpu.Ask {
	a := gpu.Ask{Count: pick(rnd, 1, 1, 1, 1, 2), Vendor: pick(rnd, "", "", gpu.Nvidia, gpu.Ascend), ProportionalCores: rnd.IntN(2) == 0}
	if a.Vendor == gpu.Nvidia && rnd.IntN(2) == 0 {
		a.Plugin = resources[1]
	}
	switch rnd.IntN(6) {
	case 0:
		a.Whole = true
	case 1:
		a.MemoryPercent = pick(rnd, 25, 50)
	case 2:
		a.Cores = pick[gpu.Cores](rnd, 20, 50)
	default:
		a.Memory, a.Cores = pick[gpu.MiB](rnd, 100, 225, 300, 450, 900), pick[gpu.Cores](rnd, 0, 0, 10, 25)
	}
	return a
}

// drawForced is a pod that somebody else binds: to cards that nobody can name, or
// as a scheduler before this one has, to any.
func drawForced(rnd *rand.Rand, r *gpu.Request) gpu.Placement {
	i := rnd.IntN(machines)
	p := gpu.Placement{Pod: r.Pod, Namespace: r.Namespace, Name: r.Name, Node: nodeName(i), CPU: r.CPU, Memory: r.Memory}
	c := facts(i, "", 0).Cards[rnd.IntN(each)]
	if rnd.IntN(2) == 0 {
		p.Foreign = []gpu.Foreign{{Vendor: c.Vendor, Cards: 1}}
		return p
	}
	p.Grants = []gpu.Grant{{Container: "c0", Shares: []gpu.Share{{Card: c.ID, Vendor: c.Vendor, Index: c.Index, Memory: 300, Cores: 10}}}}
	return p
}

// drawPlacement gives the pod cards that may not be there for it.
func drawPlacement(rnd *rand.Rand, r *gpu.Request) gpu.Placement {
	i := rnd.IntN(machines)
	p := gpu.Placement{Pod: r.Pod, Namespace: r.Namespace, Name: r.Name, Node: nodeName(i), CPU: r.CPU, Memory: r.Memory}
	cards := facts(i, "", 0).Cards
	for _, a := range r.Asks {
		g := gpu.Grant{Container: a.Container, Number: a.Number, Role: a.Role, Resource: a.Plugin}
		for _, j := range rnd.Perm(each)[:a.Count] {
			c := &cards[j]
			u := a.On(c)
			g.Shares = append(g.Shares, gpu.Share{Card: c.ID, Vendor: c.Vendor, Index: c.Index, Memory: u.Memory, Cores: u.Cores, Exclusive: u.Exclusive})
		}
		p.Grants = append(p.Grants, g)
	}
	return p
}
