package admission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	owed := r.owed(v)
	answer.Warnings = r.strip(v, &p, owed)
	if owed != "" && v.pod.Annotations[codec.AnnotationPreemptCount] != owed {
		p.mark(codec.AnnotationPreemptCount, owed)
	}
	// What names its node is not scheduled; whether it may is for Validate.
	if r.ours(v.pod) && v.pod.Spec.NodeName == "" {
		lowered, err := r.adopt(v, &p)
		if err != nil {
			return nil, err
		}
		answer.Warnings = append(answer.Warnings, lowered...)
	}
	if len(p.operations) > 0 {
		kind := admissionv1.PatchTypeJSONPatch
		answer.PatchType = &kind
		answer.Patch, err = json.Marshal(p.operations)
	}
	return answer, err
}

// strip takes off what only the scheduler writes, and says so. What the scheduler
// itself writes on a pod that it makes in another's place stays, and so does what this
// has been asked about before and has marked.
func (r Rules) strip(v *review, p *patch, owed string) (warnings []string) {
	annotations, labels := codec.Carried(p.pod)
	annotations = slices.DeleteFunc(annotations, func(key string) bool {
		return r.itself(v) && codec.OfSuccessor(key) ||
			key == codec.AnnotationPreemptCount && owed != "" && p.pod.Annotations[key] == owed
	})
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

// owed is the mark of a pod that its owner makes in the place of one that was ended for
// another, by which it is not ended in its turn; "" of any other. It counts more than
// what the author says.
func (r Rules) owed(v *review) string {
	owner := metav1.GetControllerOfNoCopy(v.pod)
	if r.Succeeds == nil || owner == nil || r.itself(v) {
		return ""
	}
	count, ok := r.Succeeds(owner.UID)
	if !ok {
		return ""
	}
	return strconv.Itoa(count)
}

// adopt makes the pod one of our scheduler's, and says where it does not get what it
// asks for.
func (r Rules) adopt(v *review, p *patch) (warnings []string, err error) {
	if v.pod.Spec.SchedulerName != r.Scheduler {
		p.add(r.Scheduler, "spec", "schedulerName")
	}
	record := codec.Numbers(v.pod)
	p.annotate(codec.AnnotationContainers, record)
	warnings = r.prioritise(v, p)
	p.signal()
	if r.Settings.Injection != policy.InjectionDownwardAPI {
		return warnings, nil
	}
	numbered := v.pod.DeepCopy()
	setAnnotation(numbered, codec.AnnotationContainers, record)
	request, err := codec.Request(numbered, r.Settings)
	if err != nil {
		return warnings, nil // Validate refuses the pod
	}
	byContainer, err := variables(&request)
	if err != nil {
		return warnings, nil // likewise
	}
	return warnings, p.inject(v.raw, byContainer)
}

// prioritise sets the class of the pod's priority and its value, no higher than the
// tenant may have it: the plugin that looks values up has run by now, and runs again
// only to compare.
func (r Rules) prioritise(v *review, p *patch) (warnings []string) {
	n, asked, ok := wanted(p.pod)
	if !ok {
		return nil
	}
	_, named := p.pod.Annotations[codec.AnnotationPriority]
	if most, known := r.most(v.namespace); known && n > most { // while it is not known Validate refuses the pod
		if asked {
			warnings = []string{fmt.Sprintf("priority %d is lowered to %d, the most that the Tenant of namespace %s allows (spec.maxPriority)", n, most, v.namespace)}
		}
		if n = most; named {
			p.annotate(codec.AnnotationPriority, strconv.Itoa(n))
		}
	} else if asked && !named {
		return nil // its class and value stay
	}
	if class := codec.PriorityClass(n); p.pod.Spec.PriorityClassName != class {
		p.add(class, "spec", "priorityClassName")
	}
	if p.pod.Spec.Priority == nil || *p.pod.Spec.Priority != int32(n) {
		p.add(n, "spec", "priority")
	}
	return warnings
}

// wanted returns the priority that the pod is to have, and whether its author asked
// for it; false if it has a class of its own, or contradicts itself.
func wanted(pod *corev1.Pod) (n int, asked, ok bool) {
	n, named, err := codec.Priority(pod)
	class := pod.Spec.PriorityClassName
	switch {
	case err != nil, checkPriority(pod) != nil:
		return 0, true, false // Validate refuses the pod
	case named:
		return n, true, true
	case class == "":
		return codec.DefaultPriority, false, true
	}
	n, ours := codec.ClassPriority(class)
	return n, true, ours
}

func setAnnotation(pod *corev1.Pod, key, value string) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[key] = value
}
