package codec

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

func quotaWith(hard ...string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "gpus"},
		Spec:       corev1.ResourceQuotaSpec{Hard: quantities(hard...)},
	}
}

// line is a limit of that quota.
func line(name string, m gpu.Measure, vendor gpu.Vendor, by string, most int64) gpu.Limit {
	return gpu.Limit{Quota: "ResourceQuota ml/gpus", Name: name, Measure: m, Vendor: vendor, Resource: by, Most: most}
}

func TestQuota(t *testing.T) {
	tests := map[string]struct {
		hard []string
		want []gpu.Limit
	}{
		"nothing":                                    {},
		"nothing about cards":                        {hard: []string{"cpu", "1", "limits.memory", "1Gi", "count/pods", "3", "requests.nvidia.com/mig-1g.5gb", "2", "requests.mthreads.com/gpu", "1"}},
		"whole cards of any vendor":                  {[]string{"heteroflow.io/gpu", "4"}, []gpu.Limit{line("heteroflow.io/gpu", gpu.WholeCards, "", "", 4)}},
		"memory of any vendor":                       {[]string{"limits.heteroflow.io/gpu-memory", "4000"}, []gpu.Limit{line("limits.heteroflow.io/gpu-memory", gpu.Memory, "", "", 4000)}},
		"compute of any vendor":                      {[]string{"heteroflow.io/gpu-cores", "250"}, []gpu.Limit{line("heteroflow.io/gpu-cores", gpu.Compute, "", "", 250)}},
		"a vendor with one form":                     {[]string{"requests.nvidia.com/gpu", "2"}, []gpu.Limit{line("requests.nvidia.com/gpu", gpu.Devices, gpu.Nvidia, "", 2)}},
		"one form of several":                        {[]string{"huawei.com/Ascend910B3", "2"}, []gpu.Limit{line("huawei.com/Ascend910B3", gpu.Devices, gpu.Ascend, "huawei.com/Ascend910B3", 2)}},
		"memory goes by the count":                   {[]string{"huawei.com/Ascend910B3-memory", "2"}, []gpu.Limit{line("huawei.com/Ascend910B3-memory", gpu.Memory, gpu.Ascend, "huawei.com/Ascend910B3", 2)}},
		"units of memory":                            {[]string{"iluvatar.ai/MR-V100.vMem", "3"}, []gpu.Limit{line("iluvatar.ai/MR-V100.vMem", gpu.Memory, gpu.Iluvatar, "iluvatar.ai/MR-V100-vgpu", 768)}},
		"units of compute":                           {[]string{"mthreads.com/sgpu-core", "8"}, []gpu.Limit{line("mthreads.com/sgpu-core", gpu.Compute, gpu.Musa, "", 50)}},
		"units of compute, rounded up like requests": {[]string{"mthreads.com/sgpu-core", "1"}, []gpu.Limit{line("mthreads.com/sgpu-core", gpu.Compute, gpu.Musa, "", 7)}},
		"another name of compute":                    {[]string{"nvidia.com/cores", "8"}, []gpu.Limit{line("nvidia.com/cores", gpu.Compute, gpu.Nvidia, "", 8)}},
		"none at all":                                {[]string{"nvidia.com/gpu", "0"}, []gpu.Limit{line("nvidia.com/gpu", gpu.Devices, gpu.Nvidia, "", 0)}},
		"less than none":                             {[]string{"nvidia.com/gpu", "-1"}, []gpu.Limit{line("nvidia.com/gpu", gpu.Devices, gpu.Nvidia, "", 0)}},
		"a fraction":                                 {[]string{"nvidia.com/gpu", "2900m"}, []gpu.Limit{line("nvidia.com/gpu", gpu.Devices, gpu.Nvidia, "", 2)}},
		"less than one":                              {[]string{"nvidia.com/gpu", "1n"}, []gpu.Limit{line("nvidia.com/gpu", gpu.Devices, gpu.Nvidia, "", 0)}},
		"a suffix":                                   {[]string{"nvidia.com/gpumem", "2k"}, []gpu.Limit{line("nvidia.com/gpumem", gpu.Memory, gpu.Nvidia, "", 2000)}},
		"more than there can be":                     {[]string{"nvidia.com/gpumem", "9223372036854775807"}, []gpu.Limit{line("nvidia.com/gpumem", gpu.Memory, gpu.Nvidia, "", mostCounted)}},
		"more than fits an integer":                  {[]string{"nvidia.com/gpumem", "1e30"}, []gpu.Limit{line("nvidia.com/gpumem", gpu.Memory, gpu.Nvidia, "", mostCounted)}},
		"an exponent without end":                    {[]string{"nvidia.com/gpumem", "1e1999999998"}, []gpu.Limit{line("nvidia.com/gpumem", gpu.Memory, gpu.Nvidia, "", mostCounted)}},
		"in units more than fits":                    {[]string{"metax-tech.com/vmemory", "9007199254740992"}, []gpu.Limit{line("metax-tech.com/vmemory", gpu.Memory, gpu.Metax, "metax-tech.com/sgpu", mostCounted)}},
		"every line, in order, one by one": {
			[]string{"requests.nvidia.com/gpu", "3", "cpu", "1", "nvidia.com/gpu", "2", "limits.nvidia.com/gpu", "4"},
			[]gpu.Limit{
				line("limits.nvidia.com/gpu", gpu.Devices, gpu.Nvidia, "", 4),
				line("nvidia.com/gpu", gpu.Devices, gpu.Nvidia, "", 2),
				line("requests.nvidia.com/gpu", gpu.Devices, gpu.Nvidia, "", 3),
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, uncounted := Quota(quotaWith(tc.hard...))
			if diff := cmp.Diff(tenancy.Quota{Namespace: "ml", Name: "gpus", Limits: tc.want}, got); diff != "" {
				t.Errorf("quota (-want +got):\n%s", diff)
			}
			if uncounted != nil {
				t.Errorf("not counted: %q", uncounted)
			}
		})
	}
}

