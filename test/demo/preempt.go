package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/generated/clientset/versioned"
	"heteroflow.io/heteroflow/test/cluster"
)

// experiments are pods that say that they may be ended for others; they take both
// cards of their model.
func experiments() []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range 2 {
		pods = append(pods, modelPod(fmt.Sprintf("experiment-%d", i), "A30", map[string]string{
			"heteroflow.io/priority": "20", "heteroflow.io/preemptible": "true"}))
	}
	return pods
}

// deadline is a pod that cannot wait for them.
func deadline() []*corev1.Pod {
	return []*corev1.Pod{modelPod("deadline", "A30", map[string]string{"heteroflow.io/priority": "95", "heteroflow.io/task-type": "inference"})}
}

// named returns the names of pods of the demo's own namespace.
func named(pods []*corev1.Pod) (names []string) {
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

func preemptions(ctx context.Context, c *cluster.Cluster) ([]v1alpha1.Preemption, error) {
	kinds, err := versioned.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	all, err := kinds.HeteroflowV1alpha1().Preemptions().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return all.Items, nil
}

// printPreemptions shows who was ended for the named pods, and what became of them.
func printPreemptions(w io.Writer, all []v1alpha1.Preemption, names []string) {
	all = slices.DeleteFunc(slices.Clone(all), func(p v1alpha1.Preemption) bool { return !slices.Contains(names, p.Spec.Preemptor.Name) })
	if len(all) == 0 {
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "FOR\tON NODE\tPHASE\tENDED\tWHAT BECAME OF IT\n")
	for _, p := range all {
		for i, v := range p.Spec.Victims {
			fmt.Fprintf(table, "%s (priority %d)\t%s\t%s\t%s (priority %d)\t%s\n",
				p.Spec.Preemptor.Name, p.Spec.Preemptor.Priority, p.Spec.Node, p.Status.Phase, v.Name, v.Priority, became(&p, i))
		}
	}
	table.Flush()
	for _, p := range all {
		fmt.Fprintf(w, "  Why for %s: %s.\n", p.Spec.Preemptor.Name, p.Spec.Rule)
	}
	fmt.Fprintln(w)
}

func became(p *v1alpha1.Preemption, victim int) string {
	if victim >= len(p.Status.Victims) {
		return "nothing yet"
	}
	switch s := &p.Status.Victims[victim]; {
	case s.State == v1alpha1.VictimSucceeded && s.Successor != "":
		return "made anew"
	case s.Message != "":
		return fmt.Sprintf("%s: %s", s.State, s.Message)
	default:
		return string(s.State)
	}
}

// goingOn names a pod for which others are being ended, or of which one is still to be
// made anew; "" when there is none.
func goingOn(all []v1alpha1.Preemption) string {
	for i := range all {
		p := &all[i]
		if p.Status.EndedAt == nil || slices.ContainsFunc(p.Status.Victims, func(v v1alpha1.VictimStatus) bool {
			return v.State == v1alpha1.VictimEvicting || v.State == v1alpha1.VictimGone
		}) {
			return p.Spec.Preemptor.Namespace + "/" + p.Spec.Preemptor.Name
		}
	}
	return ""
}
