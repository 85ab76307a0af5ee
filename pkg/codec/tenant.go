package codec

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// Faults is what of a World could not be read, or cannot be counted.
type Faults struct {
	Tenants map[string]error                  // by the Tenant's name
	Quotas  map[types.NamespacedName][]string // what is not counted, by the ResourceQuota's name
}

// World reads all Tenants, namespaces and ResourceQuotas of a cluster, in any
// order: the same ones are always an equal World. Of a namespace it goes by the
// name and the labels, of a ResourceQuota by its names and spec, of a Tenant by its
// name and spec. Namespaces of one name are such as have been made one after the
// other, while something is held for pods of each: they are one, and it is torn if
// they are not claimed alike.
func World(tenants []*v1alpha1.Tenant, namespaces []*corev1.Namespace, quotas []*corev1.ResourceQuota) (tenancy.World, Faults) {
	tenants, namespaces, quotas = sorted(tenants), sorted(namespaces), sorted(quotas)
	var w tenancy.World
	faults := Faults{Tenants: map[string]error{}, Quotas: map[types.NamespacedName][]string{}}
	for _, t := range tenants {
		read, err := Tenant(t)
		w.Tenants = append(w.Tenants, read)
		if err != nil {
			faults.Tenants[t.Name] = err
		}
	}
	w.Namespaces = merge(claims(tenants, namespaces))
	for _, q := range quotas {
		read, uncounted := Quota(q)
		w.Quotas = append(w.Quotas, read)
		if len(uncounted) > 0 {
			faults.Quotas[types.NamespacedName{Namespace: q.Namespace, Name: q.Name}] = uncounted
		}
	}
	return w, faults
}

