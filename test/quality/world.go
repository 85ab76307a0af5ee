package quality

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/simulate"
	"heteroflow.io/heteroflow/test/simnode"
)

const (
	namespace = "quality"
	// milliMiB is the memory that stands for a thousandth of a card. By the default
	// policy a tenth of each card is kept back, which leaves slices a thousand of them;
	// the other rule, 500 MiB for all cards of a node, keeps back less.
	milliMiB  = 9
	cardMiB   = 10_000
	mostMilli = 1000
	// mostSlices lets memory and compute alone say how many slices a card takes.
	mostSlices = 100
)

// nodeName names a node so that names come in the order of ranks.
func nodeName(rank int) string { return fmt.Sprintf("node-%06d", rank) }

// specs are the nodes of the trace, named by their ranks.
func specs(nodes []simulate.Node, rank []int) []simnode.Spec {
	all := make([]simnode.Spec, len(nodes))
	for i, n := range nodes {
		name := nodeName(rank[i])
		all[i] = simnode.Spec{Name: name, CPU: fmt.Sprintf("%dm", n.CPU), Memory: fmt.Sprintf("%dMi", n.Memory), Cards: cards(name, n)}
	}
	return all
}

func cards(node string, n simulate.Node) []simnode.Card {
	all := simnode.Cards(node, n.Cards, "nvidia", n.Model, cardMiB)
	for i := range all {
		all[i].MaxSlices = mostSlices
		all[i].NUMA = nil
	}
	return all
}

func podName(arrival int) string { return fmt.Sprintf("pod-%05d", arrival) }

// pod is the one that arrives at that place, as its author writes it.
func pod(arrival int, s simulate.Shape) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: podName(arrival)},
		Spec: corev1.PodSpec{
			SchedulerName: "heteroflow-scheduler",
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example/app",
				Resources: corev1.ResourceRequirements{Requests: asks(s), Limits: asks(s)},
			}},
		},
	}
	if s.Models != "" {
		p.Annotations = map[string]string{"heteroflow.io/gpu-model": strings.ReplaceAll(s.Models, "|", ",")}
	}
	return p
}

func asks(s simulate.Shape) corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(s.CPU), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(s.Memory)<<20, resource.BinarySI),
	}
	switch {
	case s.Cards == 0:
	case s.Milli == mostMilli:
		list["heteroflow.io/gpu"] = *resource.NewQuantity(int64(s.Cards), resource.DecimalSI)
	default:
		list["heteroflow.io/gpu-memory"] = *resource.NewQuantity(int64(s.Milli)*milliMiB, resource.DecimalSI)
	}
	return list
}
