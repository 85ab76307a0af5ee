package codec

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// Quota reads what a ResourceQuota says about cards: each line under whichever of
// its names is a limit of its own. What it says and cannot be counted is returned
// for people; it limits nothing here.
func Quota(q *corev1.ResourceQuota) (read tenancy.Quota, uncounted []string) {
	read = tenancy.Quota{Namespace: q.Namespace, Name: q.Name}
	scope := scoped(&q.Spec)
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
		of := unprefixed(name)
		f, field := formOf(of), hardField(string(name))
		switch {
		case f == nil && strings.HasPrefix(string(of), own):
			uncounted = append(uncounted, fmt.Sprintf("%s: %s is no resource", field, of))
		case f == nil:
		case scope != "":
			uncounted = append(uncounted, fmt.Sprintf("%s: a quota with %s is not counted for cards; write one without", field, scope))
		case of == f.percent:
			uncounted = append(uncounted, fmt.Sprintf("%s: percentages of unlike cards have no sum; write %s", field, f.memory))
		default:
			l := f.limit(of, q.Spec.Hard[name])
			l.Quota, l.Name = "ResourceQuota "+q.Namespace+"/"+q.Name, string(name)
			read.Limits = append(read.Limits, l)
		}
	}
	return read, uncounted
}

// hardField returns where a line of a ResourceQuota stands.
func hardField(name string) string { return "spec.hard[" + name + "]" }

// scoped returns the field that has the quota count some pods only, "" if it counts
// all.
func scoped(spec *corev1.ResourceQuotaSpec) string {
	switch {
	case len(spec.Scopes) > 0:
		return "spec.scopes"
	case spec.ScopeSelector != nil && len(spec.ScopeSelector.MatchExpressions) > 0:
		return "spec.scopeSelector"
	}
	return ""
}

// unprefixed returns the resource that a line of a quota is about. Limits and
// requests of cards are equal.
func unprefixed(name corev1.ResourceName) corev1.ResourceName {
	for _, prefix := range []string{corev1.DefaultResourceRequestsPrefix, "limits."} {
		if rest, ok := strings.CutPrefix(string(name), prefix); ok {
			return corev1.ResourceName(rest)
		}
	}
	return name
}

// limit returns the limit that one of the form's names makes, without whose it is.
func (f *form) limit(name corev1.ResourceName, amount resource.Quantity) gpu.Limit {
	l := gpu.Limit{Vendor: f.vendor}
	if len(countsOf(f.vendor)) > 1 {
		l.Resource = string(f.count)
	}
	switch {
	case name == f.count && f.vendor == "":
		l.Measure, l.Most = gpu.WholeCards, atMost(amount, 1, 1)
	case name == f.count:
		l.Measure, l.Most = gpu.Devices, atMost(amount, 1, 1)
	case name == f.memory:
		l.Measure, l.Most = gpu.Memory, atMost(amount, int64(f.unit), 1)
	default:
		l.Measure, l.Most = gpu.Compute, atMost(amount, gpu.MostCores, cmp.Or(f.full, gpu.MostCores))
	}
	return l
}

// atMost returns the whole part of amount x times / per, rounded up, as what pods ask
// for is: one that asks for all that a quota allows has it. More would need a unit
// more. It is kept within 0..mostCounted.
func atMost(amount resource.Quantity, times, per int64) int64 {
	switch {
	case amount.Sign() <= 0:
		return 0
	case vast(amount):
		return mostCounted
	}
	v, _ := wholeNumber(amount)
	v.Add(v.Mul(v, big.NewInt(times)), big.NewInt(per-1))
	v.Quo(v, big.NewInt(per))
	if v.Cmp(big.NewInt(mostCounted)) > 0 {
		return mostCounted
	}
	return v.Int64()
}