func sorted[T metav1.Object](objects []T) []T {
	return slices.SortedFunc(slices.Values(objects), func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
}

// Tenant reads one but for the namespaces that it claims. With a fault it is
// inactive and in no sharing group, and what it limits stays limited.
func Tenant(t *v1alpha1.Tenant) (tenancy.Tenant, error) {
	spec := &t.Spec
	read := tenancy.Tenant{
		Name: t.Name, Inactive: spec.Active != nil && !*spec.Active,
		Groups: spec.SharingGroups, MaxPriority: tenancy.MostPriority,
	}
	_, err := metav1.LabelSelectorAsSelector(spec.Namespaces.Selector)
	if err != nil {
		err = fmt.Errorf("spec.namespaces.selector: %w", err)
	}
	errs := []error{err}
	for i, group := range spec.SharingGroups {
		if group == "" {
			errs = append(errs, fmt.Errorf("spec.sharingGroups[%d]: is empty", i))
		}
	}
	if most := spec.MaxPriority; most != nil {
		if *most < 0 || *most > tenancy.MostPriority {
			errs = append(errs, fmt.Errorf("spec.maxPriority: %d is outside 0..%d", *most, tenancy.MostPriority))
		}
		read.MaxPriority = int(min(max(*most, 0), tenancy.MostPriority))
	}
	if spec.Quota != nil {
		var faults []error
		read.Limits, faults = tenantLimits(t.Name, spec.Quota)
		errs = append(errs, faults...)
	}
	if err = errors.Join(errs...); err != nil {
		read.Inactive, read.Groups = true, nil
	}
	return read, err
}

func tenantLimits(name string, q *v1alpha1.TenantQuota) (all []gpu.Limit, errs []error) {
	for _, line := range []struct {
		amount  *v1alpha1.TenantAmount
		name    string
		measure gpu.Measure
	}{
		{q.Cards, "cards", gpu.Devices},
		{q.MemoryMiB, "memoryMiB", gpu.Memory},
		{q.Cores, "cores", gpu.Compute},
	} {
		if line.amount == nil || line.amount.Limit == nil {
			continue
		}
		most := *line.amount.Limit
		if most < 0 {
			errs = append(errs, fmt.Errorf("spec.quota.%s.limit: %d is less than 0", line.name, most))
		}
		all = append(all, gpu.Limit{Quota: ofTenant + name, Name: line.name, Measure: line.measure, Most: max(0, most)})
	}
	return all, errs
}

// ofTenant begins the name of a Tenant's quota.
const ofTenant = "Tenant "

// LimitField returns where in the object that a limit was read from it stands.
func LimitField(l *gpu.Limit) string {
	if strings.HasPrefix(l.Quota, ofTenant) {
		return "spec.quota." + l.Name + ".limit"
	}
	return hardField(l.Name)
}

// claims returns the namespaces with the Tenants that claim each: by its name, by
// its labels, or because its own label names one.
func claims(tenants []*v1alpha1.Tenant, namespaces []*corev1.Namespace) []tenancy.Namespace {
	all := make([]tenancy.Namespace, len(namespaces))
	for i, n := range namespaces {
		all[i].Name = n.Name
		if tenant, ok := n.Labels[TenantLabel]; ok {
			all[i].Claims = append(all[i].Claims, tenant)
		}
	}
	index := indexLabels(namespaces)
	for _, t := range tenants {
		for _, name := range t.Spec.Namespaces.Names {
			for i := first(namespaces, name); i < len(all) && all[i].Name == name; i++ {
				all[i].Claims = append(all[i].Claims, t.Name)
			}
		}
		for _, i := range index.selected(t.Spec.Namespaces.Selector) {
			all[i].Claims = append(all[i].Claims, t.Name)
		}
	}
	return all
}

// first returns the place of the first namespace of that name, if there is any.
func first(namespaces []*corev1.Namespace, name string) int {
	i, _ := slices.BinarySearchFunc(namespaces, name, func(n *corev1.Namespace, name string) int { return cmp.Compare(n.Name, name) })
	return i
}

// merge makes one of those that have one name. All who claim any of them are charged
// for what pods of all hold.
func merge(all []tenancy.Namespace) []tenancy.Namespace {
	merged := all[:0]
	for _, n := range all {
		last := len(merged) - 1
		if last < 0 || merged[last].Name != n.Name {
			merged = append(merged, n)
			continue
		}
		was, is := eachOnce(merged[last].Claims), eachOnce(n.Claims)
		merged[last].Torn = merged[last].Torn || !slices.Equal(was, is)
		merged[last].Claims = eachOnce(append(was, is...))
	}
	return merged
}

func eachOnce(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// label is one of a namespace's.
type label struct{ key, value string }

// labelIndex finds namespaces by their labels. A thousand Tenants would else be
// matched with every one of ten thousand namespaces.
type labelIndex struct {
	namespaces []*corev1.Namespace
	with       map[label][]int // label -> places in namespaces
}

func indexLabels(namespaces []*corev1.Namespace) *labelIndex {
	x := &labelIndex{namespaces: namespaces, with: map[label][]int{}}
	for i, n := range namespaces {
		for key, value := range n.Labels {
			x.with[label{key, value}] = append(x.with[label{key, value}], i)
		}
	}
	return x
}

// selected returns the places of the namespaces that are selected; none by a
// selector with a fault.
func (x *labelIndex) selected(s *metav1.LabelSelector) (places []int) {
	if s == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil
	}
	for _, i := range x.likely(selector) {
		if selector.Matches(labels.Set(x.namespaces[i].Labels)) {
			places = append(places, i)
		}
	}
	return places
}

// likely returns some of which the selector can select: those that have one of the
// values that it wants of a label, of the label by which they are fewest. Where it
// wants no value they are all.
func (x *labelIndex) likely(selector labels.Selector) (places []int) {
	requirements, _ := selector.Requirements()
	var best *labels.Requirement
	fewest := math.MaxInt
	for i := range requirements {
		if n, ok := x.count(&requirements[i]); ok && n < fewest {
			best, fewest = &requirements[i], n
		}
	}
	if best == nil {
		for i := range x.namespaces {
			places = append(places, i)
		}
		return places
	}
	for value := range best.Values() {
		places = append(places, x.with[label{best.Key(), value}]...)
	}
	return places
}

// count returns how many namespaces meet the requirement, false if it is none for
// certain values.
func (x *labelIndex) count(r *labels.Requirement) (n int, ok bool) {
	if r.Operator() != selection.In && r.Operator() != selection.Equals && r.Operator() != selection.DoubleEquals {
		return 0, false
	}
	for value := range r.Values() {
		n += len(x.with[label{r.Key(), value}])
	}
	return n, true
}
