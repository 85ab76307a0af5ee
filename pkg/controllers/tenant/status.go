package tenant

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/kube"
)

// Reasons of conditions that are True.
const (
	reasonResolved  = "Resolved"
	reasonSeparated = "Separated"
	reasonWithin    = "WithinLimits"
)

// status returns what the Tenant's status should be. Conditions of others stay.
func (f *findings) status(t *v1alpha1.Tenant, law *kube.Law, spent gpu.Spending, now time.Time) v1alpha1.TenantStatus {
	s := v1alpha1.TenantStatus{
		ObservedGeneration: t.Generation,
		NamespaceCount:     int32(owned(law.Directory, t.Name)),
		Used:               v1alpha1.TenantUsed{Cards: spent.Sum(gpu.Devices), MemoryMiB: spent.Sum(gpu.Memory), Cores: spent.Sum(gpu.Compute)},
		Conditions:         slices.Clone(t.Status.Conditions),
	}
	for _, c := range f.conditions(t, law, spent) {
		c.ObservedGeneration, c.LastTransitionTime = t.Generation, metav1.NewTime(now)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	return s
}

func (f *findings) conditions(t *v1alpha1.Tenant, law *kube.Law, spent gpu.Spending) []metav1.Condition {
	resolved := condition(v1alpha1.TenantNamespacesResolved, reasonResolved, v1alpha1.TenantReasonClaimedTwice, f.contested[t.Name])
	if err := law.Faults.Tenants[t.Name]; err != nil {
		resolved = condition(v1alpha1.TenantNamespacesResolved, "", v1alpha1.TenantReasonUnreadable, []string{err.Error()})
	}
	return []metav1.Condition{
		resolved,
		condition(v1alpha1.TenantCardsSeparated, reasonSeparated, v1alpha1.TenantReasonSharedAcrossBoundary, f.beside[t.Name]),
		condition(v1alpha1.TenantWithinQuota, reasonWithin, v1alpha1.TenantReasonOverLimit,
			excesses(law.Directory.Limits(gpu.TenantAccount(t.Name)), spent)),
	}
}

// condition is True, unless there is something wrong.
func condition(kind, well, ill string, wrong []string) metav1.Condition {
	if len(wrong) == 0 {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: well}
	}
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: ill, Message: clip(some(wrong))}
}

// mostText bounds a message. The API server takes up to 32 KiB, and would refuse the
// whole status for one fault in a spec that quotes a hundred others.
const mostText = 4096

// clip cuts a text that is too long, between two characters.
func clip(text string) string {
	if len(text) <= mostText {
		return text
	}
	return strings.ToValidUTF8(text[:mostText], "") + " ..."
}
