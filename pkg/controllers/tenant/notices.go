package tenant

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/kube"
)

// Reasons of the events. Alerts rely on them: add, never rename.
const (
	// ReasonViolated, on a node: a card is shared across a tenant boundary.
	ReasonViolated = "TenantBoundaryViolated"
	// ReasonRestored, on the node: it is not any more.
	ReasonRestored = "TenantBoundaryRestored"
	// ReasonClaimedTwice, on Tenants: a namespace is claimed by more than one.
	ReasonClaimedTwice = "NamespaceClaimedTwice"
	// ReasonUnsupported, on a ResourceQuota: something of it is not counted.
	ReasonUnsupported = "QuotaUnsupported"
)

// notices returns what is to be told of nodes and Tenants.
func (f *findings) notices(tenants []*v1alpha1.Tenant) (all []kube.Notice) {
	for i := range f.divisions {
		d := &f.divisions[i]
		all = append(all, kube.Notice{About: kube.NodeSubject(d.node), Warning: true, Reason: ReasonViolated, Key: string(d.card), Text: d.String()})
	}
	for _, t := range tenants {
		if twice := f.contested[t.Name]; len(twice) > 0 {
			all = append(all, kube.Notice{About: kube.TenantSubject(t), Warning: true, Reason: ReasonClaimedTwice,
				Text: fmt.Sprintf("claims what others claim too: %s. Pods there share cards with nobody, and count against the quotas of all, until one claim is left", some(twice))})
		}
	}
	return all
}

// uncounted returns what is to be told of ResourceQuotas.
func (c *Controller) uncounted(law *kube.Law) (all []kube.Notice) {
	for name, lines := range law.Faults.Quotas {
		q, err := c.Quotas.ResourceQuotas(name.Namespace).Get(name.Name)
		if err != nil {
			continue // it has gone since
		}
		all = append(all, kube.Notice{About: kube.QuotaSubject(q), Warning: true, Reason: ReasonUnsupported,
			Text: "not counted for cards: " + strings.Join(lines, "; ")})
	}
	return all
}

// tell tells what is news.
func (c *Controller) tell(ctx context.Context, all []kube.Notice) {
	for _, n := range c.told.news(all, c.Now(), mostWrites) {
		if n.Reason == ReasonViolated || n.Reason == ReasonRestored {
			klog.FromContext(ctx).Info(n.Text, "node", n.About.Name, "card", n.Key, "reason", n.Reason)
		}
		c.Tell(n)
	}
}
