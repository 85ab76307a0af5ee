package v1alpha1

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func fullTenants() *TenantList {
	yes, priority, weight := true, int32(60), int32(3)
	amount := func(guaranteed, limit int64) *TenantAmount { return &TenantAmount{&guaranteed, &limit} }
	return &TenantList{Items: []Tenant{{
		TypeMeta:   metav1.TypeMeta{APIVersion: APIVersion, Kind: TenantKind},
		ObjectMeta: metav1.ObjectMeta{Name: "t", Labels: map[string]string{"a": "b"}},
		Spec: TenantSpec{
			Namespaces: TenantNamespaces{
				Names: []string{"n"},
				Selector: &metav1.LabelSelector{
					MatchLabels:      map[string]string{"k": "v"},
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: metav1.LabelSelectorOpIn, Values: []string{"v"}}},
				},
			},
			Active: &yes, SharingGroups: []string{"g"},
			Quota:       &TenantQuota{Cards: amount(1, 2), MemoryMiB: amount(3, 4), Cores: amount(5, 6)},
			MaxPriority: &priority, Weight: &weight,
		},
		Status: TenantStatus{
			ObservedGeneration: 1, NamespaceCount: 2, Used: TenantUsed{1, 2, 3},
			Conditions: []metav1.Condition{{Type: TenantWithinQuota, Status: metav1.ConditionTrue}},
		},
	}}}
}

// What an informer hands out is shared: a copy must not lead back to it.
func TestDeepCopyOfTenants(t *testing.T) {
	l := fullTenants()
	c := l.DeepCopyObject().(*TenantList)
	if diff := cmp.Diff(l, c); diff != "" {
		t.Fatalf("copy (-original +copy):\n%s", diff)
	}
	one := c.Items[0].DeepCopyObject().(*Tenant)
	if diff := cmp.Diff(&l.Items[0], one); diff != "" {
		t.Fatalf("copy of one (-original +copy):\n%s", diff)
	}
	for _, copied := range []*Tenant{&c.Items[0], one} {
		change(copied)
	}
	if diff := cmp.Diff(fullTenants(), l); diff != "" {
		t.Errorf("the original has changed (-before +after):\n%s", diff)
	}
}

// change writes to everything that a Tenant leads to.
func change(c *Tenant) {
	c.Labels["a"] = "c"
	c.Spec.Namespaces.Names[0] = "m"
	c.Spec.Namespaces.Selector.MatchLabels["k"] = "w"
	c.Spec.Namespaces.Selector.MatchExpressions[0].Values[0] = "w"
	*c.Spec.Active = false
	c.Spec.SharingGroups[0] = "h"
	for _, a := range []*TenantAmount{c.Spec.Quota.Cards, c.Spec.Quota.MemoryMiB, c.Spec.Quota.Cores} {
		*a.Guaranteed, *a.Limit = 100, 100
	}
	*c.Spec.MaxPriority, *c.Spec.Weight = 0, 1
	c.Status.Conditions[0].Status = metav1.ConditionFalse
}

// 0 is not the same as left out: 0 cards are none, and no limit is as many as there are.
func TestTenantKeepsZeros(t *testing.T) {
	no, zero, none := false, int64(0), int32(0)
	want := TenantSpec{Active: &no, MaxPriority: &none, Quota: &TenantQuota{Cards: &TenantAmount{Limit: &zero}}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got TenantSpec
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-written +read):\n%s", text, diff)
	}
}

// Clients decode only what their scheme knows.
func TestSchemeKnowsTheKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for kind, object := range map[string]runtime.Object{
		EpochKind: &Epoch{}, EpochKind + "List": &EpochList{},
		TenantKind: &Tenant{}, TenantKind + "List": &TenantList{},
	} {
		kinds, _, err := scheme.ObjectKinds(object)
		if err != nil || len(kinds) != 1 || kinds[0] != SchemeGroupVersion.WithKind(kind) {
			t.Errorf("%T is of the kinds %v (%v), want %s", object, kinds, err, kind)
		}
	}
	if got := Resource(TenantResource).String(); got != "tenants.heteroflow.io" {
		t.Errorf("resource %s", got)
	}
}
