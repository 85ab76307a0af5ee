package tenancy

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// worlds has few names, so that they meet.
var worlds = rapid.Custom(func(t *rapid.T) World {
	var w World
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(tenantNames), 0, 6, rapid.ID).Draw(t, "tenants") {
		tenant := Tenant{
			Name:        name,
			Inactive:    rapid.IntRange(0, 3).Draw(t, "inactive") == 0,
			Groups:      rapid.SliceOfN(rapid.SampledFrom([]string{"g", "h", "i"}), 0, 4).Draw(t, "groups"),
			MaxPriority: rapid.IntRange(0, MostPriority).Draw(t, "cap"),
		}
		if rapid.Bool().Draw(t, "limited") {
			tenant.Limits = cards("Tenant "+name, 1)
		}
		w.Tenants = append(w.Tenants, tenant)
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(namespaceNames), 0, 7, rapid.ID).Draw(t, "namespaces") {
		w.Namespaces = append(w.Namespaces, Namespace{
			Name: name, Claims: rapid.SliceOfN(rapid.SampledFrom(tenantNames), 0, 3).Draw(t, "claims"), Torn: rapid.IntRange(0, 4).Draw(t, "torn") == 0,
		})
	}
	for i, name := range rapid.SliceOfN(rapid.SampledFrom(namespaceNames), 0, 4).Draw(t, "quotas") {
		q := Quota{Namespace: name, Name: fmt.Sprint(i)}
		if rapid.Bool().Draw(t, "about cards") {
			q.Limits = cards(q.Name, 2)
		}
		w.Quotas = append(w.Quotas, q)
	}
	return w
})

var (
	tenantNames    = []string{"a", "b", "c", "d", "e", "f", "gone"}
	namespaceNames = []string{"a", "b", "m", "n", "o", "p", "q"}
)

// oracle answers by going through the whole world each time, on nothing that the
// directory is made of.
type oracle struct{ World }

// claimants returns who claims the namespace, each once; false if it is not there.
func (o oracle) claimants(namespace string) (all []string, seen bool) {
	for _, n := range o.Namespaces {
		if n.Name != namespace {
			continue
		}
		seen = true
		for _, name := range tenantNames {
			if slices.Contains(n.Claims, name) {
				all = append(all, name)
			}
		}
	}
	return all, seen
}

func (o oracle) find(name string) *Tenant {
	for i := range o.Tenants {
		if o.Tenants[i].Name == name {
			return &o.Tenants[i]
		}
	}
	return nil
}

// pods of namespaces x and y may be on one card.
func (o oracle) together(x, y string) bool {
	a, seenA := o.claimants(x)
	b, seenB := o.claimants(y)
	torn := func(n Namespace) bool { return n.Torn && (n.Name == x || n.Name == y) }
	switch {
	case slices.ContainsFunc(o.Namespaces, torn):
		return false
	case !seenA || !seenB || len(a) > 1 || len(b) > 1:
		return false
	case len(a) == 0 || len(b) == 0:
		return len(a) == len(b) && x == y
	}
	s, t := o.find(a[0]), o.find(b[0])
	if s == nil || t == nil {
		return false
	}
	return s == t || slices.ContainsFunc(s.Groups, func(g string) bool { return slices.Contains(t.Groups, g) })
}

func (o oracle) open(namespace string) bool {
	claimants, seen := o.claimants(namespace)
	for _, name := range claimants {
		t := o.find(name)
		seen = seen && t != nil && !t.Inactive
	}
	return seen
}

// limits counts those that bind pods of the namespace.
func (o oracle) limits(namespace string) (n int) {
	claimants, seen := o.claimants(namespace)
	for _, name := range claimants {
		if t := o.find(name); t != nil {
			n += len(t.Limits)
		}
	}
	for _, q := range o.Quotas {
		if seen && q.Namespace == namespace {
			n += len(q.Limits)
		}
	}
	return n
}

// Whatever is written, the directory decides as somebody would who reads all of it
// anew for each question.
func TestDirectoryAgainstOracle(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := worlds.Draw(rt, "world")
		d, o := New(w), oracle{w}
		for _, x := range namespaceNames {
			mine, closed := d.Owner(x)
			if (closed == "") != o.open(x) {
				rt.Fatalf("%s is closed for %q", x, closed)
			}
			n := 0
			for _, account := range d.Accounts(x) {
				n += len(d.Limits(account))
			}
			if want := o.limits(x); n != want {
				rt.Fatalf("%s has %d limits, want %d", x, n, want)
			}
			for _, y := range namespaceNames {
				theirs, _ := d.Owner(y)
				if got, want := d.Boundary().MayShare(mine, theirs), o.together(x, y); got != want {
					rt.Fatalf("%s (%q) beside %s (%q): %v", x, mine, y, theirs, got)
				}
			}
		}
	})
}

// Between IDs, too, which holds may still have whose Tenant is gone: sharing is the
// same in both directions, and everybody known shares with himself.
func TestSharingIsSymmetricAndReflexive(t *testing.T) {
	ids := []gpu.TenantID{"", "namespace/a"}
	for _, name := range tenantNames {
		ids = append(ids, gpu.TenantID(name))
	}
	rapid.Check(t, func(rt *rapid.T) {
		d := New(worlds.Draw(rt, "world"))
		for _, a := range ids {
			if d.Boundary().MayShare(a, a) != (a != "") {
				rt.Fatalf("%q with itself: %v", a, d.Boundary().MayShare(a, a))
			}
			for _, b := range ids {
				if d.Boundary().MayShare(a, b) != d.Boundary().MayShare(b, a) {
					rt.Fatalf("%q and %q share in one direction", a, b)
				}
			}
		}
	})
}

// The order in which things are read does not matter.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := worlds.Draw(rt, "world")
		other := World{
			Tenants:    rapid.Permutation(w.Tenants).Draw(rt, "tenants"),
			Namespaces: rapid.Permutation(w.Namespaces).Draw(rt, "namespaces"),
			Quotas:     rapid.Permutation(w.Quotas).Draw(rt, "quotas"),
		}
		if !New(w).world.Equal(New(other).world) {
			rt.Fatal("the same world makes other rules")
		}
	})
}
