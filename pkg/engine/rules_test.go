package engine

import (
	"maps"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// rules are a little town's. They are never edited: other rules are another value.
type rules struct {
	tenants map[string]gpu.TenantID // namespace -> its tenant; others are one of their own name
	groups  [][]gpu.TenantID        // who may share
	closed  []string                // namespaces
	limits  map[gpu.Account][]gpu.Limit
}

func (r rules) MayShare(a, b gpu.TenantID) bool {
	both := func(group []gpu.TenantID) bool { return slices.Contains(group, a) && slices.Contains(group, b) }
	return a != "" && b != "" && (a == b || slices.ContainsFunc(r.groups, both))
}

func (r rules) Owner(namespace string) (gpu.TenantID, gpu.Reason) {
	tenant, known := r.tenants[namespace]
	if !known {
		tenant = gpu.TenantID(namespace)
	}
	if slices.Contains(r.closed, namespace) {
		return tenant, gpu.TenantInactive
	}
	return tenant, ""
}

func (r rules) Boundary() ledger.Boundary { return r }

func (r rules) Equal(o ledger.Boundary) bool {
	return slices.EqualFunc(r.groups, o.(rules).groups, slices.Equal[[]gpu.TenantID])
}

func (r rules) Dedicated(label string) gpu.TenantID { return gpu.TenantID(label) }

func (r rules) Accounts(namespace string) (all []gpu.Account) {
	tenant, _ := r.Owner(namespace)
	for _, a := range []gpu.Account{gpu.TenantAccount(string(tenant)), gpu.NamespaceAccount(namespace)} {
		if r.limits[a] != nil {
			all = append(all, a)
		}
	}
	return all
}

func (r rules) Limits(a gpu.Account) []gpu.Limit { return r.limits[a] }

// limiting returns the rules with these limits for a tenant.
func (r rules) limiting(tenant string, limits ...gpu.Limit) rules {
	for i := range limits {
		limits[i].Quota = "Tenant " + tenant
	}
	next := maps.Clone(r.limits)
	if next == nil {
		next = map[gpu.Account][]gpu.Limit{}
	}
	next[gpu.TenantAccount(tenant)] = limits
	r.limits = next
	return r
}

// The lines of a Tenant's quota.
func cardLimit(most int64) gpu.Limit {
	return gpu.Limit{Name: "cards", Measure: gpu.Devices, Most: most}
}

func memoryLimit(most int64) gpu.Limit {
	return gpu.Limit{Name: "memoryMiB", Measure: gpu.Memory, Most: most}
}

func coreLimit(most int64) gpu.Limit {
	return gpu.Limit{Name: "cores", Measure: gpu.Compute, Most: most}
}

// limited is a cluster whose one namespace has these limits.
func limited(limits []gpu.Limit, perNode ...int) cluster {
	c := newCluster(perNode...)
	c.ledger.Govern(rules{}.limiting("ns", limits...))
	return c
}