func TestQuotaSaysWhatItDoesNotCount(t *testing.T) {
	scopes := func(q *corev1.ResourceQuota) {
		q.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotBestEffort}
	}
	selector := func(q *corev1.ResourceQuota) {
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: corev1.ResourceQuotaScopePriorityClass}}}
	}
	tests := map[string]struct {
		hard   []string
		change func(*corev1.ResourceQuota)
		want   []string
	}{
		"percentages": {
			[]string{"requests.nvidia.com/gpumem-percentage", "100"}, nil,
			[]string{"spec.hard[requests.nvidia.com/gpumem-percentage]: percentages of unlike cards have no sum; write nvidia.com/gpumem"},
		},
		"a name of ours that is none": {
			[]string{"limits.heteroflow.io/gpus", "1", "heteroflow.io/gpumem", "1"}, nil,
			[]string{"spec.hard[heteroflow.io/gpumem]: heteroflow.io/gpumem is no resource", "spec.hard[limits.heteroflow.io/gpus]: heteroflow.io/gpus is no resource"},
		},
		"scopes": {
			[]string{"nvidia.com/gpu", "1", "cpu", "1"}, scopes,
			[]string{"spec.hard[nvidia.com/gpu]: a quota with spec.scopes is not counted for cards; write one without"},
		},
		"a selector of scopes": {
			[]string{"heteroflow.io/gpu", "1"}, selector,
			[]string{"spec.hard[heteroflow.io/gpu]: a quota with spec.scopeSelector is not counted for cards; write one without"},
		},
		"scopes of nothing about cards": {[]string{"cpu", "1"}, scopes, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			q := quotaWith(tc.hard...)
			if tc.change != nil {
				tc.change(q)
			}
			got, uncounted := Quota(q)
			if diff := cmp.Diff(tc.want, uncounted); diff != "" {
				t.Errorf("not counted (-want +got):\n%s", diff)
			}
			if got.Limits != nil {
				t.Errorf("counted all the same: %v", got.Limits)
			}
		})
	}
	empty := quotaWith("nvidia.com/gpu", "1")
	empty.Spec.ScopeSelector = &corev1.ScopeSelector{}
	if got, uncounted := Quota(empty); len(got.Limits) != 1 || uncounted != nil {
		t.Errorf("a selector that selects by nothing: %v, %q", got.Limits, uncounted)
	}
}

