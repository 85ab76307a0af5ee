package codec

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

func tenantWith(name string, spec v1alpha1.TenantSpec) *v1alpha1.Tenant {
	return &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

// selecting claims by labels.
func selecting(s metav1.LabelSelector) v1alpha1.TenantSpec {
	return v1alpha1.TenantSpec{Namespaces: v1alpha1.TenantNamespaces{Selector: &s}}
}

func amount(limit int64) *v1alpha1.TenantAmount { return &v1alpha1.TenantAmount{Limit: &limit} }

func TestTenant(t *testing.T) {
	blue := func(change func(*tenancy.Tenant)) tenancy.Tenant {
		read := tenancy.Tenant{Name: "blue", MaxPriority: 100}
		change(&read)
		return read
	}
	most := func(name string, m gpu.Measure, n int64) gpu.Limit {
		return gpu.Limit{Quota: "Tenant blue", Name: name, Measure: m, Most: n}
	}
	guaranteed := v1alpha1.TenantAmount{Guaranteed: new(int64)}
	tests := map[string]struct {
		spec   v1alpha1.TenantSpec
		want   func(*tenancy.Tenant)
		faults []string
	}{
		"nothing said":   {want: func(*tenancy.Tenant) {}},
		"active":         {spec: v1alpha1.TenantSpec{Active: new(true)}, want: func(*tenancy.Tenant) {}},
		"not active":     {spec: v1alpha1.TenantSpec{Active: new(false)}, want: func(r *tenancy.Tenant) { r.Inactive = true }},
		"groups":         {spec: v1alpha1.TenantSpec{SharingGroups: []string{"a", "b"}}, want: func(r *tenancy.Tenant) { r.Groups = []string{"a", "b"} }},
		"a cap":          {spec: v1alpha1.TenantSpec{MaxPriority: new(int32(30))}, want: func(r *tenancy.Tenant) { r.MaxPriority = 30 }},
		"the lowest cap": {spec: v1alpha1.TenantSpec{MaxPriority: new(int32(0))}, want: func(r *tenancy.Tenant) { r.MaxPriority = 0 }},
		"an empty quota": {spec: v1alpha1.TenantSpec{Quota: &v1alpha1.TenantQuota{}}, want: func(*tenancy.Tenant) {}},
		"a guarantee limits nothing": {
			spec: v1alpha1.TenantSpec{Quota: &v1alpha1.TenantQuota{Cards: &guaranteed}},
			want: func(*tenancy.Tenant) {},
		},
		"limits": {
			spec: v1alpha1.TenantSpec{Quota: &v1alpha1.TenantQuota{Cards: amount(8), MemoryMiB: amount(1000), Cores: amount(0)}},
			want: func(r *tenancy.Tenant) {
				r.Limits = []gpu.Limit{most("cards", gpu.Devices, 8), most("memoryMiB", gpu.Memory, 1000), most("cores", gpu.Compute, 0)}
			},
		},
		"a selector with a fault": {
			spec: v1alpha1.TenantSpec{
				Namespaces:    v1alpha1.TenantNamespaces{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Maybe"}}}},
				SharingGroups: []string{"a"}, Quota: &v1alpha1.TenantQuota{Cards: amount(8)},
			},
			want:   func(r *tenancy.Tenant) { r.Inactive, r.Limits = true, []gpu.Limit{most("cards", gpu.Devices, 8)} },
			faults: []string{`spec.namespaces.selector: "Maybe" is not a valid label selector operator`},
		},
		"every fault at once": {
			spec:   v1alpha1.TenantSpec{SharingGroups: []string{"a", ""}, MaxPriority: new(int32(101)), Quota: &v1alpha1.TenantQuota{Cores: amount(-1)}},
			want:   func(r *tenancy.Tenant) { r.Inactive, r.Limits = true, []gpu.Limit{most("cores", gpu.Compute, 0)} },
			faults: []string{"spec.sharingGroups[1]: is empty", "spec.maxPriority: 101 is outside 0..100", "spec.quota.cores.limit: -1 is less than 0"},
		},
		"a cap below the lowest": {
			spec:   v1alpha1.TenantSpec{MaxPriority: new(int32(-1))},
			want:   func(r *tenancy.Tenant) { r.Inactive, r.MaxPriority = true, 0 },
			faults: []string{"spec.maxPriority: -1 is outside 0..100"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Tenant(tenantWith("blue", tc.spec))
			sameFaults(t, err, tc.faults...)
			if diff := cmp.Diff(blue(tc.want), got); diff != "" {
				t.Errorf("tenant (-want +got):\n%s", diff)
			}
		})
	}
}

// A limit's field is one of the object that it was read from.
func TestLimitField(t *testing.T) {
	tenant, _ := Tenant(tenantWith("blue", v1alpha1.TenantSpec{Quota: &v1alpha1.TenantQuota{Cards: amount(8), MemoryMiB: amount(1), Cores: amount(0)}}))
	quota, _ := Quota(quotaWith("requests.nvidia.com/gpu", "2"))
	var got []string
	for _, l := range slices.Concat(tenant.Limits, quota.Limits) {
		got = append(got, LimitField(&l))
	}
	want := []string{"spec.quota.cards.limit", "spec.quota.memoryMiB.limit", "spec.quota.cores.limit", "spec.hard[requests.nvidia.com/gpu]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func namespaceWith(name string, pairs ...string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for i := 0; i < len(pairs); i += 2 {
		n.Labels[pairs[i]] = pairs[i+1]
	}
	return n
}

func TestClaims(t *testing.T) {
	in := func(key string, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}
	}
	tests := map[string]struct {
		spec v1alpha1.TenantSpec // of the Tenant blue
		want []string            // namespaces that blue claims, of those below
	}{
		"by label alone":           {v1alpha1.TenantSpec{}, []string{"labelled"}},
		"a list":                   {v1alpha1.TenantSpec{Namespaces: v1alpha1.TenantNamespaces{Names: []string{"plain", "not-there"}}}, []string{"labelled", "plain"}},
		"an empty selector is all": {selecting(metav1.LabelSelector{}), []string{"dev-a", "labelled", "plain", "prod-a", "prod-b"}},
		"labels":                   {selecting(metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}), []string{"labelled", "prod-a", "prod-b"}},
		"two labels":               {selecting(metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod", "team": "a"}}), []string{"labelled", "prod-a"}},
		"one of some values":       {selecting(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{in("env", "prod", "dev")}}), []string{"dev-a", "labelled", "prod-a", "prod-b"}},
		"values that none has":     {selecting(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{in("env", "x")}}), []string{"labelled"}},
		"values and a label": {
			selecting(metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}, MatchExpressions: []metav1.LabelSelectorRequirement{in("env", "dev", "x")}}),
			[]string{"dev-a", "labelled"},
		},
		"a label that is there": {
			selecting(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpExists}}}),
			[]string{"dev-a", "labelled", "prod-a", "prod-b"},
		},
		"a label that is not": {
			selecting(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpDoesNotExist}}}),
			[]string{"labelled", "plain"},
		},
		"other values": {
			selecting(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"a"}}}}),
			[]string{"labelled", "plain", "prod-b"},
		},
		"a selector with a fault": {
			selecting(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpIn}}}),
			[]string{"labelled"},
		},
	}
	namespaces := []*corev1.Namespace{
		namespaceWith("prod-b", "env", "prod", "team", "b"),
		namespaceWith("prod-a", "env", "prod", "team", "a"),
		namespaceWith("dev-a", "env", "dev", "team", "a"),
		namespaceWith("labelled", TenantLabel, "blue"),
		namespaceWith("plain"),
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, _ := World([]*v1alpha1.Tenant{tenantWith("blue", tc.spec)}, namespaces, nil)
			if diff := cmp.Diff(tc.want, tenancy.New(w).Claimed("blue")); diff != "" {
				t.Errorf("claimed (-want +got):\n%s", diff)
			}
		})
	}
}

