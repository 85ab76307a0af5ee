package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/generated/clientset/versioned"
	typed "heteroflow.io/heteroflow/pkg/generated/clientset/versioned/typed/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/test/cluster"
)

// chat is the service, and the Deployment and the TaskGroup of it.
const chat = "chat"

// modelPod is a pod for a card of a model that no other's name contains.
func modelPod(name, model string, annotations map[string]string) *corev1.Pod {
	if annotations == nil {
		annotations = map[string]string{}
	}
	pod := shape{name: name, limits: map[string]int{"heteroflow.io/gpu": 1}, annotations: annotations}.pod(0)
	pod.Name = name
	pod.Annotations["heteroflow.io/gpu-model"] = model
	return pod
}

// nightTasks want the cards of the service: one will have ended when it wakes.
func nightTasks() []*corev1.Pod {
	return []*corev1.Pod{
		modelPod("night-short", "A16", map[string]string{"heteroflow.io/max-runtime": "2h"}),
		modelPod("night-long", "A16", map[string]string{"heteroflow.io/max-runtime": "12h"}),
	}
}

// daylight is a window in which it is day, or one that opens in 8 hours.
func daylight(day bool) []v1alpha1.TaskGroupWindow {
	from := time.Now().UTC().Add(-time.Hour)
	if !day {
		from = from.Add(9 * time.Hour)
	}
	return []v1alpha1.TaskGroupWindow{{From: from.Format("15:04"), To: from.Add(10 * time.Hour).Format("15:04")}}
}

// serve makes the service and waits until it runs.
func serve(ctx context.Context, c *cluster.Cluster) error {
	groups, err := taskGroups(c)
	if err != nil {
		return err
	}
	_, err = groups.Create(ctx, &v1alpha1.TaskGroup{ObjectMeta: metav1.ObjectMeta{Name: chat}, Spec: v1alpha1.TaskGroupSpec{
		Type: v1alpha1.TaskGroupInference, Windows: daylight(true), WindowAction: v1alpha1.TaskGroupPause,
		ScaleTargetRef: &v1alpha1.TaskGroupTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: chat},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create TaskGroup %s: %w", chat, err)
	}
	pod := modelPod(chat, "A16", map[string]string{"heteroflow.io/task-group": chat, "heteroflow.io/task-type": "inference"})
	labels := map[string]string{"app": chat}
	_, err = c.Client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: chat},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: pod.Annotations}, Spec: pod.Spec}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create Deployment %s: %w", chat, err)
	}
	return members(ctx, groups, "InWindow", 2)
}

// sleep has night fall, and waits until the service sleeps.
func sleep(ctx context.Context, c *cluster.Cluster) error {
	groups, err := taskGroups(c)
	if err != nil {
		return err
	}
	g, err := groups.Get(ctx, chat, metav1.GetOptions{})
	if err != nil {
		return err
	}
	g.Spec.Windows = daylight(false)
	if _, err := groups.Update(ctx, g, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("edit TaskGroup %s: %w", chat, err)
	}
	return members(ctx, groups, "Paused", 0)
}

// members waits until the group is in that state and has so many.
func members(ctx context.Context, groups typed.TaskGroupInterface, state string, want int32) error {
	return cluster.Eventually(ctx, "the service to be "+state, func(ctx context.Context) error {
		g, err := groups.Get(ctx, chat, metav1.GetOptions{})
		if err == nil && (g.Status.State != state || g.Status.Members != want) {
			err = fmt.Errorf("it is %q with %d members", g.Status.State, g.Status.Members)
		}
		return err
	})
}

func taskGroups(c *cluster.Cluster) (typed.TaskGroupInterface, error) {
	clients, err := versioned.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	return clients.HeteroflowV1alpha1().TaskGroups(namespace), nil
}
