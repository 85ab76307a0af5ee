package tenancy

import (
	"maps"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// boundary is who may share cards, and what a node's label means: what follows from
// the Tenants' names and groups alone. By a nil one nobody shares.
type boundary struct {
	groups map[gpu.TenantID][]int  // Tenant with groups -> their numbers, sorted
	names  map[string]gpu.TenantID // Tenant -> its ID
}

var _ ledger.Boundary = (*boundary)(nil)

// newBoundary makes that of the Tenants, which are sorted by name: groups are
// numbered as they come, so that what is written alike has the same numbers.
func newBoundary(tenants []Tenant) *boundary {
	b := &boundary{groups: map[gpu.TenantID][]int{}, names: make(map[string]gpu.TenantID, len(tenants))}
	numbers := map[string]int{} // group -> its number
	for i := range tenants {
		t := &tenants[i]
		id := gpu.TenantID(t.Name)
		b.names[t.Name] = id
		for _, group := range t.Groups {
			n, ok := numbers[group]
			if !ok {
				n = len(numbers)
				numbers[group] = n
			}
			b.groups[id] = append(b.groups[id], n)
		}
		slices.Sort(b.groups[id])
	}
	return b
}

// MayShare reports whether pods of x and y may be on one card: they are of one
// tenant, or of two with a group in common. That each of them may share with a
// third says nothing about the two. A pod whose tenant is not known shares with
// nobody.
func (b *boundary) MayShare(x, y gpu.TenantID) bool {
	switch {
	case b == nil || x == "" || y == "":
		return false
	case x == y:
		return true
	}
	return meet(b.groups[x], b.groups[y])
}

// meet reports whether two sorted lists have a number in common.
func meet(a, b []int) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == b[0]:
			return true
		case a[0] < b[0]:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return false
}

// Dedicated returns the tenant that a node with the label is for: the Tenant of
// that name, else the namespace.
func (b *boundary) Dedicated(label string) gpu.TenantID {
	if b == nil || label == "" {
		return ""
	}
	if id, ok := b.names[label]; ok {
		return id
	}
	return ownTenant(label)
}

// Equal reports whether the same Tenants are in the same groups by both.
func (b *boundary) Equal(other ledger.Boundary) bool {
	o, ok := other.(*boundary)
	if !ok || b == nil || o == nil {
		return ok && b == o
	}
	return maps.Equal(b.names, o.names) && maps.EqualFunc(b.groups, o.groups, slices.Equal[[]int])
}
