package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/test/simnode"
)

// TestPlacesEachKind takes one pod of each kind all the way.
func TestPlacesEachKind(t *testing.T) {
	s := begin(t, defaults)
	s.add(
		simnode.Spec{Name: "kinds-a100", Cards: simnode.Cards("kinds-a100", 8, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)},
		simnode.Spec{Name: "kinds-ascend", Cards: simnode.Cards("kinds-ascend", 4, "ascend", "910B3", 65536)},
		simnode.Spec{Name: "kinds-mixed", Cards: append(
			simnode.Cards("kinds-mixed", 1, "nvidia", "NVIDIA-GeForce-RTX-4090", 24564),
			simnode.Cards("kinds-mixed", 2, "cambricon", "MLU370-X8", 49152)...)},
		simnode.Spec{Name: "kinds-plain", Plain: &simnode.Plain{Count: 2, Product: "Tesla-V100-SXM2-32GB", MemoryMiB: 32768}},
	)
	always := corev1.ContainerRestartPolicyAlways
	sidecar := container("sidecar", amount{sliceMemory, 2000})
	sidecar.RestartPolicy = &always
	withInit := podOf("init-and-sidecar", container("main", amount{sliceMemory, 20000}, amount{sliceCores, 40}))
	withInit.Spec.InitContainers = []corev1.Container{container("prepare", amount{sliceMemory, 10000}), sidecar}

	tests := []struct {
		pod  *corev1.Pod
		node string // "": any
	}{
		{podFor("whole-card", amount{wholeCards, 1}), ""},
		{podFor("slice", amount{sliceMemory, 10000}, amount{sliceCores, 30}), ""},
		{podFor("compute-alone", amount{sliceCores, 25}), ""},
		{with(podFor("four-of-a-model", amount{wholeCards, 4}, amount{sliceMemory, 60000}), modelKey, "h100, a100"), "kinds-a100"},
		{with(podFor("of-a-vendor", amount{sliceMemory, 40000}), typeKey, "Cambricon"), "kinds-mixed"},
		{podFor("vendor-form", amount{vendorCards, 2}, amount{vendorMemory, 8000}, amount{vendorCores, 25}), "kinds-a100"},
		{with(podFor("one-numa-node", amount{vendorCards, 2}, amount{vendorMemory, 3000}), numaBindKey, "true"), "kinds-a100"},
		{with(podFor("in-the-words-of-hami", amount{sliceMemory, 1000}), "nvidia.com/use-gputype", "A100"), "kinds-a100"},
		{podFor("ascend-by-model", amount{"huawei.com/Ascend910B3", 2}), "kinds-ascend"},
		{podFor("cambricon-slice", amount{"cambricon.com/vmlu", 1}, amount{"cambricon.com/mlu.smlu.vmemory", 16}, amount{"cambricon.com/mlu.smlu.vcore", 20}), "kinds-mixed"},
		{with(podFor("counted-cards", amount{vendorCards, 1}), modelKey, "V100"), "kinds-plain"},
		{withInit, ""},
		{podOf("two-containers", container("train", amount{sliceMemory, 30000}), container("watch", amount{sliceMemory, 1000})), ""},
		{podFor("processor-alone"), ""},
	}
	for _, tc := range tests {
		s.part(tc.pod.Name, func(s *scene) {
			s.create(tc.pod)
			if p := s.runs(tc.pod.Name); tc.node != "" && p.Spec.NodeName != tc.node {
				s.Errorf("it runs on %s, want %s", p.Spec.NodeName, tc.node)
			}
			s.verify()
		})
	}
	s.part("untouched", func(s *scene) { s.untouched("processor-alone") })
	s.part("invalid", (*scene).refusesInvalid)
	s.verify()
}

// untouched checks that nothing of ours is on a pod that asks for no card.
func (s *scene) untouched(name string) {
	s.Helper()
	p := s.pod(name)
	for key := range p.Annotations {
		if strings.HasPrefix(key, ours) || strings.HasPrefix(key, "hami.io/") {
			s.Errorf("%s has annotation %s", name, key)
		}
	}
	for key := range p.Labels {
		if strings.HasPrefix(key, ours) {
			s.Errorf("%s has label %s", name, key)
		}
	}
}

// refusesInvalid checks that a pod whose request contradicts itself stays, and
// that its owner is told which field is wrong.
func (s *scene) refusesInvalid() {
	s.Helper()
	s.create(podFor("invalid", amount{wholeCards, 1}, amount{sliceCores, 50}))
	s.eventually("the reason on the invalid pod", func() error {
		told := s.told(s.pod("invalid"))
		if !slices.ContainsFunc(told, func(text string) bool {
			return strings.Contains(text, "InvalidRequest") && strings.Contains(text, string(sliceCores))
		}) {
			return fmt.Errorf("it was told %q", told)
		}
		return nil
	})
	s.check("the invalid pod", s.waits("invalid"))
	s.eventually("kube-scheduler's word on it", func() error { // it may come after ours
		text := condition(s.pod("invalid"))
		if got := codesIn(text); !slices.Equal(got, []string{"InvalidRequest"}) {
			return fmt.Errorf("its condition names %v: %s", got, text)
		}
		return nil
	})
}
