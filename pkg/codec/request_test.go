package codec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

func TestRequest(t *testing.T) {
	pod := podWith(
		initContainer("fetch", "cpu", "3"),
		app("main", "nvidia.com/gpu", "1"), requesting("cpu", "1500m", "memory", "1Gi", "nvidia.com/gpu", "1"),
		annotated("heteroflow.io/gpu-model", "A100", "example.com/anything", "at all"),
	)
	pod.Spec.InitContainers[0].Resources.Requests = quantities("cpu", "3")
	pod.Spec.Overhead = quantities("cpu", "100m")
	want := gpu.Request{
		Pod: "7d9c", Namespace: "team-a", Name: "train-0", Tenant: "team-a",
		Asks:   []gpu.Ask{{Container: "main", Number: 1, Vendor: gpu.Nvidia, Count: 1, Whole: true}},
		CPU:    3100, // the init container's, and the overhead
		Memory: 1 << 30,
		Models: []string{"A100"},
		NUMA:   gpu.NoNUMA,
	}
	got, err := Request(pod, policy.Default())
	sameFaults(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

// A pod that asks for no card is none of our business, whatever it says.
func TestRequestWithoutCards(t *testing.T) {
	pod := podWith(app("main"), requesting("cpu", "100m"), annotated("heteroflow.io/nonsense", "1", "heteroflow.io/numa", "x", AnnotationContainers, "["))
	got, err := Request(pod, policy.Default())
	sameFaults(t, err)
	want := gpu.Request{Pod: "7d9c", Namespace: "team-a", Name: "train-0", Tenant: "team-a", CPU: 100, NUMA: gpu.NoNUMA}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestMainResources(t *testing.T) {
	sidecarPod := podWith(sidecar("proxy"), app("a"), requesting("cpu", "2", "memory", "100"), app("b"), requesting("cpu", "1", "memory", "1"))
	sidecarPod.Spec.InitContainers[0].Resources.Requests = quantities("cpu", "500m")
	podLevel := podWith(app("a"), requesting("cpu", "1"))
	podLevel.Spec.Resources = &corev1.ResourceRequirements{Requests: quantities("cpu", "8", "memory", "2Gi")}
	resizing := podWith(app("a"), requesting("cpu", "1"))
	resizing.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", AllocatedResources: quantities("cpu", "4")}}
	tests := map[string]struct {
		pod    *corev1.Pod
		cpu    gpu.MilliCPU
		memory gpu.Bytes
	}{
		"nothing":                      {podWith(app("a")), 0, 0},
		"sum and sidecar":              {sidecarPod, 3500, 101},
		"the pod's own figures":        {podLevel, 8000, 2 << 30},
		"being resized":                {resizing, 4000, 0},
		"a fraction is rounded up":     {podWith(app("a"), requesting("cpu", "1n", "memory", "1m")), 1, 1},
		"a huge figure does not wrap":  {podWith(app("a"), requesting("cpu", "9e18", "memory", "1e30")), mostCounted, mostCounted},
		"two huge ones do not either":  {podWith(app("a"), requesting("cpu", "9e18"), app("b"), requesting("cpu", "9e18")), mostCounted, 0},
		"a negative one frees nothing": {podWith(app("a"), requesting("cpu", "-9", "memory", "-1")), 0, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cpu, memory := mainResources(tc.pod)
			if cpu != tc.cpu || memory != tc.memory {
				t.Errorf("mainResources = %d, %d; want %d, %d", cpu, memory, tc.cpu, tc.memory)
			}
		})
	}
}

func TestSoftPreferences(t *testing.T) {
	affine := func(a corev1.Affinity) corev1.PodSpec { return corev1.PodSpec{Affinity: &a} }
	spread := func(w corev1.UnsatisfiableConstraintAction) corev1.PodSpec {
		return corev1.PodSpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: w}}}
	}
	preferredNode := []corev1.PreferredSchedulingTerm{{Weight: 1}}
	preferredPod := []corev1.WeightedPodAffinityTerm{{Weight: 1}}
	tests := map[string]struct {
		spec corev1.PodSpec
		want bool
	}{
		"none":                        {corev1.PodSpec{}, false},
		"empty affinity":              {affine(corev1.Affinity{}), false},
		"required node affinity":      {affine(corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}}), false},
		"preferred node affinity":     {affine(corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferredNode}}), true},
		"preferred pod affinity":      {affine(corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferredPod}}), true},
		"preferred pod anti-affinity": {affine(corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferredPod}}), true},
		"hard spread":                 {spread(corev1.DoNotSchedule), false},
		"soft spread":                 {spread(corev1.ScheduleAnyway), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := podWith(app("main", "nvidia.com/gpu", "1"))
			pod.Spec.Affinity, pod.Spec.TopologySpreadConstraints = tc.spec.Affinity, tc.spec.TopologySpreadConstraints
			got, err := Request(pod, policy.Default())
			sameFaults(t, err)
			if got.SoftPreferences != tc.want {
				t.Errorf("SoftPreferences = %t, want %t", got.SoftPreferences, tc.want)
			}
		})
	}
}

