package codec

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// Request reads what an unbound pod asks for, but not whose it is: the engine
// finds that out by its namespace. The error is all its faults, each naming its
// field: the request is invalid then, and has no asks. A pod that asks for no card
// has no asks and no error.
func Request(pod *corev1.Pod, s policy.Settings) (gpu.Request, error) {
	r := gpu.Request{
		Pod:             gpu.PodID(pod.UID),
		Namespace:       pod.Namespace,
		Name:            pod.Name,
		Priority:        or(pod.Spec.Priority, 0),
		NUMA:            gpu.NoNUMA,
		SoftPreferences: softPreferences(&pod.Spec),
	}
	r.CPU, r.Memory = mainResources(pod)
	found, err := asks(pod, s.SliceCores)
	if len(found) == 0 && err == nil {
		return r, nil
	}
	r.Asks, r.Group = found, groupOf(pod)
	err = errors.Join(err, number(found, pod.Annotations[AnnotationContainers]))
	ignored := append(idleFaults(pod), strays(pod, pod.Annotations, pod.Labels, true)...)
	if err := errors.Join(err, errors.Join(ignored...), readAnnotations(&r, pod.Annotations)); err != nil {
		r.Asks = nil
		return r, err
	}
	switch {
	case r.Type == gpu.Inference:
		r.Runtime, r.Gang = 0, false // nothing ends it, and it serves without the others
	case r.Runtime == 0:
		r.Runtime, _ = s.TaskTimeout()
	}
	if r.Runtime > 0 {
		r.Runtime = min(r.Runtime, longest) + Grace(pod) // the time is over, and its containers still end
	}
	return r, nil
}

// longest is far more than anybody plans ahead, and leaves a sum room.
const longest = 100 * 365 * 24 * time.Hour

// mainResources is what a pod takes of a node's processors and main memory, as
// kube-scheduler counts it: of a pod that is being resized, the larger figure.
func mainResources(pod *corev1.Pod) (gpu.MilliCPU, gpu.Bytes) {
	all := resource.PodRequests(pod, resource.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	})
	return gpu.MilliCPU(milli(all[corev1.ResourceCPU])), gpu.Bytes(value(all[corev1.ResourceMemory]))
}

// softPreferences reports whether kube-scheduler has wishes of its own to weigh
// for this pod.
func softPreferences(spec *corev1.PodSpec) bool {
	for i := range spec.TopologySpreadConstraints {
		if spec.TopologySpreadConstraints[i].WhenUnsatisfiable == corev1.ScheduleAnyway {
			return true
		}
	}
	a := spec.Affinity
	if a == nil {
		return false
	}
	return a.NodeAffinity != nil && len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAffinity != nil && len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAntiAffinity != nil && len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
}
