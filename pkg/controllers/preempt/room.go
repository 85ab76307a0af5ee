package preempt

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// Room tells whether the pods of a suspended Job would all find a node now.
type Room struct {
	Ledger  func() ledger.Snapshot
	Request func(*corev1.Pod) (gpu.Request, error)
	Trial   func(r *gpu.Request, in ledger.Snapshot) preempt.Trial
	// Suits reports whether kube-scheduler's own filters let the pod onto the node,
	// whoever is there.
	Suits func(pod *corev1.Pod, node gpu.NodeID) bool
}

// mostRoom bounds the pods of one Job that are looked at: of a larger one the first.
const mostRoom = 64

// For reports whether so many pods of the template fit, beside everybody else.
func (r *Room) For(namespace string, t *corev1.PodTemplateSpec, pods int32) bool {
	pod := &corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: t.Spec}
	pod.Namespace, pod.Name = namespace, "resumed"
	request, err := r.Request(pod)
	if err != nil {
		return false
	}
	state := r.Ledger()
	for i := range min(pods, mostRoom) {
		request.Pod = gpu.PodID(fmt.Sprintf("resumed-%d", i)) // none of any pod's
		next, ok := r.place(pod, &request, state)
		if !ok {
			return false
		}
		state = next
	}
	return true
}

// place returns the state with one more pod in it, false if no node takes it.
func (r *Room) place(pod *corev1.Pod, request *gpu.Request, in ledger.Snapshot) (ledger.Snapshot, bool) {
	trial := r.Trial(request, in)
	for id, n := range in.Nodes() {
		if !preempt.Roomy(n, request) || !r.Suits(pod, id) {
			continue
		}
		if p, ok := trial.Place(in, id); ok {
			if next, err := in.With(p); err == nil {
				return next, true
			}
		}
	}
	return in, false
}