// All ways to claim a namespace count together, and so do names that no Tenant has.
func TestClaimsTogether(t *testing.T) {
	tenants := []*v1alpha1.Tenant{
		tenantWith("red", v1alpha1.TenantSpec{Namespaces: v1alpha1.TenantNamespaces{Names: []string{"a", "b"}}}),
		tenantWith("blue", selecting(metav1.LabelSelector{MatchLabels: map[string]string{"blue": "yes"}})),
	}
	w, _ := World(tenants, []*corev1.Namespace{
		namespaceWith("a"),
		namespaceWith("b", "blue", "yes"),
		namespaceWith("c", "blue", "yes", TenantLabel, "blue"),
		namespaceWith("d", "blue", "yes", TenantLabel, "red"),
		namespaceWith("e", TenantLabel, "deleted"),
		namespaceWith("f", TenantLabel, ""),
		namespaceWith("g", TenantLabel, "Red"),
	}, nil)
	d := tenancy.New(w)
	want := map[string]gpu.TenantID{"a": "red", "b": "", "c": "blue", "d": "", "e": "", "f": "", "g": ""}
	closed := map[string]bool{"e": true, "f": true, "g": true}
	for namespace, tenant := range want {
		if got, why := d.Owner(namespace); got != tenant || (why != "") != closed[namespace] {
			t.Errorf("%s: tenant %q, closed %q", namespace, got, why)
		}
	}
}

