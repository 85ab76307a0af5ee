package codec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// Asking reads a pod of ours that kube-scheduler has found no node for; false of any
// other. Anywhere reports of a claim for a volume, by namespace and name, that it binds
// its pod to no node.
func Asking(pod *corev1.Pod, s policy.Settings, anywhere func(namespace, claim string) bool) (preempt.Asker, bool) {
	if !refused(pod) {
		return preempt.Asker{}, false
	}
	request, invalid := Request(pod, s)
	request.Priority = clamped(pod)
	a := preempt.Asker{Request: request, Lineage: lineage(pod), Created: pod.CreationTimestamp.Time}
	of, known := taskType(pod)
	switch {
	case of == gpu.Training:
		a.Never = "it is training, which neither ends others nor is ended for them"
	case or(pod.Spec.PreemptionPolicy, corev1.PreemptLowerPriority) == corev1.PreemptNever:
		a.Never = "its preemptionPolicy is Never"
	case invalid != nil || !known:
		a.Never = "its request is invalid"
	case request.Unmet != "":
		a.Never = "no node can meet its wish (" + string(request.Unmet) + ")"
	default:
		a.Never = unjudged(pod, anywhere)
	}
	return a, true
}

// refused reports whether kube-scheduler has looked at the pod, which is for us and
// still waits, and has found no node.
func refused(pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" || pod.Spec.SchedulerName != SchedulerName || len(pod.Spec.SchedulingGates) > 0 ||
		pod.DeletionTimestamp != nil || Terminal(pod) {
		return false
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// unjudged names what kube-scheduler may refuse the pod for, on a node where there
// would be room for it, and what nobody here can judge: pods would be ended in vain.
func unjudged(pod *corev1.Pod, anywhere func(namespace, claim string) bool) string {
	return cmp.Or(unjudgedNeighbours(&pod.Spec), unjudgedPorts(pod), unjudgedVolumes(pod, anywhere), unjudgedResources(pod))
}

// unjudgedNeighbours: where other pods are decides.
func unjudgedNeighbours(spec *corev1.PodSpec) string {
	if a := spec.Affinity; a != nil {
		if a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			return "it requires an affinity to pods, which is not judged here"
		}
		if a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			return "it requires an anti-affinity to pods, which is not judged here"
		}
	}
	if slices.ContainsFunc(spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable != corev1.ScheduleAnyway
	}) {
		return "it has spread constraints that must hold, which are not judged here"
	}
	if spec.SchedulingGroup != nil {
		return "it is scheduled as one of a group, which is not judged here"
	}
	return ""
}

func unjudgedPorts(pod *corev1.Pod) string {
	for _, c := range containers(pod) {
		if slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort > 0 }) {
			return "it asks for ports of its node, which are not judged here"
		}
	}
	return ""
}

func unjudgedVolumes(pod *corev1.Pod, anywhere func(namespace, claim string) bool) string {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch claim := v.PersistentVolumeClaim; {
		case Anywhere(v):
		case claim == nil:
			return fmt.Sprintf("its volume %s may bind it to nodes, which is not judged here", v.Name)
		case !anywhere(pod.Namespace, claim.ClaimName):
			return fmt.Sprintf("its volume %s is by a PersistentVolumeClaim and may bind it to nodes, which is not judged here", v.Name)
		}
	}
	return ""
}

// unjudgedResources: of what a node has beside cards, processors and main memory
// nobody here knows how much is left.
func unjudgedResources(pod *corev1.Pod) string {
	if len(pod.Spec.ResourceClaims) > 0 {
		return "it has resourceClaims, which are not judged here"
	}
	lists := []corev1.ResourceList{pod.Spec.Overhead}
	if r := pod.Spec.Resources; r != nil {
		lists = append(lists, r.Requests, r.Limits)
	}
	for _, c := range containers(pod) {
		lists = append(lists, c.Resources.Requests, c.Resources.Limits)
	}
	for _, list := range lists {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if q := list[name]; !q.IsZero() && !judged(name) {
				return fmt.Sprintf("it asks for %s, which is not judged here", short(string(name)))
			}
		}
	}
	return ""
}

func judged(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || formOf(name) != nil
}
