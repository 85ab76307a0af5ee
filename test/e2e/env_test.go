package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/test/simnode"
)

// TestEnvironmentOfAContainer looks at the cards through the containers' own
// eyes: variables that refer to our annotations show each container its cards,
// and nobody else's.
func TestEnvironmentOfAContainer(t *testing.T) {
	s := begin(t, defaults)
	s.add(simnode.Spec{Name: "env", Cards: simnode.Cards("env", 4, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)})
	show := func(c corev1.Container, number string) corev1.Container {
		c.Env = []corev1.EnvVar{
			{Name: "CARDS", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
				FieldPath: "metadata.annotations['" + visibleTo + number + "']"}}},
			{Name: "NVIDIA_VISIBLE_DEVICES", Value: "$(CARDS)"},
		}
		return c
	}
	s.create(podOf("worker",
		show(container("train", amount{wholeCards, 2}), "0"),
		show(container("watch", amount{sliceMemory, 4000}), "1"),
		show(container("log"), "2"),
	))
	pod := s.runs("worker")

	want := cardsByContainer(t, pod)
	if len(want["train"]) != 2 || len(want["watch"]) != 1 {
		t.Fatalf("the allocation has %v", want)
	}
	got := map[string][]string{}
	for _, c := range []string{"train", "watch", "log"} {
		env, err := s.nodes.Env(s.ns, "worker", c)
		s.must("environment", err)
		if cards := env["NVIDIA_VISIBLE_DEVICES"]; cards != "" {
			got[c] = slices.Sorted(strings.SplitSeq(cards, ","))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cards seen by each container (-allocated +seen):\n%s", diff)
	}
	s.verify()
}

// cardsByContainer reads the UUIDs of a pod's allocation, in order.
func cardsByContainer(t *testing.T, pod *corev1.Pod) map[string][]string {
	t.Helper()
	var a struct {
		Containers []struct {
			Name  string
			Cards []struct{ UUID string }
		}
	}
	if err := json.Unmarshal([]byte(pod.Annotations[allocationOf]), &a); err != nil {
		t.Fatalf("allocation: %v", err)
	}
	cards := map[string][]string{}
	for _, c := range a.Containers {
		for _, card := range c.Cards {
			cards[c.Name] = append(cards[c.Name], card.UUID)
		}
		slices.Sort(cards[c.Name])
	}
	return cards
}
