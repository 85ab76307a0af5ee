package admission

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/codec"
)

// warnings names the wishes that are written or taken back in vain, and what the pod
// waits for: they are no fault, but their author waits for something that does not
// come, or not soon.
func (r Rules) warnings(v *review) (all []string) {
	if v.mirrors() {
		return nil // nobody reads a kubelet's warnings
	}
	before := v.before
	if v.create {
		before = &corev1.Pod{}
	}
	for _, key := range codec.Wishes(before, v.pod) {
		if why := r.vain(v, key); why != "" {
			all = append(all, fmt.Sprintf("annotation %s has no effect%s", key, why))
		}
	}
	return append(all, prospects(v)...)
}

// served reports whether a new pod of ours is known to be a member of a service.
func (r Rules) served(v *review) bool {
	return v.create && r.Foresee != nil && codec.TaskGroup(v.pod) != "" && !v.outlook.Waits
}

// vain says why a wish that was written or taken back changes nothing, "" if it
// may change something.
func (r Rules) vain(v *review, key string) string {
	_, written := v.pod.Annotations[key]
	switch {
	case !written && !r.ours(v.pod):
		return "" // rightly taken back
	case !codec.AsksForCards(v.pod) && v.pod.Spec.SchedulerName == r.Scheduler && codec.ReadOfVictim(key):
		return "" // such a pod may be ended for others too
	case !codec.AsksForCards(v.pod):
		return ": the pod asks for no card"
	case !r.ours(v.pod):
		return fmt.Sprintf(": the pod is for the scheduler %s", v.pod.Spec.SchedulerName)
	case written && key == codec.AnnotationPreemptSignal && !forLinux(v.pod):
		return ": the pod does not say that it is for Linux (spec.os.name: linux)"
	case written && key == codec.AnnotationMaxRuntime && codec.Inference(v.pod):
		return fmt.Sprintf(": the pod is inference (%s), which may run for ever", codec.AnnotationTaskType)
	case written && key == codec.AnnotationMaxRuntime && r.served(v):
		return fmt.Sprintf(": the pod is a member of TaskGroup %s/%s, a service, and may run for ever", v.namespace, codec.TaskGroup(v.pod))
	case v.create:
		return ""
	case key == codec.AnnotationPriority:
		return " any more: spec.priority of a pod cannot change"
	case v.pod.Spec.NodeName != "" && codec.Places(key):
		return " any more: the pod has its node and its cards"
	}
	return ""
}
