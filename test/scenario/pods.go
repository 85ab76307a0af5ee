package scenario

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/test/simnode"
)

const (
	namespace = "scenario"
	labelJob  = "ai.training/job-id"
)

// pod is the task as its author writes it.
func (t *Task) pod() *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: t.Name,
			Annotations: map[string]string{simnode.RunFor: t.Takes.String()},
		},
		Spec: corev1.PodSpec{
			SchedulerName: "heteroflow-scheduler",
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example/app",
				Resources: corev1.ResourceRequirements{Requests: t.asks(), Limits: t.asks()},
			}},
		},
	}
	if t.Group != "" {
		pod.Labels = map[string]string{labelJob: t.Group}
	}
	return pod
}

// asks are the pod's resources: of processors and memory less than its part of a
// node.
func (t *Task) asks() corev1.ResourceList {
	if !t.Whole() {
		return corev1.ResourceList{
			"cpu": resource.MustParse("2"), "memory": resource.MustParse("16Gi"),
			"heteroflow.io/gpu-memory": resource.MustParse(strconv.Itoa(t.Memory)),
			"heteroflow.io/gpu-cores":  resource.MustParse(strconv.Itoa(t.Cores)),
		}
	}
	return corev1.ResourceList{
		"cpu": resource.MustParse(strconv.Itoa(12 * t.Cards)), "memory": resource.MustParse(strconv.Itoa(128*t.Cards) + "Gi"),
		"heteroflow.io/gpu": resource.MustParse(strconv.Itoa(t.Cards)),
	}
}
