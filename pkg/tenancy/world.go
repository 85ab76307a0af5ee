package tenancy

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// World is what administrators have written, as it was read. Names are unique in
// each list. It is never edited once rules are made of it.
type World struct {
	Tenants    []Tenant
	Namespaces []Namespace
	Quotas     []Quota
}

// Equal reports whether the same is written in both, in the same order.
func (w World) Equal(other World) bool {
	return slices.EqualFunc(w.Tenants, other.Tenants, Tenant.equal) &&
		slices.EqualFunc(w.Namespaces, other.Namespaces, Namespace.equal) &&
		slices.EqualFunc(w.Quotas, other.Quotas, Quota.equal)
}

func (t Tenant) equal(o Tenant) bool {
	return t.Name == o.Name && t.Inactive == o.Inactive && t.MaxPriority == o.MaxPriority &&
		slices.Equal(t.Groups, o.Groups) && slices.Equal(t.Limits, o.Limits)
}

func (n Namespace) equal(o Namespace) bool {
	return n.Name == o.Name && n.Torn == o.Torn && slices.Equal(n.Claims, o.Claims)
}

func (q Quota) equal(o Quota) bool {
	return q.Namespace == o.Namespace && q.Name == o.Name && slices.Equal(q.Limits, o.Limits)
}

// Tenant is the owner of some namespaces.
type Tenant struct {
	Name string
	// Inactive keeps new pods of the tenant from getting cards.
	Inactive bool
	// Groups are the sharing groups: two tenants with one in common may share cards.
	Groups []string
	// MaxPriority is the highest priority that its pods may ask for. 0 to 100.
	MaxPriority int
	// Limits bound what the pods of all its namespaces hold together.
	Limits []gpu.Limit
}

// Namespace is one that exists.
type Namespace struct {
	Name string
	// Claims names the tenants that claim it, in any order and each as often as it
	// does. They need not exist.
	Claims []string
	// Torn says that there are pods of several namespaces of this name, made one after
	// the other and claimed by others: of no pod is known whose it is.
	Torn bool
}

// Quota is one of a namespace's own.
type Quota struct {
	Namespace, Name string
	Limits          []gpu.Limit // none: nothing of it is about cards
}

// MostPriority is the cap of who has none.
const MostPriority = 100
