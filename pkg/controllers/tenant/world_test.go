package tenant

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// start is when tests begin.
func start() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

func object(name string, change ...func(*v1alpha1.Tenant)) *v1alpha1.Tenant {
	t := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1, ResourceVersion: "1"}}
	for _, c := range change {
		c(t)
	}
	return t
}

func owns(namespaces ...string) func(*v1alpha1.Tenant) {
	return func(t *v1alpha1.Tenant) { t.Spec.Namespaces.Names = namespaces }
}

func shares(groups ...string) func(*v1alpha1.Tenant) {
	return func(t *v1alpha1.Tenant) { t.Spec.SharingGroups = groups }
}

func cardLimit(n int64) func(*v1alpha1.Tenant) {
	return func(t *v1alpha1.Tenant) {
		t.Spec.Quota = &v1alpha1.TenantQuota{Cards: &v1alpha1.TenantAmount{Limit: &n}}
	}
}

// law is what these Tenants make of these namespaces.
func law(tenants []*v1alpha1.Tenant, quotas []*corev1.ResourceQuota, namespaces ...string) *kube.Law {
	l := &kube.Law{Generations: map[string]int64{}}
	var all []*corev1.Namespace
	for _, name := range namespaces {
		all = append(all, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	world, faults := codec.World(tenants, all, quotas)
	l.Directory, l.Faults = tenancy.New(world), faults
	for _, t := range tenants {
		l.Generations[t.Name] = t.Generation
	}
	return l
}

// cluster is two nodes of two cards each.
func cluster(d *tenancy.Directory) *ledger.Ledger {
	l := ledger.New(d)
	for _, node := range []gpu.NodeID{"n1", "n2"} {
		var cards []gpu.Card
		for i := range 2 {
			cards = append(cards, gpu.Card{
				ID: gpu.CardID(fmt.Sprintf("GPU-%s-%d", node, i)), Index: i, Vendor: gpu.Nvidia, Memory: 1000, Usable: 900, Cores: 100, UsableCores: 100,
				MaxSlices: 10, Healthy: true, Mode: gpu.ModeSlice,
			})
		}
		l.SetNode(ledger.Facts{ID: node, Cards: cards})
	}
	return l
}

// runs has a pod of the namespace on the card, with 100 MiB and 10 %.
func runs(l *ledger.Ledger, namespace, name string, node gpu.NodeID, card int) {
	l.Confirm(gpu.Placement{
		Pod: gpu.PodID("uid-" + namespace + "-" + name), Namespace: namespace, Name: name, Node: node,
		Grants: []gpu.Grant{{Container: "main", Shares: []gpu.Share{{
			Card: gpu.CardID(fmt.Sprintf("GPU-%s-%d", node, card)), Vendor: gpu.Nvidia, Index: card, Memory: 100, Cores: 10,
		}}}},
	})
}

// notice is what tests compare of one.
func notice(n kube.Notice) string {
	kind := map[bool]string{true: "Warning", false: "Normal"}[n.Warning]
	return fmt.Sprintf("%s %s/%s %s %s: %s", n.About.Kind, n.About.Namespace, n.About.Name, kind, n.Reason, n.Text)
}

func notices(all []kube.Notice) []string {
	lines := []string{}
	for _, n := range all {
		lines = append(lines, notice(n))
	}
	return lines
}

// conditionOf returns what the condition says.
func conditionOf(t *testing.T, s v1alpha1.TenantStatus, kind string) string {
	t.Helper()
	for _, c := range s.Conditions {
		if c.Type == kind {
			return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
		}
	}
	t.Errorf("no condition %s", kind)
	return ""
}
