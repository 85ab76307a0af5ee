package tenancy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Only the Tenants' names and groups make a boundary: whatever else is written, it
// is equal.
func TestBoundaryEqual(t *testing.T) {
	tests := map[string]struct {
		change func(*World)
		other  bool
	}{
		"nothing":                   {change: func(*World) {}},
		"a namespace more":          {change: func(w *World) { w.Namespaces = append(w.Namespaces, Namespace{Name: "new", Claims: []string{"red"}}) }},
		"a namespace less":          {change: func(w *World) { w.Namespaces = w.Namespaces[1:] }},
		"other claims":              {change: func(w *World) { w.Namespaces[0].Claims = []string{"red"} }},
		"a tenant that is inactive": {change: func(w *World) { w.Tenants[0].Inactive = true }},
		"another cap":               {change: func(w *World) { w.Tenants[0].MaxPriority = 1 }},
		"other limits":              {change: func(w *World) { w.Tenants[0].Limits, w.Quotas = nil, nil }},
		"another order":             {change: func(w *World) { slices.Reverse(w.Tenants) }},
		"a tenant more":             {change: func(w *World) { w.Tenants = append(w.Tenants, Tenant{Name: "new"}) }, other: true},
		"a tenant less":             {change: func(w *World) { w.Tenants = w.Tenants[:4] }, other: true},
		"a tenant renamed":          {change: func(w *World) { w.Tenants[3].Name = "gray" }, other: true},
		"a group more":              {change: func(w *World) { w.Tenants[3].Groups = []string{"warm"} }, other: true},
		"a group less":              {change: func(w *World) { w.Tenants[2].Groups = nil }, other: true},
		"another group":             {change: func(w *World) { w.Tenants[2].Groups = []string{"cold"} }, other: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := town()
			tc.change(&w)
			a, b := New(town()).Boundary(), New(w).Boundary()
			if a.Equal(b) == tc.other || b.Equal(a) == tc.other {
				t.Errorf("equal: %t and %t", a.Equal(b), b.Equal(a))
			}
		})
	}
}

// Boundaries of other kinds, and of nothing, are others.
func TestBoundaryEqualToItsLikeAlone(t *testing.T) {
	all := map[string]ledger.Boundary{
		"of nobody": (*Directory)(nil).Boundary(), "of an empty world": New(World{}).Boundary(), "separate": Separate{}.Boundary(), "of a town": New(town()).Boundary(),
	}
	for a := range all {
		for b := range all {
			if got := all[a].Equal(all[b]); got != (a == b) {
				t.Errorf("%s is equal to %s: %t", a, b, got)
			}
		}
	}
}

// What is equal answers everything alike.
func TestEqualBoundariesAnswerAlike(t *testing.T) {
	ids := []gpu.TenantID{"", "namespace/a"}
	for _, name := range tenantNames {
		ids = append(ids, gpu.TenantID(name))
	}
	equal := 0
	rapid.Check(t, func(rt *rapid.T) {
		w := worlds.Draw(rt, "world")
		other := World{Tenants: slices.Clone(w.Tenants)}
		for i := range other.Tenants {
			if rapid.IntRange(0, 4).Draw(rt, "changes") == 0 {
				other.Tenants[i].Groups = rapid.SliceOfN(rapid.SampledFrom([]string{"g", "h", "i"}), 0, 2).Draw(rt, "groups")
			}
		}
		a, b := New(w).Boundary(), New(other).Boundary()
		if !a.Equal(b) {
			return
		}
		equal++
		for _, x := range ids {
			if a.Dedicated(string(x)) != b.Dedicated(string(x)) {
				rt.Fatalf("a node is for %q or %q", a.Dedicated(string(x)), b.Dedicated(string(x)))
			}
			for _, y := range ids {
				if a.MayShare(x, y) != b.MayShare(x, y) {
					rt.Fatalf("%q and %q share by one of them", x, y)
				}
			}
		}
	})
	if equal == 0 {
		t.Error("no two were equal")
	}
}
