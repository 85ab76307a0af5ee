package tenancy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
)

func cards(whose string, most int64) []gpu.Limit {
	return []gpu.Limit{{Quota: whose, Name: "cards", Most: most}}
}

// town has tenants of each kind, and namespaces claimed in each way.
func town() World {
	return World{
		Tenants: []Tenant{
			{Name: "red", Groups: []string{"warm", "all"}, MaxPriority: 70, Limits: cards("Tenant red", 8)},
			{Name: "blue", Groups: []string{"cold", "all"}, MaxPriority: MostPriority},
			{Name: "gold", Groups: []string{"warm"}, MaxPriority: 30, Limits: cards("Tenant gold", 2)},
			{Name: "grey", MaxPriority: MostPriority},
			{Name: "idle", Inactive: true, Groups: []string{"warm"}, MaxPriority: MostPriority, Limits: cards("Tenant idle", 1)},
		},
		Namespaces: []Namespace{
			{Name: "alone"},
			{Name: "red-1", Claims: []string{"red"}},
			{Name: "red-2", Claims: []string{"red", "red"}},
			{Name: "blue-1", Claims: []string{"blue"}},
			{Name: "grey-1", Claims: []string{"grey"}},
			{Name: "idle-1", Claims: []string{"idle"}},
			{Name: "both", Claims: []string{"red", "gold", "red"}},
			{Name: "half-idle", Claims: []string{"idle", "red"}},
			{Name: "lost", Claims: []string{"deleted"}},
			{Name: "half-lost", Claims: []string{"red", "deleted"}},
			{Name: "blank", Claims: []string{""}},
			{Name: "torn", Claims: []string{"red"}, Torn: true},
			{Name: "torn-idle", Claims: []string{"idle"}, Torn: true},
			{Name: "torn-both", Claims: []string{"gold", "red"}, Torn: true},
			{Name: "red"}, // called like a Tenant, and of none
		},
		Quotas: []Quota{
			{Namespace: "red-1", Name: "z", Limits: cards("ResourceQuota red-1/z", 3)},
			{Namespace: "red-1", Name: "a", Limits: cards("ResourceQuota red-1/a", 4)},
			{Namespace: "alone", Name: "cpu"},
			{Namespace: "both", Name: "q", Limits: cards("ResourceQuota both/q", 5)},
			{Namespace: "unseen", Name: "q", Limits: cards("ResourceQuota unseen/q", 5)},
		},
	}
}

