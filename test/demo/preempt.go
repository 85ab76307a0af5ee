package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/generated/clientset/versioned"
	"heteroflow.io/heteroflow/test/cluster"
)

// experiments are pods that say that they may be ended for others; they take both
// cards of their model.
func experiments() []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range 2 {
		pods = append(pods, l4Pod(fmt.Sprintf("experiment-%d", i), map[string]string{
			"heteroflow.io/priority": "20", "heteroflow.io/preemptible": "true"}))
	}
	return pods
}

// urgent is a pod that cannot wait for them.
func urgent() []*corev1.Pod {
	return []*corev1.Pod{l4Pod("urgent", map[string]string{"heteroflow.io/priority": "95", "heteroflow.io/task-type": "inference"})}
}

func l4Pod(name string, annotations map[string]string) *corev1.Pod {
	pod := shape{name: name, limits: map[string]int{"heteroflow.io/gpu": 1}, annotations: annotations}.pod(0)
	pod.Name = name
	pod.Annotations["heteroflow.io/gpu-model"] = "NVIDIA-L4"
	return pod
}

// printPreemptions shows who was ended for whom.
func printPreemptions(ctx context.Context, c *cluster.Cluster, w io.Writer) error {
	kinds, err := versioned.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	all, err := kinds.HeteroflowV1alpha1().Preemptions().List(ctx, metav1.ListOptions{})
	if err != nil || len(all.Items) == 0 {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "FOR\tNODE\tENDED\tPHASE\tRULE\n")
	for _, p := range all.Items {
		for _, v := range p.Spec.Victims {
			fmt.Fprintf(table, "%s\t%s\t%s (priority %d)\t%s\t%s\n", p.Spec.Preemptor.Name, p.Spec.Node, v.Name, v.Priority, p.Status.Phase, p.Spec.Rule)
		}
	}
	fmt.Fprintln(table)
	return table.Flush()
}
