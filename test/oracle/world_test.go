package oracle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// world is a small cluster: node n1 with three NVIDIA cards and one of Ascend,
// node n2 where the stock device plugin counts two cards.
//
// The reserve of a card of 10000 MiB on n1 is 1000, of one of 1000 MiB 125.
func world() []corev1.Node {
	zero, one := 0, 1
	cards := []card{
		{UUID: "a", Index: 0, Vendor: "nvidia", Model: "NVIDIA A100", MemoryMiB: 10000, Cores: 100, NUMA: &zero, Healthy: true, Mode: "slice", Isolation: "soft"},
		{UUID: "b", Index: 1, Vendor: "nvidia", Model: "NVIDIA A100", MemoryMiB: 10000, Cores: 100, NUMA: &one, Healthy: true, Mode: "slice", Isolation: "soft", MaxSlices: 2},
		{UUID: "c", Index: 2, Vendor: "nvidia", Model: "NVIDIA T4", MemoryMiB: 1000, Cores: 100, Healthy: true, Mode: "whole", Isolation: "none"},
		{UUID: "d", Index: 0, Vendor: "ascend", Model: "910B3", MemoryMiB: 10000, Cores: 100, Healthy: true, Mode: "slice", Isolation: "hard"},
	}
	text, err := json.Marshal(map[string]any{"version": 1, "cards": cards})
	if err != nil {
		panic(err)
	}
	ready := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("8Gi")}
	n1 := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{devicesAnnotation: string(text)}},
		Status:     corev1.NodeStatus{Allocatable: room, Conditions: ready},
	}
	n2 := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n2", Labels: map[string]string{"nvidia.com/gpu.memory": "5000", "nvidia.com/gpu.product": "V100"}},
		Status:     corev1.NodeStatus{Allocatable: room.DeepCopy(), Conditions: ready},
	}
	n2.Status.Allocatable[plainResource] = resource.MustParse("2")
	return []corev1.Node{n1, n2}
}

// limits are a container's, by pairs of a resource's short name and an amount.
func limits(pairs ...any) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i].(string))] = *resource.NewQuantity(int64(pairs[i+1].(int)), resource.DecimalSI)
	}
	return list
}

const (
	wholeCards   = "heteroflow.io/gpu"
	sliceMemory  = "heteroflow.io/gpu-memory"
	sliceCores   = "heteroflow.io/gpu-cores"
	vendorCards  = "nvidia.com/gpu"
	vendorMemory = "nvidia.com/gpumem"
	vendorCores  = "nvidia.com/gpucores"
	vendorShare  = "nvidia.com/gpumem-percentage"
)

// build is a pod under construction.
type build struct {
	pod   *corev1.Pod
	alloc allocation
}

// newPod is a pod of namespace ns that waits.
func newPod(ns, name string) *build {
	return &build{
		pod:   &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Annotations: map[string]string{}}},
		alloc: allocation{Version: 1, Tenant: "namespace/" + ns, BoundAt: metav1.Now().Time, Containers: []grant{}},
	}
}

// ask adds a container and what it has got.
func (b *build) ask(r role, l corev1.ResourceList, got ...share) *build {
	c := corev1.Container{Name: fmt.Sprintf("c%d", len(b.pod.Spec.InitContainers)+len(b.pod.Spec.Containers)), Resources: corev1.ResourceRequirements{Limits: l}}
	if r == sidecar {
		always := corev1.ContainerRestartPolicyAlways
		c.RestartPolicy = &always
	}
	if r == app {
		b.pod.Spec.Containers = append(b.pod.Spec.Containers, c)
	} else {
		b.pod.Spec.InitContainers = append(b.pod.Spec.InitContainers, c)
	}
	if len(got) > 0 {
		b.alloc.Containers = append(b.alloc.Containers, grant{Name: c.Name, Init: r != app, Cards: got})
	}
	return b
}

// note sets an annotation.
func (b *build) note(key, value string) *build {
	b.pod.Annotations[key] = value
	return b
}

// on binds the pod as the scheduler does. The containers are added init first.
func (b *build) on(node string) *build {
	b.pod.Spec.NodeName = node
	b.pod.Labels = map[string]string{boundByLabel: "heteroflow"}
	b.note(epochAnnotation, "0").encode()
	if node == "n2" {
		return b
	}
	for _, g := range b.alloc.Containers {
		var n int
		fmt.Sscanf(g.Name, "c%d", &n)
		b.show(n, g.Cards)
	}
	return b
}

// show writes what a container is shown, under number n. All its cards give it
// the same amounts.
func (b *build) show(n int, cards []share) {
	var names []string
	for _, s := range cards {
		if s.Vendor == "nvidia" || s.Vendor == "iluvatar" {
			names = append(names, s.UUID)
		} else {
			names = append(names, fmt.Sprint(s.Index))
		}
	}
	b.note(fmt.Sprint(visiblePrefix, n), strings.Join(names, ","))
	if cards[0].Exclusive {
		return
	}
	b.note(fmt.Sprint(memoryPrefix, n), fmt.Sprint(cards[0].MemoryMiB))
	if cards[0].Cores > 0 {
		b.note(fmt.Sprint(coresPrefix, n), fmt.Sprint(cards[0].Cores))
	}
}

// env adds variables to the last app container.
func (b *build) env(vars ...corev1.EnvVar) *build {
	c := &b.pod.Spec.Containers[len(b.pod.Spec.Containers)-1]
	c.Env = append(c.Env, vars...)
	return b
}

func is(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }

// reads is a variable that the downward API fills from an annotation.
func reads(name, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
		FieldPath: "metadata.annotations['" + key + "']"}}}
}

func (b *build) encode() *build {
	text, err := json.Marshal(b.alloc)
	if err != nil {
		panic(err)
	}
	return b.note(allocationAnnotation, string(text))
}

// but changes the pod at last.
func (b *build) but(change func(*build)) *build {
	change(b)
	return b
}

func pods(builds ...*build) []corev1.Pod {
	var all []corev1.Pod
	for _, b := range builds {
		all = append(all, *b.pod)
	}
	return all
}

// whole and part are shares of the cards of the world.
func whole(uuid string) share {
	s := part(uuid, 0, 100)
	s.MemoryMiB = map[string]int64{"a": 10000, "b": 10000, "c": 1000, "d": 10000, "n2-nvidia-0": 5000, "n2-nvidia-1": 5000}[uuid]
	s.Exclusive, s.Isolation = true, "exclusive"
	return s
}

func part(uuid string, memory, cores int64) share {
	s := share{UUID: uuid, Vendor: "nvidia", MemoryMiB: memory, Cores: cores, Isolation: "soft"}
	switch uuid {
	case "d":
		s.Vendor, s.Isolation = "ascend", "hard"
	case "n2-nvidia-1":
		s.Index = 1
	default:
		s.Index = max(0, slices.Index([]string{"a", "b", "c"}, uuid))
	}
	return s
}

func TestWorldIsSound(t *testing.T) {
	cards, err := inventory(&world()[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(cards) != 4 || cards[0].usable != 9000 || cards[2].usable != 875 || cards[0].MaxSlices != 10 {
		t.Errorf("inventory %+v", cards)
	}
}
