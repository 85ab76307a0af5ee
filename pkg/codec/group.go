package codec

import (
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// groupOf returns with whom the pod works: the members of the group that its
// annotation names, else of the job that its label names, else of the job that owns
// it; "" if there is none. Names are those of the pod's own namespace: nobody can
// join a group of another one. Each is one string, however many pods have it.
func groupOf(pod *corev1.Pod) gpu.GroupID {
	name := ""
	switch owner := OwningJob(pod); {
	case TaskGroup(pod) != "":
		return GroupOf(pod.Namespace, TaskGroup(pod))
	case pod.Labels[LabelJobID] != "":
		name = LabelJobID + "=" + pod.Labels[LabelJobID]
	case owner != nil:
		name = "uid=" + string(owner.UID)
	default:
		return ""
	}
	return unique.Make(gpu.GroupID(pod.Namespace + "/" + name)).Value()
}

// OwningJob returns the owner of the pod that controls it, if that is a job of
// whatever API: a Job, a PyTorchJob, an MPIJob; nil if not.
func OwningJob(pod *corev1.Pod) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.UID == "" || !strings.HasSuffix(owner.Kind, "Job") {
		return nil
	}
	return owner
}
