package admission

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// Validate answers whether the pod may be stored. The error is for a request
// that cannot be understood; a refusal is an answer.
func (r Rules) Validate(q *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	v, err := read(q)
	if err != nil {
		return nil, err
	}
	if err := r.judge(v); err != nil {
		return &admissionv1.AdmissionResponse{UID: q.UID, Result: refusal(err)}, nil
	}
	return &admissionv1.AdmissionResponse{UID: q.UID, Allowed: true, Warnings: r.warnings(v)}, nil
}

func refusal(err error) *metav1.Status {
	return &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: sentences(err),
	}
}

// mostSentences bounds how many faults are told of: what is wrong may be ten thousand
// annotations.
const mostSentences = 100

// sentences are the faults, each once: two checks may see the same one.
func sentences(err error) string {
	var all []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if slices.Contains(all, line) {
			continue
		}
		if len(all) == mostSentences {
			all = append(all, "and more")
			break
		}
		all = append(all, line)
	}
	return strings.Join(all, "; ")
}

// judge returns all that is wrong with the pod.
func (r Rules) judge(v *review) error {
	switch {
	case v.create && !codec.Concerns(v.pod):
		return nil
	case v.create:
		return r.judgeNew(v)
	case v.pod.DeletionTimestamp != nil || v.before.DeletionTimestamp != nil:
		return nil // taking off its finalizers must never fail
	case r.itself(v):
		return nil
	}
	return errors.Join(codec.CheckChange(v.before, v.pod), r.checkDefault(v))
}

// checkDefault says that a pod which has got its cards by the default limit would run for
// longer, where that is enforced: of those with a limit of their own the codec says so.
func (r Rules) checkDefault(v *review) error {
	limit, enforced := r.Settings.TaskTimeout()
	_, own := codec.MaxRuntime(v.before)
	if !enforced || own || v.before.Spec.NodeName == "" || !r.ours(v.before) || codec.Inference(v.before) || codec.TaskGroup(v.before) != "" {
		return nil
	}
	const by = "the pod has got its cards by the default of %s (defaultTaskTimeout)"
	switch now, says := codec.MaxRuntime(v.pod); {
	case codec.Inference(v.pod):
		return fmt.Errorf("annotation %s: cannot become inference, which runs for ever: "+by, codec.AnnotationTaskType, limit)
	case codec.TaskGroup(v.pod) != "":
		return fmt.Errorf("annotation %s: cannot be given now, as members may run for ever: "+by, codec.AnnotationTaskGroup, limit)
	case says && now > limit:
		return fmt.Errorf("annotation %s: cannot be longer: "+by, codec.AnnotationMaxRuntime, limit)
	}
	return nil
}

func (r Rules) judgeNew(v *review) error {
	if v.mirrors() {
		return nil // the kubelet runs it in any case, and it had better be seen
	}
	errs := []error{codec.CheckKeys(v.pod)}
	if codec.AsksForCards(v.pod) && v.pod.Spec.NodeName != "" {
		errs = append(errs, errors.New("spec.nodeName: must not be set on a pod that asks for cards, as the kubelet would run it unchecked; write spec.nodeSelector"))
	}
	if r.ours(v.pod) {
		errs = append(errs, r.judgeAsks(v)...)
	}
	return errors.Join(errs...)
}

// judgeAsks judges what our scheduler would be asked.
func (r Rules) judgeAsks(v *review) []error {
	request, err := codec.Request(v.pod, r.Settings)
	errs := []error{err, checkPriority(v.pod), r.checkCap(v)}
	if v.pod.Spec.NodeName == "" {
		errs = append(errs, r.checkAdopted(v.pod))
	}
	if err == nil && r.Settings.Injection == policy.InjectionDownwardAPI {
		errs = append(errs, checkVariables(v, &request))
	}
	if err == nil {
		v.outlook = r.foresee(v, request)
		errs = append(errs, checkLimits(&v.outlook, &request))
	}
	return errs
}

// checkVariables: webhooks that are asked after Mutate may have changed what it
// made, and would then show a container somebody's cards.
func checkVariables(v *review, request *gpu.Request) error {
	byContainer, err := variables(request)
	if err != nil {
		return err
	}
	p := patch{pod: v.pod}
	if err := p.inject(v.raw, byContainer); err != nil {
		return err
	}
	var errs []error
	for _, o := range p.operations {
		errs = append(errs, fmt.Errorf("%s: the variables that show cards are not those that admission sets; %s", strings.ReplaceAll(o.Path[1:], "/", "."), undone))
	}
	return errors.Join(errs...)
}

// checkAdopted: a pod that another webhook has taken back from our scheduler would
// be placed by one that knows nothing of cards.
func (r Rules) checkAdopted(pod *corev1.Pod) error {
	var errs []error
	if name := pod.Spec.SchedulerName; name != r.Scheduler {
		errs = append(errs, fmt.Errorf("spec.schedulerName: is %q where admission sets %s; %s", name, r.Scheduler, undone))
	}
	if _, _, err := codec.Priority(pod); err == nil && pod.Spec.PriorityClassName == "" {
		errs = append(errs, fmt.Errorf("spec.priorityClassName: is missing where admission sets one; %s", undone))
	}
	return errors.Join(errs...)
}

const undone = "another webhook changes it, or /webhook/mutate is not asked"

// checkPriority: the class is what kube-scheduler goes by.
func checkPriority(pod *corev1.Pod) error {
	n, named, err := codec.Priority(pod)
	class := pod.Spec.PriorityClassName
	if err != nil || !named || class == "" || class == codec.PriorityClass(n) {
		return nil // a value that cannot be read is a fault of its key
	}
	return fmt.Errorf("spec.priorityClassName: %s and annotation %s: %d are conflicting; leave one out, or write %s (a class that nobody wrote is the cluster's default)",
		class, codec.AnnotationPriority, n, codec.PriorityClass(n))
}
