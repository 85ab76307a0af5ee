package codec

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Containers see what the Binding wrote, or else the pod may be on any card.
func TestShown(t *testing.T) {
	p := placed(
		granted("a", 0, gpu.App, whole(gpu.Nvidia, "GPU-a", 0, 40960)),
		granted("b", 1, gpu.App, sliceOf(gpu.Nvidia, "GPU-b", 1, 2048, 30)),
	)
	set := func(key, value string) func(map[string]string) {
		return func(m map[string]string) { m["heteroflow.io/"+key] = value }
	}
	swap := func(m map[string]string) {
		seen := maps.Clone(m)
		for _, name := range []string{"visible-devices-", "mem-limit-", "core-limit-"} {
			m[own+name+"0"], m[own+name+"1"] = seen[own+name+"1"], seen[own+name+"0"]
		}
	}
	tests := map[string]struct {
		change func(map[string]string)
		as     bool // the Binding wrote it
	}{
		"as it was bound":                     {func(map[string]string) {}, true},
		"other keys":                          {set("gpu-model", "A100"), true},
		"left from an earlier life":           {set("core-limit-9", ""), true},
		"the cards of the pod's own, swapped": {swap, true},
		"another card":                        {set("visible-devices-0", "GPU-z"), false},
		"one card more":                       {set("visible-devices-0", "GPU-a,GPU-z"), false},
		"the card of the other container":     {set("visible-devices-0", "GPU-b"), false},
		"a larger slice":                      {set("mem-limit-1", "40960"), false},
		"more compute":                        {set("core-limit-1", "100"), false},
		"no bound":                            {func(m map[string]string) { delete(m, "heteroflow.io/mem-limit-1") }, false},
		"a bound to what is whole":            {set("mem-limit-0", "1"), false},
		"a container that has none":           {set("visible-devices-2", "GPU-z"), false},
		"a key that is no container's":        {set("visible-devices-x", "GPU-z"), true}, // which the policy lets everybody write
		"nothing at all":                      {func(m map[string]string) { clear(m) }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := bind(t, podWith(app("a", "nvidia.com/gpu", "1"), app("b", "nvidia.com/gpu", "1", "nvidia.com/gpumem", "2048", "nvidia.com/gpucores", "30")), p)
			if err := Doubt(pod); err != nil {
				t.Fatalf("as it was bound: %v", err)
			}
			record := pod.Annotations[AnnotationAllocation]
			tc.change(pod.Annotations)
			if err := Shown(pod, p.Grants); (err == nil) != tc.as {
				t.Errorf("Shown = %v", err)
			}
			pod.Annotations[AnnotationAllocation], pod.Annotations[AnnotationHAMiNode] = record, pod.Spec.NodeName
			switch got := Placement(pod); {
			case Ours(pod) != tc.as:
				t.Errorf("ours is %t", Ours(pod))
			case len(got.Grants) != 2, (len(got.Foreign) == 0) != tc.as:
				t.Errorf("it holds %v and claims %v", got.Grants, got.Foreign)
			}
		})
	}
}

// Device plugins pick cards that are known by number alone, and containers are
// shown none by us.
func TestShownOfCountedCards(t *testing.T) {
	p := placed(granted("main", 0, gpu.App, whole(gpu.Nvidia, "n1-nvidia-3", 3, 0)))
	pod := bind(t, podWith(app("main", "nvidia.com/gpu", "1")), p)
	if err := Shown(pod, p.Grants); err != nil {
		t.Errorf("as it was bound: %v", err)
	}
	pod.Annotations["heteroflow.io/visible-devices-0"] = "3"
	if err := Shown(pod, p.Grants); err == nil {
		t.Error("a card of somebody's choice is let pass")
	}
}

func TestDoubt(t *testing.T) {
	if err := Doubt(podWith(app("main", "nvidia.com/gpu", "1"), boundTo("n1"))); err != nil {
		t.Errorf("bound by hand, without a record: %v", err)
	}
	sameFaults(t, Doubt(podWith(boundTo("n1"), annotated("heteroflow.io/mem-limit-0", "5"))),
		"annotation heteroflow.io/mem-limit-0: shows cards, and there is no record of them")
	p := placed(granted("main", 0, gpu.App, whole(gpu.Nvidia, "GPU-a", 0, 100)))
	static := bind(t, podWith(app("main", "nvidia.com/gpu", "1"), annotated(corev1.MirrorPodAnnotationKey, "x")), p)
	sameFaults(t, Doubt(static), "it is a static pod: not bound by us")
}

func TestWrittenEarly(t *testing.T) {
	pod := podWith(annotated(AnnotationEpoch, "1", AnnotationContainers, "{}", "heteroflow.io/core-limit-1", "", AnnotationHAMiNode, "n1",
		"hami.io/vgpu-node", "n1", AnnotationGPUType, "nvidia"))
	pod.Labels = map[string]string{BoundByLabel: "", "app": "x"}
	want := []string{AnnotationHAMiNode, BoundByLabel, "heteroflow.io/core-limit-1", AnnotationEpoch}
	if diff := cmp.Diff(want, WrittenEarly(pod)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if keys := WrittenEarly(podWith()); keys != nil {
		t.Errorf("keys of a pod without any: %v", keys)
	}
}
