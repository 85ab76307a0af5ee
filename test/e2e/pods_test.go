package e2e

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The resources that pods ask for.
const (
	wholeCards   = corev1.ResourceName("heteroflow.io/gpu")
	sliceMemory  = corev1.ResourceName("heteroflow.io/gpu-memory")
	sliceCores   = corev1.ResourceName("heteroflow.io/gpu-cores")
	vendorCards  = corev1.ResourceName("nvidia.com/gpu")
	vendorMemory = corev1.ResourceName("nvidia.com/gpumem")
	vendorCores  = corev1.ResourceName("nvidia.com/gpucores")
)

// Our keys on pods.
const (
	ours         = "heteroflow.io/"
	modelKey     = ours + "gpu-model"
	typeKey      = ours + "gpu-type"
	numaBindKey  = ours + "numa-bind"
	allocationOf = ours + "allocation"
	visibleTo    = ours + "visible-devices-"
)

// amount is a line of a container's limits.
type amount struct {
	name corev1.ResourceName
	n    int64
}

// container is one that asks for these amounts.
func container(name string, amounts ...amount) corev1.Container {
	limits := corev1.ResourceList{}
	for _, a := range amounts {
		limits[a.name] = *resource.NewQuantity(a.n, resource.DecimalSI)
	}
	return corev1.Container{
		Name:  name,
		Image: "registry.example/app",
		Resources: corev1.ResourceRequirements{
			Limits:   limits,
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
		},
	}
}

// podOf is a pod of these containers for our kube-scheduler.
func podOf(name string, containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			SchedulerName: "heteroflow-scheduler",
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    containers,
		},
	}
}

// podFor is a pod of one container.
func podFor(name string, amounts ...amount) *corev1.Pod {
	return podOf(name, container("main", amounts...))
}

// with sets an annotation.
func with(p *corev1.Pod, key, value string) *corev1.Pod {
	p.Annotations[key] = value
	return p
}

// many are n pods of one kind in a namespace, named kind-0 and on.
func many(n int, namespace, kind string, annotations map[string]string, amounts ...amount) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = podFor(fmt.Sprintf("%s-%d", kind, i), amounts...)
		pods[i].Namespace = namespace
		for k, v := range annotations {
			with(pods[i], k, v)
		}
	}
	return pods
}