func TestAnnotationsOfAuthors(t *testing.T) {
	tests := map[string]struct {
		annotations []string
		want        gpu.Request // beside what every pod here has
	}{
		"none":                   {nil, gpu.Request{NUMA: gpu.NoNUMA}},
		"type in any case":       {[]string{"heteroflow.io/gpu-type", "NVIDIA"}, gpu.Request{NUMA: gpu.NoNUMA, Vendor: gpu.Nvidia}},
		"one NUMA node":          {[]string{"heteroflow.io/numa-bind", "true"}, gpu.Request{NUMA: gpu.NoNUMA, NUMABind: true}},
		"one NUMA node, HAMi's":  {[]string{"nvidia.com/numa-bind", "true"}, gpu.Request{NUMA: gpu.NoNUMA, NUMABind: true}},
		"any NUMA nodes":         {[]string{"heteroflow.io/numa-bind", "false"}, gpu.Request{NUMA: gpu.NoNUMA}},
		"models":                 {[]string{"heteroflow.io/gpu-model", "A100, H100 PCIe"}, gpu.Request{NUMA: gpu.NoNUMA, Models: []string{"A100", "H100 PCIe"}}},
		"models by HAMi's name":  {[]string{"hami.io/gpu-type", "A100"}, gpu.Request{NUMA: gpu.NoNUMA, Models: []string{"A100"}}},
		"models by NVIDIA's":     {[]string{"nvidia.com/use-gputype", "A100"}, gpu.Request{NUMA: gpu.NoNUMA, Models: []string{"A100"}}},
		"the same by all names":  {[]string{"heteroflow.io/gpu-model", "A100", "nvidia.com/use-gputype", " A100 ", "hami.io/gpu-type", "A100"}, gpu.Request{NUMA: gpu.NoNUMA, Models: []string{"A100"}}},
		"models excluded":        {[]string{"heteroflow.io/gpu-model-exclude", "T4"}, gpu.Request{NUMA: gpu.NoNUMA, NotModels: []string{"T4"}}},
		"... by NVIDIA's name":   {[]string{"nvidia.com/nouse-gputype", "T4"}, gpu.Request{NUMA: gpu.NoNUMA, NotModels: []string{"T4"}}},
		"UUIDs":                  {[]string{"heteroflow.io/gpu-uuid-include", "GPU-a,GPU-b"}, gpu.Request{NUMA: gpu.NoNUMA, Cards: []gpu.CardID{"GPU-a", "GPU-b"}}},
		"... by HAMi's name":     {[]string{"hami.io/gpu-uuid-include", "GPU-a"}, gpu.Request{NUMA: gpu.NoNUMA, Cards: []gpu.CardID{"GPU-a"}}},
		"UUIDs by NVIDIA's name": {[]string{"nvidia.com/use-gpuuuid", "GPU-a"}, gpu.Request{NUMA: gpu.NoNUMA, Cards: []gpu.CardID{"GPU-a"}}},
		"UUIDs excluded":         {[]string{"heteroflow.io/gpu-uuid-exclude", "GPU-c"}, gpu.Request{NUMA: gpu.NoNUMA, NotCards: []gpu.CardID{"GPU-c"}}},
		"... by HAMi's name too": {[]string{"hami.io/gpu-uuid-exclude", "GPU-c"}, gpu.Request{NUMA: gpu.NoNUMA, NotCards: []gpu.CardID{"GPU-c"}}},
		"... and by NVIDIA's":    {[]string{"nvidia.com/nouse-gpuuuid", "GPU-c"}, gpu.Request{NUMA: gpu.NoNUMA, NotCards: []gpu.CardID{"GPU-c"}}},
		"NUMA node 0":            {[]string{"heteroflow.io/numa", "0"}, gpu.Request{NUMA: 0}},
		"NUMA by HAMi's name":    {[]string{"hami.io/numa-hint", "1"}, gpu.Request{NUMA: 1}},
		"node policy":            {[]string{"heteroflow.io/node-policy", "binpack"}, gpu.Request{NUMA: gpu.NoNUMA, NodePolicy: gpu.Binpack}},
		"... of HAMi":            {[]string{"hami.io/node-scheduler-policy", "spread"}, gpu.Request{NUMA: gpu.NoNUMA, NodePolicy: gpu.Spread}},
		"card policy":            {[]string{"heteroflow.io/card-policy", "spread"}, gpu.Request{NUMA: gpu.NoNUMA, CardPolicy: gpu.Spread}},
		"card policy of HAMi":    {[]string{"hami.io/gpu-scheduler-policy", "binpack"}, gpu.Request{NUMA: gpu.NoNUMA, CardPolicy: gpu.Binpack}},
		"the scheduler's own, on a copy of a bound pod": {
			[]string{
				"heteroflow.io/allocation", "{}", "heteroflow.io/epoch", "0", "heteroflow.io/port", "8000", "heteroflow.io/preempt-count", "1",
				"heteroflow.io/visible-devices-0", "GPU-a", "heteroflow.io/mem-limit-12", "1", "heteroflow.io/core-limit-0", "1", "hami.io/bind-node", "n1",
			},
			gpu.Request{NUMA: gpu.NoNUMA},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := podWith(app("main", "heteroflow.io/gpu", "1"), annotated(tc.annotations...))
			tc.want.Pod, tc.want.Namespace, tc.want.Name, tc.want.Tenant = "7d9c", "team-a", "train-0", "team-a"
			tc.want.Asks = []gpu.Ask{{Container: "main", Count: 1, Whole: true}}
			got, err := Request(pod, policy.Default())
			sameFaults(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnnotationsRefused(t *testing.T) {
	const vendors = "musa, hygon, cambricon, biren, ascend, kunlun, iluvatar, nvidia, metax, enflame"
	tests := map[string]struct {
		annotations []string
		want        []string
	}{
		"unknown": {
			[]string{"heteroflow.io/require-nvlink", "true", "heteroflow.io/gpumem", "8192"},
			[]string{"unknown annotation heteroflow.io/gpumem", "unknown annotation heteroflow.io/require-nvlink"},
		},
		"a node's key":              {[]string{"heteroflow.io/devices", "{}"}, []string{"unknown annotation heteroflow.io/devices"}},
		"not quite the scheduler's": {[]string{"heteroflow.io/visible-devices-main", "GPU-a"}, []string{"unknown annotation heteroflow.io/visible-devices-main"}},
		"no number at all":          {[]string{"heteroflow.io/mem-limit-", "1"}, []string{"unknown annotation heteroflow.io/mem-limit-"}},
		"the prefix alone":          {[]string{"heteroflow.io/", "1"}, []string{"unknown annotation heteroflow.io/"}},
		"no vendor":                 {[]string{"heteroflow.io/gpu-type", "amd"}, []string{`annotation heteroflow.io/gpu-type: "amd" is not a vendor; the vendors are ` + vendors}},
		"another vendor":            {[]string{"heteroflow.io/gpu-type", "ascend"}, []string{`annotation heteroflow.io/gpu-type: "ascend" contradicts container main, which asks for cards of nvidia`}},
		"no model":                  {[]string{"heteroflow.io/gpu-model", ""}, []string{`annotation heteroflow.io/gpu-model: "" has an empty item; write a comma list, or leave the annotation out`}},
		"an empty item":             {[]string{"nvidia.com/nouse-gpuuuid", "GPU-a,,GPU-b"}, []string{`annotation nvidia.com/nouse-gpuuuid: "GPU-a,,GPU-b" has an empty item; write a comma list, or leave the annotation out`}},
		"no NUMA node":              {[]string{"heteroflow.io/numa", "-1"}, []string{`annotation heteroflow.io/numa: "-1" is not the number of a NUMA node, 0..1023`}},
		"a signed NUMA node":        {[]string{"hami.io/numa-hint", "+1"}, []string{`annotation hami.io/numa-hint: "+1" is not the number of a NUMA node, 0..1023`}},
		"a high NUMA node":          {[]string{"heteroflow.io/numa", "1024"}, []string{`annotation heteroflow.io/numa: "1024" is not the number of a NUMA node, 0..1023`}},
		"no NUMA node of any int":   {[]string{"heteroflow.io/numa", "99999999999999999999"}, []string{`annotation heteroflow.io/numa: "99999999999999999999" is not the number of a NUMA node, 0..1023`}},
		"one NUMA node":             {[]string{"heteroflow.io/numa-bind", "yes"}, []string{`annotation heteroflow.io/numa-bind: "yes" is not true or false`}},
		"policy":                    {[]string{"heteroflow.io/node-policy", "binpacking"}, []string{`annotation heteroflow.io/node-policy: "binpacking" is not one of binpack, spread`}},
		"policy in another case":    {[]string{"heteroflow.io/card-policy", "Spread"}, []string{`annotation heteroflow.io/card-policy: "Spread" is not one of binpack, spread`}},
		"HAMi's other policies":     {[]string{"hami.io/gpu-scheduler-policy", "mutex"}, []string{`annotation hami.io/gpu-scheduler-policy: "mutex" is not one of binpack, spread`}},
		"two names, two values": {
			[]string{"heteroflow.io/gpu-model", "A100", "hami.io/gpu-type", "H100"},
			[]string{`annotation heteroflow.io/gpu-model: "A100" differs from hami.io/gpu-type, which means the same and is "H100"`},
		},
		"two aliases, two values": {
			[]string{"hami.io/gpu-uuid-include", "GPU-a", "nvidia.com/use-gpuuuid", "GPU-b"},
			[]string{`annotation hami.io/gpu-uuid-include: "GPU-a" differs from nvidia.com/use-gpuuuid, which means the same and is "GPU-b"`},
		},
		"all at once": {
			[]string{"heteroflow.io/x", "", "heteroflow.io/numa", "x", "heteroflow.io/node-policy", "x"},
			[]string{
				"unknown annotation heteroflow.io/x",
				`annotation heteroflow.io/numa: "x" is not the number of a NUMA node, 0..1023`,
				`annotation heteroflow.io/node-policy: "x" is not one of binpack, spread`,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Request(podWith(app("main", "nvidia.com/gpu", "1"), annotated(tc.annotations...)), policy.Default())
			sameFaults(t, err, tc.want...)
		})
	}
}
