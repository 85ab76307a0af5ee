package tenant

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// findings is what there is to say of all tenants at one moment.
type findings struct {
	divisions []division
	beside    map[string][]string // Tenant -> cards on which its pods are beside whom they may not be
	contested map[string][]string // Tenant -> namespaces that others claim as well, each with who does
}

// division is a card that is shared across a boundary.
type division struct {
	node gpu.NodeID
	card gpu.CardID
	pods []string // those who may not be together, each with its tenant
}

// find looks at all cards and namespaces.
func find(s ledger.Snapshot, d *tenancy.Directory) findings {
	f := findings{beside: map[string][]string{}, contested: map[string][]string{}}
	for _, n := range s.Nodes() {
		for i := range n.Cards {
			if n.Cards[i].Divided {
				f.divide(n, &n.Cards[i])
			}
		}
	}
	for _, ns := range d.Contested() {
		for _, tenant := range ns.Claims {
			others := slices.DeleteFunc(slices.Clone(ns.Claims), func(other string) bool { return other == tenant })
			f.contested[tenant] = append(f.contested[tenant], fmt.Sprintf("%s (also of %s)", ns.Name, some(others)))
		}
	}
	return f
}

// divide adds the card, and for each Tenant that it is one of its.
func (f *findings) divide(n *ledger.Node, c *ledger.Card) {
	div := division{node: n.ID, card: c.ID}
	tenants := map[gpu.TenantID]struct{}{}
	for i := range c.Holders {
		h := &c.Holders[i]
		if strangers := func(o ledger.Holder) bool { return o.Pod != h.Pod && !n.Boundary.MayShare(h.Tenant, o.Tenant) }; !slices.ContainsFunc(c.Holders, strangers) {
			continue
		}
		pod := n.Hold(h.Pod)
		div.pods = append(div.pods, fmt.Sprintf("%s/%s (%s)", pod.Namespace, pod.Name, tenantName(h.Tenant)))
		tenants[h.Tenant] = struct{}{}
	}
	f.divisions = append(f.divisions, div)
	for tenant := range tenants {
		f.beside[string(tenant)] = append(f.beside[string(tenant)], fmt.Sprintf("%s of node %s", c.ID, n.ID))
	}
}

func tenantName(t gpu.TenantID) string {
	if t == "" {
		return "of no tenant"
	}
	return "tenant " + string(t)
}

// String says what is the case, what follows, and what can be done.
func (d *division) String() string {
	return fmt.Sprintf("card %s is held together by pods that may not share one: %s. They keep it, and nobody else gets onto it. "+
		"End all but one side, or give the tenants a sharing group in common", d.card, some(d.pods))
}

// mostNamed bounds how many of a kind a text names.
const mostNamed = 8

// some names the first, and says how many there are besides.
func some(names []string) string {
	if len(names) > mostNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
	}
	return strings.Join(names, ", ")
}

// excesses says of which limits the account is past, each with its figures.
func excesses(limits []gpu.Limit, spent gpu.Spending) (over []string) {
	for i := range limits {
		if used := limits[i].Of(spent); used > limits[i].Most {
			over = append(over, fmt.Sprintf("%s: %d held, %d allowed", limits[i].Name, used, limits[i].Most))
		}
	}
	return over
}

// owned counts the namespaces that belong to the Tenant, and to nobody else.
func owned(d *tenancy.Directory, tenant string) (n int) {
	for _, namespace := range d.Claimed(tenant) {
		if owner, _ := d.Owner(namespace); owner == gpu.TenantID(tenant) {
			n++
		}
	}
	return n
}

// inOrder yields the keys from the one behind last on, and then those up to it, so
// that of more than one round can do each has its turn.
func inOrder[V any](m map[string]V, last string) []string {
	keys := slices.Sorted(maps.Keys(m))
	i, found := slices.BinarySearch(keys, last)
	if found {
		i++
	}
	return slices.Concat(keys[i:], keys[:i])
}
