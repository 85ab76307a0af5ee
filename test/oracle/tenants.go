package oracle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Tenant is one as the API server writes it, as far as anything is judged by it.
type Tenant struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec TenantSpec `json:"spec"`
}

// TenantSpec is what the administrator wants of a Tenant.
type TenantSpec struct {
	Namespaces struct {
		Names    []string              `json:"names"`
		Selector *metav1.LabelSelector `json:"selector"`
	} `json:"namespaces"`
	Active        *bool    `json:"active"` // true if it is left out
	SharingGroups []string `json:"sharingGroups"`
	Quota         struct {
		Cards     Amount `json:"cards"`
		MemoryMiB Amount `json:"memoryMiB"`
		Cores     Amount `json:"cores"`
	} `json:"quota"`
}

// Amount bounds what a Tenant holds of one kind; no limit, no bound.
type Amount struct {
	Limit *int64 `json:"limit"`
}

// tenantLabel on a namespace says whose it is, on a node whom it is kept for.
const tenantLabel = prefix + "tenant"

// rules say who is whose.
type rules struct {
	tenants map[string]*Tenant           // by name
	labels  map[string]map[string]string // namespace -> its labels
	owners  map[string]owner             // by namespace, as far as it was asked for
}

// owner is whom the pods of a namespace belong to.
type owner struct {
	id     string // "" shares with nobody
	active bool   // whether new pods get cards
}

func newRules(w World) *rules {
	r := &rules{tenants: map[string]*Tenant{}, labels: map[string]map[string]string{}, owners: map[string]owner{}}
	for i := range w.Tenants {
		r.tenants[w.Tenants[i].Metadata.Name] = &w.Tenants[i]
	}
	for i := range w.Namespaces {
		r.labels[w.Namespaces[i].Name] = w.Namespaces[i].Labels
	}
	return r
}

// claims reports whether the Tenant claims the namespace.
func (r *rules) claims(t *Tenant, namespace string) bool {
	selector, err := metav1.LabelSelectorAsSelector(t.Spec.Namespaces.Selector)
	return slices.Contains(t.Spec.Namespaces.Names, namespace) ||
		r.labels[namespace][tenantLabel] == t.Metadata.Name ||
		err == nil && selector.Matches(labels.Set(r.labels[namespace]))
}

// owner is the one Tenant that claims the namespace, or else the namespace itself.
func (r *rules) owner(namespace string) owner {
	known, found := r.owners[namespace]
	if !found {
		known = r.find(namespace)
		r.owners[namespace] = known
	}
	return known
}

func (r *rules) find(namespace string) owner {
	var claims []string
	active := true
	for name, t := range r.tenants {
		if r.claims(t, namespace) {
			claims = append(claims, name)
			active = active && (t.Spec.Active == nil || *t.Spec.Active)
		}
	}
	label := r.labels[namespace][tenantLabel]
	switch {
	case label != "" && r.tenants[label] == nil: // kept for a Tenant that is not there
		return owner{}
	case len(claims) == 0:
		return owner{"namespace/" + namespace, true}
	case len(claims) == 1:
		return owner{claims[0], active}
	}
	return owner{"", active}
}

// mayShare reports whether pods of two namespaces may be on one card.
func (r *rules) mayShare(a, b string) bool {
	first, second := r.owner(a).id, r.owner(b).id
	if first == "" || second == "" {
		return false
	}
	if first == second {
		return true
	}
	x, y := r.tenants[first], r.tenants[second]
	return x != nil && y != nil && slices.ContainsFunc(x.Spec.SharingGroups, func(group string) bool {
		return slices.Contains(y.Spec.SharingGroups, group)
	})
}

// mayUse reports whether pods of the namespace may be on the node.
func (r *rules) mayUse(namespace string, node *corev1.Node) bool {
	kept := node.Labels[tenantLabel]
	if kept == "" {
		return true
	}
	if r.tenants[kept] == nil {
		kept = "namespace/" + kept
	}
	return r.owner(namespace).id == kept
}
