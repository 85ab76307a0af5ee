// Package admission decides about pods as they are created or changed. New pods
// that ask for cards are made ours: schedulerName, the numbers of containers,
// the priority that kube-scheduler knows, and the variables that show cards,
// where the policy wants them. Keys that only the scheduler writes are taken off
// every new pod, and nobody changes them later. A pod that could never run, that
// others have changed back, or whose author has written a key that would be
// silently ignored, is refused with all that is wrong. So is one that asks for more
// than a quota allows at all. Wishes that come to nothing, and what makes the pod
// wait though it is let in, are answered with a warning. A priority above what the
// tenant may ask for is lowered; a class of the author's own above it is refused.
//
// It goes by the pod, the settings, and what it is told of the tenant. A repeat
// changes nothing. It does not look at nodes: whether a pod fits is decided when it
// is scheduled, and so is what its quota leaves it.
package admission

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/json"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// Rules is what decisions go by.
type Rules struct {
	Settings policy.Settings
	// Scheduler is the schedulerName of our kube-scheduler.
	Scheduler string
	// Foresee says what stands in a request's way, whatever the nodes are like; nil:
	// nothing does.
	Foresee func(*gpu.Request) engine.Outlook
	// User is as whom the scheduler itself comes to the API server: it marks who is
	// ended for another, and who comes in its place. "": nobody is.
	User string
	// Succeeds reports whether a new pod of the owner, its controller, comes in the place
	// of one that was ended for another, and how often its lives were; nil: none does.
	Succeeds func(owner types.UID) (count int, ok bool)
	// MaxPriority returns the highest priority that pods of the namespace may ask
	// for, false if that is not known for sure; nil: any.
	MaxPriority func(namespace string) (most int, known bool)
}

// review is a request that can be judged.
type review struct {
	create   bool
	fromNode bool // a kubelet asks
	user     string
	pod      *corev1.Pod
	before   *corev1.Pod // of an update
	raw      []byte      // pod, with the fields that we do not know
	// namespace is that of the request: the pod may lack it, or say another.
	namespace string
	outlook   engine.Outlook // of a new pod that is ours, once it is judged
}

// mirrors reports whether a kubelet shows a pod that it runs in any case.
func (v *review) mirrors() bool { return v.fromNode && v.pod.Spec.NodeName != "" }

// itself reports whether the scheduler asks.
func (r Rules) itself(v *review) bool { return r.User != "" && v.user == r.User }

// defaultScheduler is what the API server writes into pods that name none.
const defaultScheduler = corev1.DefaultSchedulerName

// ours reports whether the pod is for our kube-scheduler. One that leaves the
// scheduler open and asks for cards is: the default one knows nothing of them.
func (r Rules) ours(pod *corev1.Pod) bool {
	name := pod.Spec.SchedulerName
	return codec.AsksForCards(pod) && (name == "" || name == defaultScheduler || name == r.Scheduler)
}

var podKind = metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}

// nodes is the group of all kubelets.
const nodes = "system:nodes"

// read understands the request, or says why it is none about a pod.
func read(q *admissionv1.AdmissionRequest) (*review, error) {
	if q.Kind != podKind {
		kind := schema.GroupVersionKind(q.Kind)
		return nil, fmt.Errorf("request.kind: %s %s is not a v1 Pod", kind.GroupVersion(), kind.Kind)
	}
	if q.SubResource != "" {
		return nil, fmt.Errorf("request.subResource: %s is not the pod itself", q.SubResource)
	}
	v := &review{fromNode: slices.Contains(q.UserInfo.Groups, nodes), user: q.UserInfo.Username, raw: q.Object.Raw, namespace: q.Namespace}
	var err error
	switch q.Operation {
	case admissionv1.Create:
		v.create = true
	case admissionv1.Update:
		if v.before, err = readPod("request.oldObject", q.OldObject.Raw); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("request.operation: %q is not CREATE or UPDATE", q.Operation)
	}
	v.pod, err = readPod("request.object", q.Object.Raw)
	return v, err
}

// readPod matches names of fields in their exact case, as the API server does.
func readPod(field string, raw []byte) (*corev1.Pod, error) {
	var pod corev1.Pod
	if len(raw) == 0 {
		return nil, fmt.Errorf("%s: is missing", field)
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, &pod); err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return &pod, nil
}