// Every name by which anybody can ask for cards is counted or reported under each
// of the names that a quota may have for it. What is counted is what a container
// is charged for that asks by that name for the same amount.
func TestQuotaKnowsEveryResource(t *testing.T) {
	for _, name := range ManagedResources() {
		for _, prefix := range []string{"", "requests.", "limits."} {
			written := prefix + string(name)
			q, uncounted := Quota(quotaWith(written, "16"))
			switch {
			case strings.HasSuffix(string(name), "-percentage"):
				if q.Limits != nil || len(uncounted) != 1 || !strings.Contains(uncounted[0], written) {
					t.Errorf("%s: limits %v, reported %q", written, q.Limits, uncounted)
				}
				continue
			case len(q.Limits) != 1 || uncounted != nil:
				t.Errorf("%s: limits %v, reported %q", written, q.Limits, uncounted)
				continue
			}
			l := q.Limits[0]
			if got, want := l.Of(chargedFor(t, name, 16)), l.Most; l.Name != written || got != want {
				t.Errorf("%s: the limit is %d, and who asks for just that is charged %d", written, want, got)
			}
		}
	}
}

// chargedFor returns what a container is charged for that asks by that name for the
// amount, as the sole dimension that it counts.
func chargedFor(t *testing.T, name corev1.ResourceName, amount int64) gpu.Spending {
	t.Helper()
	f := formOf(name)
	a, errs := f.read(corev1.ResourceList{name: *resource.NewQuantity(amount, resource.DecimalSI)})
	if errs != nil && f.legal == nil {
		t.Fatal(errs)
	}
	vendor, by := f.vendor, string(f.count)
	if vendor == "" {
		vendor, by = gpu.Hygon, "" // any will do
	}
	s := gpu.Spend{Vendor: vendor, Resource: by, Devices: int64(a.count), Whole: int64(a.count), Memory: a.memory, Cores: a.cores}
	if f.legal != nil {
		s.Memory = f.unit * gpu.MiB(amount)
	}
	return gpu.Spending{s}
}

// What is asked for by one count of a vendor is no matter of another's quota, but
// by no count it is one of each.
func TestQuotasOfOneVendor(t *testing.T) {
	q, _ := Quota(quotaWith("metax-tech.com/sgpu", "9"))
	for by, want := range map[string]int64{"metax-tech.com/sgpu": 1, "metax-tech.com/gpu": 0, "": 1} {
		if got := q.Limits[0].Of(gpu.Spending{{Vendor: gpu.Metax, Resource: by, Devices: 1}}); got != want {
			t.Errorf("by %q: counts %d, want %d", by, got, want)
		}
	}
	if got := q.Limits[0].Of(gpu.Spending{{Vendor: gpu.Nvidia, Devices: 1}}); got != 0 {
		t.Errorf("another vendor's: counts %d", got)
	}
}

// FuzzQuota: no panic; what is about cards is counted within bounds or reported.
func FuzzQuota(f *testing.F) {
	f.Add("nvidia.com/gpu", "1", "requests.nvidia.com/gpumem-percentage", "50", "")
	f.Add("limits.heteroflow.io/gpus", "-3", "iluvatar.ai/MR-V100.vMem", "9223372036854775807", "Terminating")
	f.Add("requests.limits.nvidia.com/gpu", "1e30", "mthreads.com/sgpu-core", "15500m", "")
	f.Fuzz(func(t *testing.T, name1, amount1, name2, amount2, scope string) {
		q := quotaWith()
		for name, amount := range map[string]string{name1: amount1, name2: amount2} {
			if v, err := resource.ParseQuantity(amount); err == nil && sensible(string(unprefixed(corev1.ResourceName(name))), amount) {
				q.Spec.Hard[corev1.ResourceName(name)] = v
			}
		}
		if scope != "" {
			q.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScope(scope)}
		}
		about := 0
		for name := range q.Spec.Hard {
			if of := unprefixed(name); formOf(of) != nil || strings.HasPrefix(string(of), own) {
				about++
			}
		}
		read, uncounted := Quota(q)
		if len(read.Limits)+len(uncounted) != about || scope != "" && read.Limits != nil {
			t.Fatalf("of %d lines %d are counted and %d reported", about, len(read.Limits), len(uncounted))
		}
		for _, l := range read.Limits {
			if l.Most < 0 || l.Most > mostCounted || l.Name == "" || l.Quota == "" || l.Most > math.MaxInt64/2 {
				t.Fatalf("limit %+v", l)
			}
		}
		again, _ := Quota(q)
		if diff := cmp.Diff(read, again); diff != "" {
			t.Fatalf("read twice (-first +second):\n%s", diff)
		}
	})
}
