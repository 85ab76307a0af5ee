package codec

import (
	"testing"
	"time"

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
	priority := int32(70)
	pod.Spec.Priority = &priority
	pod.Spec.Overhead = quantities("cpu", "100m")
	want := gpu.Request{
		Pod: "7d9c", Namespace: "team-a", Name: "train-0", Priority: 70,
		Asks:   []gpu.Ask{{Container: "main", Number: 1, Vendor: gpu.Nvidia, Count: 1, Plugin: "nvidia.com/gpu", Whole: true}},
		CPU:    3100, // the init container's, and the overhead
		Memory: 1 << 30,
		Models: []string{"A100"},
		NUMA:   gpu.NoNUMA,

		Runtime: 2*time.Hour + 30*time.Second, // by default, with its grace
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
	want := gpu.Request{Pod: "7d9c", Namespace: "team-a", Name: "train-0", CPU: 100, NUMA: gpu.NoNUMA}
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