func TestNamespaces(t *testing.T) {
	type facts struct {
		Tenant   gpu.TenantID
		Closed   gpu.Reason
		Accounts []gpu.Account
		Priority int
		Known    bool
	}
	tests := map[string]facts{
		"alone":     {"namespace/alone", "", nil, 100, true},
		"red-1":     {"red", "", []gpu.Account{"tenant/red", "namespace/red-1"}, 70, true},
		"red-2":     {"red", "", []gpu.Account{"tenant/red"}, 70, true}, // claimed twice by one
		"torn":      {"", "", []gpu.Account{"tenant/red"}, 70, true},
		"torn-idle": {"", gpu.TenantInactive, []gpu.Account{"tenant/idle"}, 100, true},
		"torn-both": {"", "", []gpu.Account{"tenant/gold", "tenant/red"}, 30, true},
		"blue-1":    {"blue", "", []gpu.Account{"tenant/blue"}, 100, true},
		"idle-1":    {"idle", gpu.TenantInactive, []gpu.Account{"tenant/idle"}, 100, true},
		"both":      {"", "", []gpu.Account{"tenant/gold", "tenant/red", "namespace/both"}, 30, true},
		"half-idle": {"", gpu.TenantInactive, []gpu.Account{"tenant/idle", "tenant/red"}, 70, true},
		"lost":      {"", gpu.TenantInactive, nil, 100, true},
		"half-lost": {"", gpu.TenantInactive, []gpu.Account{"tenant/red"}, 70, true},
		"blank":     {"", gpu.TenantInactive, nil, 100, true},
		"red":       {"namespace/red", "", nil, 100, true},
		"unseen":    {"", gpu.TenantInactive, nil, 30, false}, // it may be gold's
		"":          {"", gpu.TenantInactive, nil, 30, false},
	}
	d := New(town())
	for namespace, want := range tests {
		t.Run(namespace, func(t *testing.T) {
			var got facts
			got.Tenant, got.Closed = d.Owner(namespace)
			got.Accounts = d.Accounts(namespace)
			got.Priority, got.Known = d.MaxPriority(namespace)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("namespace (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMayShare(t *testing.T) {
	tests := map[string]struct {
		a, b gpu.TenantID
		want bool
	}{
		"one tenant":                              {"grey", "grey", true},
		"a group in common":                       {"red", "blue", true},
		"another group in common":                 {"red", "gold", true},
		"both share with red, not with another":   {"blue", "gold", false},
		"no group":                                {"red", "grey", false},
		"neither has a group":                     {"grey", "namespace/alone", false},
		"inactive ones go on as they are":         {"red", "idle", true},
		"one that does not exist":                 {"red", "deleted", false},
		"two that do not exist":                   {"deleted", "gone", false},
		"a namespace of no Tenant with itself":    {"namespace/alone", "namespace/alone", true},
		"with another such":                       {"namespace/alone", "namespace/red", false},
		"a Tenant and a namespace of that name":   {"red", "namespace/red", false},
		"the unknown with a tenant":               {"", "red", false},
		"the unknown with the unknown":            {"", "", false},
		"a group's name is no tenant":             {"warm", "red", false},
		"of two long lists":                       {"many", "last", true},
		"of a long list and one beside all of it": {"many", "beside", false},
	}
	w := town()
	many := Tenant{Name: "many"}
	for c := 'a'; c < 'z'; c++ {
		many.Groups = append(many.Groups, "g-"+string(c))
	}
	w.Tenants = append(w.Tenants, many, Tenant{Name: "last", Groups: []string{"x", "g-y"}}, Tenant{Name: "beside", Groups: []string{"g-z", "w"}})
	d := New(w)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := d.Boundary().MayShare(tc.a, tc.b); got != tc.want {
				t.Errorf("MayShare(%q, %q) = %v", tc.a, tc.b, got)
			}
			if got := d.Boundary().MayShare(tc.b, tc.a); got != tc.want {
				t.Errorf("MayShare(%q, %q) = %v", tc.b, tc.a, got)
			}
		})
	}
}

// A namespace that two claim shares with nobody: not with either, nor with its own
// pods.
func TestContestedNamespacesShareWithNobody(t *testing.T) {
	d := New(town())
	for _, namespace := range []string{"both", "half-idle", "half-lost", "lost", "unseen", "torn", "torn-idle", "torn-both"} {
		mine, _ := d.Owner(namespace)
		for _, other := range []string{namespace, "red-1", "both", "alone"} {
			theirs, _ := d.Owner(other)
			if d.Boundary().MayShare(mine, theirs) {
				t.Errorf("%s shares with %s", namespace, other)
			}
		}
	}
}

func TestDedicated(t *testing.T) {
	d := New(town())
	for label, want := range map[string]gpu.TenantID{
		"red":     "red", // the Tenant before the namespace of that name
		"idle":    "idle",
		"alone":   "namespace/alone",
		"deleted": "namespace/deleted", // as nobody is
		"":        "",
	} {
		if got := d.Boundary().Dedicated(label); got != want {
			t.Errorf("Dedicated(%q) = %q, want %q", label, got, want)
		}
	}
}

func TestLimits(t *testing.T) {
	d := New(town())
	tests := map[gpu.Account][]gpu.Limit{
		"tenant/red":      cards("Tenant red", 8),
		"tenant/blue":     nil,
		"namespace/red-1": append(cards("ResourceQuota red-1/a", 4), cards("ResourceQuota red-1/z", 3)...),
		"namespace/alone": nil,
		"namespace/red":   nil,
		"tenant/deleted":  nil,
		"red":             nil,
		"":                nil,
	}
	for account, want := range tests {
		if diff := cmp.Diff(want, d.Limits(account)); diff != "" {
			t.Errorf("limits of %q (-want +got):\n%s", account, diff)
		}
	}
}

func TestLists(t *testing.T) {
	d := New(town())
	if diff := cmp.Diff([]string{"both", "half-idle", "half-lost", "red-1", "red-2", "torn", "torn-both"}, d.Claimed("red")); diff != "" {
		t.Errorf("claimed by red (-want +got):\n%s", diff)
	}
	if got := d.Claimed("nobody"); got != nil {
		t.Errorf("claimed by nobody: %v", got)
	}
	want := []Namespace{
		{Name: "both", Claims: []string{"gold", "red"}}, {Name: "half-idle", Claims: []string{"idle", "red"}}, {Name: "half-lost", Claims: []string{"deleted", "red"}},
	}
	if diff := cmp.Diff(want, d.Contested()); diff != "" {
		t.Errorf("contested (-want +got):\n%s", diff)
	}
	var names []string
	for _, tenant := range d.Tenants() {
		names = append(names, tenant.Name)
	}
	for _, q := range d.Quotas() {
		names = append(names, q.Namespace+"/"+q.Name)
	}
	if diff := cmp.Diff([]string{"blue", "gold", "grey", "idle", "red", "alone/cpu", "both/q", "red-1/a", "red-1/z", "unseen/q"}, names); diff != "" {
		t.Errorf("tenants and quotas (-want +got):\n%s", diff)
	}
}

// Before anything is known everything is closed.
func TestNothingKnown(t *testing.T) {
	for name, d := range map[string]*Directory{"nil": nil, "zero": {}, "of an empty world": New(World{})} {
		t.Run(name, func(t *testing.T) {
			if tenant, closed := d.Owner("a"); tenant != "" || closed != gpu.TenantInactive {
				t.Errorf("owner %q, %q", tenant, closed)
			}
			if d.Boundary().MayShare("a", "b") || d.Boundary().MayShare("", "") || len(d.Accounts("a"))+len(d.Limits("tenant/a"))+len(d.Contested())+len(d.Claimed("a"))+len(d.Tenants())+len(d.Quotas()) > 0 {
				t.Error("something is known")
			}
			if _, known := d.MaxPriority("a"); known || d.Boundary().Dedicated("") != "" {
				t.Error("the cap, or what no label says, is known")
			}
		})
	}
	if got := (*Directory)(nil).Boundary().Dedicated("a"); got != "" {
		t.Errorf("a node is dedicated to %q", got)
	}
}

// What the rules are made of stays as it is.
func TestNewLeavesTheWorldAlone(t *testing.T) {
	w := town()
	New(w)
	if diff := cmp.Diff(town(), w); diff != "" {
		t.Errorf("world (-before +after):\n%s", diff)
	}
}

func TestWorldEqual(t *testing.T) {
	changes := map[string]func(*World){
		"a tenant more":       func(w *World) { w.Tenants = append(w.Tenants, Tenant{Name: "new"}) },
		"another name":        func(w *World) { w.Tenants[0].Name = "x" },
		"not active":          func(w *World) { w.Tenants[0].Inactive = true },
		"a group less":        func(w *World) { w.Tenants[0].Groups = w.Tenants[0].Groups[:1] },
		"another cap":         func(w *World) { w.Tenants[0].MaxPriority = 1 },
		"another limit":       func(w *World) { w.Tenants[0].Limits = cards("Tenant red", 9) },
		"a namespace less":    func(w *World) { w.Namespaces = w.Namespaces[1:] },
		"a namespace renamed": func(w *World) { w.Namespaces[0].Name = "x" },
		"another claim":       func(w *World) { w.Namespaces[0].Claims = []string{"red"} },
		"a namespace torn":    func(w *World) { w.Namespaces[0].Torn = true },
		"a quota less":        func(w *World) { w.Quotas = w.Quotas[1:] },
		"a quota moved":       func(w *World) { w.Quotas[0].Namespace = "x" },
		"a quota renamed":     func(w *World) { w.Quotas[0].Name = "x" },
		"a quota raised":      func(w *World) { w.Quotas[0].Limits = cards("ResourceQuota red-1/z", 4) },
	}
	if !town().Equal(town()) {
		t.Error("the same world is not equal")
	}
	for name, change := range changes {
		w := town()
		change(&w)
		if w.Equal(town()) || town().Equal(w) {
			t.Errorf("%s: is equal", name)
		}
	}
}
