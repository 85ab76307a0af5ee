package soak

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// era is all that administrators have written, between two changes. It is never
// edited. What follows from it is worked out here once more, with no regard to
// how the scheduler does it.
type era struct {
	world  tenancy.World
	labels map[gpu.NodeID]string // node -> the tenant that it is kept for
	claims map[string][]string   // namespace -> the tenants that claim it, each once; of those that exist
}

func newEra(w tenancy.World, labels map[gpu.NodeID]string) *era {
	e := &era{world: w, labels: labels, claims: map[string][]string{}}
	for _, n := range w.Namespaces {
		e.claims[n.Name] = []string{}
		for _, c := range n.Claims {
			if !slices.Contains(e.claims[n.Name], c) {
				e.claims[n.Name] = append(e.claims[n.Name], c)
			}
		}
	}
	return e
}

func (e *era) tenant(name string) *tenancy.Tenant {
	for i := range e.world.Tenants {
		if e.world.Tenants[i].Name == name {
			return &e.world.Tenants[i]
		}
	}
	return nil
}

// owner is whose pods of the namespace are: the Tenant, or nil for a namespace of
// its own; known is false when that cannot be said.
func (e *era) owner(namespace string) (t *tenancy.Tenant, known bool) {
	claims, exists := e.claims[namespace]
	switch {
	case !exists || len(claims) > 1:
		return nil, false
	case len(claims) == 0:
		return nil, true
	}
	t = e.tenant(claims[0])
	return t, t != nil
}

// open reports whether new pods with cards may come from the namespace.
func (e *era) open(namespace string) bool {
	claims, exists := e.claims[namespace]
	for _, c := range claims {
		if t := e.tenant(c); t == nil || t.Inactive {
			return false
		}
	}
	return exists
}

// share reports whether pods of the two namespaces may be on one card.
func (e *era) share(a, b string) bool {
	ta, known := e.owner(a)
	tb, alsoKnown := e.owner(b)
	switch {
	case !known || !alsoKnown:
		return false
	case ta == nil || tb == nil:
		return a == b
	case ta == tb:
		return true
	}
	return slices.ContainsFunc(ta.Groups, func(g string) bool { return slices.Contains(tb.Groups, g) })
}

// lets reports whether pods of the namespace may come onto the node.
func (e *era) lets(namespace string, node gpu.NodeID) bool {
	label := e.labels[node]
	if label == "" {
		return true
	}
	t, known := e.owner(namespace)
	switch {
	case !known:
		return false
	case e.tenant(label) != nil:
		return t != nil && t.Name == label
	}
	return t == nil && namespace == label
}

// quota is something that has limits, and whose pods count.
type quota struct {
	name    string
	account gpu.Account
	limits  []gpu.Limit
	counts  func(namespace string) bool
}

// quotas lists those that the namespace's pods come under.
func (e *era) quotas(namespace string) (all []quota) {
	for _, c := range e.claims[namespace] {
		if t := e.tenant(c); t != nil {
			claimed := func(ns string) bool { return slices.Contains(e.claims[ns], c) }
			all = append(all, quota{"Tenant " + c, gpu.TenantAccount(c), t.Limits, claimed})
		}
	}
	for _, q := range e.world.Quotas {
		if q.Namespace == namespace {
			all = append(all, quota{"ResourceQuota " + q.Namespace + "/" + q.Name, gpu.NamespaceAccount(q.Namespace), q.Limits, func(ns string) bool { return ns == namespace }})
		}
	}
	return all
}
