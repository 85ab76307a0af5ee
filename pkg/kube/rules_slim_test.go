package kube

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
)

// What slim objects are read as is what the whole ones are.
func TestSlimRulesReadLikeTheWhole(t *testing.T) {
	s := newSlimmer()
	for seed := range int64(someObjects) {
		f := filler(seed)
		tenant, namespace, quota := &v1alpha1.Tenant{}, &corev1.Namespace{}, &corev1.ResourceQuota{}
		f.Fill(tenant)
		f.Fill(namespace)
		f.Fill(quota)
		if seed%2 == 0 { // a claim by label, else by whatever the selector says
			namespace.Labels = map[string]string{codec.TenantLabel: tenant.Name}
		}
		read := func() []any {
			world, faults := codec.World([]*v1alpha1.Tenant{tenant}, []*corev1.Namespace{namespace}, []*corev1.ResourceQuota{quota})
			return []any{world, faults.Tenants[tenant.Name] == nil, faults.Quotas}
		}
		want := read()
		for range 2 {
			for _, o := range []any{tenant, namespace, quota} {
				if _, err := s.slim(o); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, read()); diff != "" {
				t.Fatalf("%d (-whole +slim):\n%s", seed, diff)
			}
		}
	}
}

func TestSlimRulesDrop(t *testing.T) {
	managed := []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	tenant, namespace, quota := newTenant("red", 1, []string{"g"}, "ns"), newNamespace("ns", map[string]string{"a": "b"}), newQuota("ns", "q", "2")
	tenant.Status.NamespaceCount = 3
	wants := []any{tenant.DeepCopy(), namespace.DeepCopy(), quota.DeepCopy()}
	tenant.ManagedFields, namespace.ManagedFields, quota.ManagedFields = managed, managed, managed
	namespace.Annotations = map[string]string{"openshift.io/sa.scc.uid-range": "1000/10000"}
	namespace.Status.Phase = corev1.NamespaceActive
	quota.Status.Used = corev1.ResourceList{"requests.heteroflow.io/gpu": resource.MustParse("1")}
	for i, o := range []any{tenant, namespace, quota} {
		got, err := newSlimmer().slim(o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wants[i], got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Many tenants and namespaces, as a provider would have them.
const (
	manyTenants    = 1000
	manyNamespaces = 10000
)

func manyRules(b *testing.B, s *statutes) {
	b.Helper()
	transform := newSlimmer()
	put := func(object interface{ Marshal() ([]byte, error) }, into interface{ Unmarshal([]byte) error }) {
		received(b, object, into)
		_, _ = transform.slim(into)
		s.put(into)
	}
	for i := range manyTenants {
		limit := int64(i)
		t := newTenant(fmt.Sprintf("tenant-%04d", i), 1, []string{fmt.Sprintf("group-%03d", i%100)})
		t.Spec.Quota = &v1alpha1.TenantQuota{Cards: &v1alpha1.TenantAmount{Limit: &limit}}
		if i%2 == 0 {
			t.Spec.Namespaces.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": fmt.Sprintf("team-%04d", i)}}
		}
		s.put(t)
	}
	for i := range manyNamespaces {
		name := fmt.Sprintf("namespace-%05d", i)
		labels := map[string]string{"kubernetes.io/metadata.name": name, "pod-security.kubernetes.io/enforce": "baseline"}
		if of := i % manyTenants; of%2 == 0 {
			labels["team"] = fmt.Sprintf("team-%04d", of)
		} else {
			labels[codec.TenantLabel] = fmt.Sprintf("tenant-%04d", of)
		}
		namespace := newNamespace(name, labels)
		namespace.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1("{}")}}
		put(namespace, &corev1.Namespace{})
		if i%10 == 0 {
			put(newQuota(name, "gpus", fmt.Sprint(i%64)), &corev1.ResourceQuota{})
		}
	}
}

// BenchmarkRules is what a change among 10,000 namespaces and 1,000 Tenants costs
// until it is ready for the ledger, and what all of it keeps in memory.
func BenchmarkRules(b *testing.B) {
	before := heap()
	s := newStatutes()
	manyRules(b, s)
	s.follow()
	kept := heap() - before
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.put(newTenant("tenant-0001", int64(i+2), []string{fmt.Sprint("group-", i)}))
		s.follow()
	}
	if got := len(s.made()); got != b.N+1 {
		b.Errorf("%d laws of %d changes", got, b.N)
	}
	b.ReportMetric(float64(kept)/(1<<20), "MiB")
	runtime.KeepAlive(s)
}