// Namespaces of one name, which have been made one after the other, are one.
func TestNamesakes(t *testing.T) {
	tenants := []*v1alpha1.Tenant{
		tenantWith("red", v1alpha1.TenantSpec{Namespaces: v1alpha1.TenantNamespaces{Names: []string{"listed"}}}), tenantWith("blue", v1alpha1.TenantSpec{}),
	}
	plain := func(name string) *corev1.Namespace { return namespaceWith(name) }
	of := func(name, tenant string) *corev1.Namespace { return namespaceWith(name, TenantLabel, tenant) }
	tests := map[string]struct {
		namespaces []*corev1.Namespace
		want       []tenancy.Namespace
	}{
		"of no Tenant":              {[]*corev1.Namespace{plain("a"), plain("a")}, []tenancy.Namespace{{Name: "a"}}},
		"of one Tenant":             {[]*corev1.Namespace{of("a", "red"), of("a", "red")}, []tenancy.Namespace{{Name: "a", Claims: []string{"red"}}}},
		"of one, in several ways":   {[]*corev1.Namespace{of("listed", "red"), plain("listed")}, []tenancy.Namespace{{Name: "listed", Claims: []string{"red"}}}},
		"of another Tenant":         {[]*corev1.Namespace{of("a", "red"), of("a", "blue")}, []tenancy.Namespace{{Name: "a", Claims: []string{"blue", "red"}, Torn: true}}},
		"of no Tenant any more":     {[]*corev1.Namespace{of("a", "red"), plain("a")}, []tenancy.Namespace{{Name: "a", Claims: []string{"red"}, Torn: true}}},
		"of no Tenant yet":          {[]*corev1.Namespace{plain("a"), of("a", "red")}, []tenancy.Namespace{{Name: "a", Claims: []string{"red"}, Torn: true}}},
		"and back":                  {[]*corev1.Namespace{of("a", "red"), of("a", "blue"), of("a", "red")}, []tenancy.Namespace{{Name: "a", Claims: []string{"blue", "red"}, Torn: true}}},
		"there, gone and there":     {[]*corev1.Namespace{of("a", "red"), plain("a"), of("a", "red")}, []tenancy.Namespace{{Name: "a", Claims: []string{"red"}, Torn: true}}},
		"others are left as before": {[]*corev1.Namespace{of("b", "red"), of("a", "red"), plain("c"), of("b", "blue")}, []tenancy.Namespace{{Name: "a", Claims: []string{"red"}}, {Name: "b", Claims: []string{"blue", "red"}, Torn: true}, {Name: "c"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, _ := World(tenants, tc.namespaces, nil)
			if diff := cmp.Diff(tc.want, w.Namespaces, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("namespaces (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWorld(t *testing.T) {
	broken := tenantWith("broken", v1alpha1.TenantSpec{MaxPriority: new(int32(200)), Namespaces: v1alpha1.TenantNamespaces{Names: []string{"b"}}})
	tenants := []*v1alpha1.Tenant{tenantWith("red", v1alpha1.TenantSpec{Namespaces: v1alpha1.TenantNamespaces{Names: []string{"ml"}}}), broken}
	namespaces := []*corev1.Namespace{namespaceWith("ml"), namespaceWith("b")}
	percent := quotaWith("nvidia.com/gpumem-percentage", "1")
	percent.Name = "a"
	quotas := []*corev1.ResourceQuota{quotaWith("nvidia.com/gpu", "2"), percent}

	w, faults := World(tenants, namespaces, quotas)
	want := tenancy.World{
		Tenants:    []tenancy.Tenant{{Name: "broken", Inactive: true, MaxPriority: 100}, {Name: "red", MaxPriority: 100}},
		Namespaces: []tenancy.Namespace{{Name: "b", Claims: []string{"broken"}}, {Name: "ml", Claims: []string{"red"}}},
		Quotas:     []tenancy.Quota{{Namespace: "ml", Name: "a"}, {Namespace: "ml", Name: "gpus", Limits: []gpu.Limit{line("nvidia.com/gpu", gpu.Devices, gpu.Nvidia, "", 2)}}},
	}
	if diff := cmp.Diff(want, w); diff != "" {
		t.Errorf("world (-want +got):\n%s", diff)
	}
	if len(faults.Tenants) != 1 || faults.Tenants["broken"] == nil {
		t.Errorf("faults of Tenants: %v", faults.Tenants)
	}
	if len(faults.Quotas) != 1 || len(faults.Quotas[types.NamespacedName{Namespace: "ml", Name: "a"}]) != 1 {
		t.Errorf("faults of quotas: %v", faults.Quotas)
	}

	slices.Reverse(tenants)
	slices.Reverse(namespaces)
	slices.Reverse(quotas)
	again, _ := World(tenants, namespaces, quotas)
	if diff := cmp.Diff(w, again); diff != "" {
		t.Errorf("another order makes another world (-want +got):\n%s", diff)
	}
}

// However a selector is written, it claims what Kubernetes says that it selects.
func TestClaimsBySelectorsOfAnyKind(t *testing.T) {
	keys, values := []string{"a", "b", "c"}, []string{"x", "y", "z"}
	word := func(t *rapid.T, of []string) string { return rapid.SampledFrom(of).Draw(t, "word") }
	rapid.Check(t, func(rt *rapid.T) {
		var s metav1.LabelSelector
		for range rapid.IntRange(0, 2).Draw(rt, "labels") {
			metav1.AddLabelToSelector(&s, word(rt, keys), word(rt, values))
		}
		for range rapid.IntRange(0, 2).Draw(rt, "expressions") {
			e := metav1.LabelSelectorRequirement{Key: word(rt, keys), Operator: metav1.LabelSelectorOperator(word(rt, []string{"In", "NotIn", "Exists", "DoesNotExist"}))}
			if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn {
				e.Values = rapid.SliceOfN(rapid.SampledFrom(values), 1, 3).Draw(rt, "values")
			}
			s.MatchExpressions = append(s.MatchExpressions, e)
		}
		var namespaces []*corev1.Namespace
		for i := range rapid.IntRange(0, 12).Draw(rt, "namespaces") {
			n := namespaceWith(fmt.Sprintf("n-%02d", i))
			n.Labels = rapid.MapOf(rapid.SampledFrom(keys), rapid.SampledFrom(values)).Draw(rt, "labels")
			namespaces = append(namespaces, n)
		}
		w, faults := World([]*v1alpha1.Tenant{tenantWith("blue", selecting(s))}, namespaces, nil)
		selector, err := metav1.LabelSelectorAsSelector(&s)
		if err != nil || len(faults.Tenants) > 0 {
			rt.Fatalf("%v, %v", err, faults)
		}
		for i, n := range w.Namespaces {
			want := 0
			if selector.Matches(labels.Set(namespaces[i].Labels)) {
				want = 1
			}
			if len(n.Claims) != want {
				rt.Fatalf("%s with %v is claimed by %v, want %d", n.Name, namespaces[i].Labels, n.Claims, want)
			}
		}
	})
}

// BenchmarkWorld: 1,000 Tenants, each with a selector of two labels, one of which
// all have, over 10,000 namespaces with a ResourceQuota each.
func BenchmarkWorld(b *testing.B) {
	var tenants []*v1alpha1.Tenant
	var namespaces []*corev1.Namespace
	var quotas []*corev1.ResourceQuota
	for i := range 1000 {
		tenants = append(tenants, tenantWith(fmt.Sprintf("t-%d", i), selecting(metav1.LabelSelector{MatchLabels: map[string]string{"all": "yes", "team": fmt.Sprintf("t-%d", i)}})))
	}
	for i := range 10000 {
		n := namespaceWith(fmt.Sprintf("n-%d", i), "all", "yes", "team", fmt.Sprintf("t-%d", i%1000), corev1.LabelMetadataName, fmt.Sprintf("n-%d", i))
		namespaces = append(namespaces, n)
		q := quotaWith("requests.nvidia.com/gpu", "8")
		q.Namespace = n.Name
		quotas = append(quotas, q)
	}
	b.ReportAllocs()
	for b.Loop() {
		World(tenants, namespaces, quotas)
	}
}

// FuzzTenant: whatever a Tenant says, what is read of it is within bounds, and with
// a fault it is closed. A namespace is claimed just when a name, a label or the
// selector says so.
func FuzzTenant(f *testing.F) {
	f.Add(`{"namespaces":{"names":["n"],"selector":{"matchLabels":{"a":"b"}}},"sharingGroups":["g"],"quota":{"cards":{"limit":8}}}`, "a", "b", "t")
	f.Add(`{"namespaces":{"selector":{"matchExpressions":[{"key":"a b","operator":"In"}]}},"maxPriority":-1,"quota":{"cores":{"limit":-8}}}`, "a b", "", "")
	f.Add(`{"namespaces":{"selector":{}},"active":false,"sharingGroups":[""],"maxPriority":2147483647}`, TenantLabel, "t", "x")
	f.Fuzz(func(t *testing.T, spec, key, value, label string) {
		tenant := tenantWith("t", v1alpha1.TenantSpec{})
		if json.Unmarshal([]byte(spec), &tenant.Spec) != nil {
			t.Skip()
		}
		n := namespaceWith("n", TenantLabel, label, key, value)
		w, faults := World([]*v1alpha1.Tenant{tenant}, []*corev1.Namespace{n}, nil)
		read, err := w.Tenants[0], faults.Tenants["t"]
		if err != nil && (!read.Inactive || read.Groups != nil) || read.MaxPriority < 0 || read.MaxPriority > tenancy.MostPriority {
			t.Fatalf("read as %+v, %v", read, err)
		}
		for _, l := range read.Limits {
			if l.Most < 0 {
				t.Fatalf("limit %+v", l)
			}
		}
		selector, err := metav1.LabelSelectorAsSelector(tenant.Spec.Namespaces.Selector)
		claimed := n.Labels[TenantLabel] == "t" || slices.Contains(tenant.Spec.Namespaces.Names, "n") || err == nil && selector.Matches(labels.Set(n.Labels))
		if got := slices.Contains(w.Namespaces[0].Claims, "t"); got != claimed {
			t.Fatalf("claimed: %t, want %t by %s", got, claimed, spec)
		}
	})
}
