package admission

import (
	"encoding/json"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/policy"
)

// Mutate answers how a new pod is to be changed; it refuses none. The error is
// for a request that cannot be understood.
func (r Rules) Mutate(q *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	v, err := read(q)
	if err != nil {
		return nil, err
	}
	answer := &admissionv1.AdmissionResponse{UID: q.UID, Allowed: true}
	if !v.create || !codec.Concerns(v.pod) {
		return answer, nil
	}
	p := patch{pod: v.pod}
	answer.Warnings = p.strip()
	// What names its node is not scheduled; whether it may is for Validate.
	if r.ours(v.pod) && v.pod.Spec.NodeName == "" {
		if err := r.adopt(v, &p); err != nil {
			return nil, err
		}
	}
	if len(p.operations) > 0 {
		kind := admissionv1.PatchTypeJSONPatch
		answer.PatchType = &kind
		answer.Patch, err = json.Marshal(p.operations)
	}
	return answer, err
}

// strip takes off what only the scheduler writes, and says so.
func (p *patch) strip() (warnings []string) {
	annotations, labels := codec.Carried(p.pod)
	for _, key := range annotations {
		p.remove("metadata", "annotations", key)
	}
	for _, key := range labels {
		p.remove("metadata", "labels", key)
	}
	if all := append(annotations, labels...); len(all) > 0 {
		warnings = []string{"written by the scheduler alone, so taken off: " + strings.Join(all, ", ")}
	}
	return warnings
}

// adopt makes the pod one of our scheduler's.
func (r Rules) adopt(v *review, p *patch) error {
	if v.pod.Spec.SchedulerName != r.Scheduler {
		p.add(r.Scheduler, "spec", "schedulerName")
	}
	record := codec.Numbers(v.pod)
	p.annotate(codec.AnnotationContainers, record)
	p.prioritise()
	if r.Settings.Injection != policy.InjectionDownwardAPI {
		return nil
	}
	numbered := v.pod.DeepCopy()
	setAnnotation(numbered, codec.AnnotationContainers, record)
	request, err := codec.Request(numbered, r.Settings)
	if err != nil {
		return nil // Validate refuses the pod
	}
	byContainer, err := variables(&request)
	if err != nil {
		return nil // likewise
	}
	return p.inject(v.raw, byContainer)
}

// prioritise sets the class of the pod's priority and its value: the plugin that
// looks values up has run by now, and runs again only to compare.
func (p *patch) prioritise() {
	n, named, err := codec.Priority(p.pod)
	class := p.pod.Spec.PriorityClassName
	switch {
	case err != nil, checkPriority(p.pod) != nil:
		return // Validate refuses the pod
	case !named && class != "":
		return
	case !named:
		n = codec.DefaultPriority
	}
	if class == "" {
		p.add(codec.PriorityClass(n), "spec", "priorityClassName")
	}
	if p.pod.Spec.Priority == nil || *p.pod.Spec.Priority != int32(n) {
		p.add(n, "spec", "priority")
	}
}

func setAnnotation(pod *corev1.Pod, key, value string) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[key] = value
}
