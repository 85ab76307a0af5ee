package oracle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// quota is a ResourceQuota of namespace x, by pairs of a name and an amount.
func quota(pairs ...string) corev1.ResourceQuota {
	q := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "q"}}
	q.Spec.Hard = corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		q.Spec.Hard[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return q
}

// limited is a tenant of x and y with a quota.
func limited(set func(*TenantSpec)) []Tenant {
	t := tenant("blue", nil, "x", "y")
	set(&t.Spec)
	return []Tenant{t}
}

// of says whose the build is.
func (b *build) of(owner string) *build {
	b.alloc.Tenant = owner
	return b
}

func TestCheckQuotas(t *testing.T) {
	// p holds card a whole, in the vendor's form; q 100 MiB and 1 percent of d, in the neutral form.
	p := func() *build { return newPod("x", "p").ask(app, limits(vendorCards, 1), whole("a")) }
	q := func() *build { return newPod("y", "q").ask(app, limits(sliceMemory, 100), part("d", 100, 1)) }
	both := pods(p().of("blue").on("n1"), q().of("blue").on("n1"))
	alone := pods(p().on("n1"))
	one, many := int64(1), int64(10099)
	tests := map[string]struct {
		world  World
		before []string
		want   []string
	}{
		"as many cards": {
			world: World{Tenants: limited(func(s *TenantSpec) { n := int64(2); s.Quota.Cards.Limit = &n }), Pods: both}},
		"a card more": {
			world: World{Tenants: limited(func(s *TenantSpec) { s.Quota.Cards.Limit = &one }), Pods: both},
			want:  []string{"Tenant blue: cards: 2 of 1 are held by x/p, y/q"}},
		"a card more since": {
			world:  World{Tenants: limited(func(s *TenantSpec) { s.Quota.Cards.Limit = &one }), Pods: both},
			before: []string{"x/p", "y/q"}},
		"a card more by one who came since": {
			world:  World{Tenants: limited(func(s *TenantSpec) { s.Quota.Cards.Limit = &one }), Pods: both},
			before: []string{"x/p"},
			want:   []string{"Tenant blue: cards: 2 of 1 are held by x/p, y/q"}},
		"memory, a whole card in full": {
			world: World{Tenants: limited(func(s *TenantSpec) { s.Quota.MemoryMiB.Limit = &many }), Pods: both},
			want:  []string{"Tenant blue: memoryMiB: 10100 of 10099 are held by x/p, y/q"}},
		"compute, a whole card in full": {
			world: World{Tenants: limited(func(s *TenantSpec) { n := int64(100); s.Quota.Cores.Limit = &n }), Pods: both},
			want:  []string{"Tenant blue: cores: 101 of 100 are held by x/p, y/q"}},
		"both claimants' quotas": {
			world: World{
				Tenants: append(limited(func(s *TenantSpec) { s.Quota.Cards.Limit = new(int64) }), tenant("red", nil, "x")),
				Pods:    pods(p().of("").on("n1"))},
			want: []string{"Tenant blue: cards: 1 of 0 are held by x/p"}},

		"a namespace's, bare":      {world: World{Quotas: []corev1.ResourceQuota{quota(vendorCards, "0")}, Pods: alone}, want: []string{"ResourceQuota x/q: nvidia.com/gpu: 1 of 0 are held by x/p"}},
		"a namespace's, requests.": {world: World{Quotas: []corev1.ResourceQuota{quota("requests."+vendorCards, "0")}, Pods: alone}, want: []string{"ResourceQuota x/q: requests.nvidia.com/gpu: 1 of 0 are held by x/p"}},
		"a namespace's, limits.":   {world: World{Quotas: []corev1.ResourceQuota{quota("limits."+vendorCards, "0")}, Pods: alone}, want: []string{"ResourceQuota x/q: limits.nvidia.com/gpu: 1 of 0 are held by x/p"}},
		"its memory": {
			world: World{Quotas: []corev1.ResourceQuota{quota(vendorMemory, "9999", "limits."+vendorMemory, "10k")}, Pods: alone},
			want:  []string{"ResourceQuota x/q: nvidia.com/gpumem: 10000 of 9999 are held by x/p"}},
		"its compute": {
			world: World{Quotas: []corev1.ResourceQuota{quota("nvidia.com/cores", "99")}, Pods: alone},
			want:  []string{"ResourceQuota x/q: nvidia.com/cores: 100 of 99 are held by x/p"}},
		"the neutral names count any vendor's": {
			world: World{Quotas: []corev1.ResourceQuota{quota(wholeCards, "0", sliceMemory, "9999", sliceCores, "99")}, Pods: alone},
			want: []string{
				"ResourceQuota x/q: heteroflow.io/gpu-cores: 100 of 99 are held by x/p",
				"ResourceQuota x/q: heteroflow.io/gpu-memory: 10000 of 9999 are held by x/p",
				"ResourceQuota x/q: heteroflow.io/gpu: 1 of 0 are held by x/p"}},
		"another namespace's": {
			world: World{Quotas: []corev1.ResourceQuota{quota(wholeCards, "0")}, Pods: pods(newPod("y", "p").ask(app, limits(vendorCards, 1), whole("a")).on("n1"))}},
		"another vendor's": {
			world: World{Quotas: []corev1.ResourceQuota{quota("huawei.com/Ascend910B3", "0", "hygon.com/dcunum", "0")}, Pods: alone}},
		"a slice is no whole card": {
			world: World{Quotas: []corev1.ResourceQuota{quota(wholeCards, "0")}, Pods: pods(slice("x", "p", "namespace/x"))}},
		"an ended pod": {
			world: World{Quotas: []corev1.ResourceQuota{quota(wholeCards, "0")}, Pods: pods(p().on("n1").but(func(b *build) { b.pod.Status.Phase = corev1.PodSucceeded }))}},
		"with scopes": {
			world: World{Quotas: []corev1.ResourceQuota{func() corev1.ResourceQuota {
				q := quota(wholeCards, "0")
				q.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
				return q
			}()}, Pods: alone}},
		"init containers are not added": {
			world: World{Quotas: []corev1.ResourceQuota{quota("limits."+vendorCards, "1")}, Pods: pods(
				newPod("x", "p").ask(ordinary, limits(vendorCards, 1), whole("a")).ask(app, limits(vendorCards, 1), whole("a")).on("n1"))}},
		"sidecars are": {
			world: World{Quotas: []corev1.ResourceQuota{quota("limits."+vendorMemory, "199")}, Pods: pods(
				newPod("x", "p").ask(sidecar, limits(vendorCards, 1, vendorMemory, 100), part("a", 100, 0)).
					ask(app, limits(vendorCards, 1, vendorMemory, 100), part("a", 100, 0)).on("n1"))},
			want: []string{"ResourceQuota x/q: limits.nvidia.com/gpumem: 200 of 199 are held by x/p"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.world.Nodes = world()
			if diff := cmp.Diff(tc.want, tc.world.Check(tc.before...)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

// The vendors' names, as they would stand in a ResourceQuota, each with 10 of its
// units: what the line counts, and how many of it.
func TestLineOf(t *testing.T) {
	type counted struct {
		Vendor, Plugin, Of string
		Most               int64
	}
	of := func(l line) string {
		for name, c := range map[string]charge{"devices": {devices: 1}, "whole": {whole: 1}, "memory": {memory: 1}, "compute": {compute: 1}} {
			if l.of(c) == 1 {
				return name
			}
		}
		return ""
	}
	tests := map[string]counted{
		"heteroflow.io/gpu":              {"", "", "whole", 10},
		"heteroflow.io/gpu-memory":       {"", "", "memory", 10},
		"heteroflow.io/gpu-cores":        {"", "", "compute", 10},
		"nvidia.com/gpu":                 {"nvidia", "", "devices", 10},
		"nvidia.com/gpumem":              {"nvidia", "", "memory", 10},
		"nvidia.com/gpucores":            {"nvidia", "", "compute", 10},
		"nvidia.com/cores":               {"nvidia", "", "compute", 10},
		"mthreads.com/sgpu-memory":       {"musa", "", "memory", 5120},
		"mthreads.com/sgpu-core":         {"musa", "", "compute", 63}, // 62.5
		"cambricon.com/mlu.smlu.vmemory": {"cambricon", "", "memory", 2560},
		"metax-tech.com/gpu":             {"metax", "metax-tech.com/gpu", "devices", 10},
		"metax-tech.com/vmemory":         {"metax", "metax-tech.com/sgpu", "memory", 10240},
		"kunlunxin.com/vxpu":             {"kunlun", "kunlunxin.com/vxpu", "devices", 10},
		"huawei.com/Ascend910B3":         {"ascend", "huawei.com/Ascend910B3", "devices", 10},
		"huawei.com/Ascend910B3-memory":  {"ascend", "huawei.com/Ascend910B3", "memory", 10},
		"iluvatar.ai/MR-V100.vMem":       {"iluvatar", "iluvatar.ai/MR-V100-vgpu", "memory", 2560},
	}
	for name, want := range tests {
		got := namespaceLines(new(quota(name, "10")))
		if len(got) != 1 {
			t.Errorf("%s: %d lines", name, len(got))
			continue
		}
		if diff := cmp.Diff(want, counted{got[0].vendor, got[0].plugin, of(got[0]), got[0].most}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, name := range []string{"cpu", "requests.memory", "pods", "count/pods", vendorShare, "example.com/gpu"} {
		if got := namespaceLines(new(quota(name, "10"))); len(got) > 0 {
			t.Errorf("%s: %d lines", name, len(got))
		}
	}
}

// A line of one resource of several counts that and what was asked for by none.
func TestLineCountsOneResource(t *testing.T) {
	b := bill{"x/p", "x", []charge{
		{vendor: "metax", plugin: "metax-tech.com/gpu", devices: 1},
		{vendor: "metax", plugin: "metax-tech.com/sgpu", devices: 10},
		{vendor: "metax", devices: 100},
		{vendor: "nvidia", devices: 1000},
	}}
	for name, want := range map[string]int64{"metax-tech.com/gpu": 101, "metax-tech.com/sgpu": 110, "nvidia.com/gpu": 1000} {
		l := namespaceLines(new(quota(name, "1")))
		if got := l[0].counts(b); got != want {
			t.Errorf("%s counts %d, want %d", name, got, want)
		}
	}
}

func TestRoomByQuota(t *testing.T) {
	held := pods(newPod("y", "p").ask(app, limits(wholeCards, 1), whole("a")).of("blue").on("n1"))
	asks := func(pairs ...any) *corev1.Pod { return newPod("x", "new").ask(app, limits(pairs...)).pod }
	n := func(n int64) *int64 { return &n }
	cards := func(most int64) []Tenant {
		return limited(func(s *TenantSpec) { s.Quota.Cards.Limit = n(most) })
	}
	tests := map[string]struct {
		world World
		pod   *corev1.Pod
		want  []string
	}{
		"within it":            {World{Tenants: cards(2), Pods: held}, asks(wholeCards, 1), []string{"n1"}},
		"at its limit":         {World{Tenants: cards(1), Pods: held}, asks(wholeCards, 1), nil},
		"over by one of two":   {World{Tenants: cards(2), Pods: held}, asks(wholeCards, 2), nil},
		"of the namespace":     {World{Quotas: []corev1.ResourceQuota{quota("limits."+wholeCards, "0")}}, asks(wholeCards, 1), nil},
		"adds nothing to it":   {World{Quotas: []corev1.ResourceQuota{quota("limits."+wholeCards, "0")}}, asks(sliceMemory, 10), []string{"n1"}},
		"a smaller card would": {World{Quotas: []corev1.ResourceQuota{quota("limits."+sliceMemory, "1000")}}, asks(wholeCards, 1), []string{"n1"}},
		"no card is so small":  {World{Quotas: []corev1.ResourceQuota{quota("limits."+sliceMemory, "999")}}, asks(wholeCards, 1), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.world.Nodes = world()
			if diff := cmp.Diff(tc.want, tc.world.Room(tc.pod)); diff != "" {
				t.Errorf("nodes with room (-want +got):\n%s", diff)
			}
		})
	}
}
