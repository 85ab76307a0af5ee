package kube

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Kubelets write a node's heartbeat every few minutes and a pod's status many
// times, and nearly always nothing changes that is read here. To find that out
// costs a few microseconds, to read an inventory or a record many times that.

// NodeChanged tells of a node that is not as it was; both are as slimmer makes
// them.
func (b *Books) NodeChanged(was, is *corev1.Node) {
	x, y := *was, *is
	x.ResourceVersion, y.ResourceVersion = "", ""
	if !reflect.DeepEqual(&x, &y) {
		b.NodeSeen(is)
	}
}

// PodChanged tells of a pod that is not as it was; both are as slimmer makes
// them.
func (b *Books) PodChanged(was, is *corev1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stands(is) && samePod(was, is) {
		b.Settled(gpu.PodID(is.UID)) // a question about it may have come since
		return
	}
	b.podSeen(is)
}

// stands reports whether the ledger has the pod on its node for good. If it has
// not, for whatever reason, the pod is news even though nothing of it is.
func (b *Books) stands(pod *corev1.Pod) bool {
	h, known := b.Ledger.Hold(gpu.PodID(pod.UID))
	return known && codec.Active(pod) && h.Node == gpu.NodeID(pod.Spec.NodeName) && (h.State == ledger.Bound || h.State == ledger.Draining)
}

// samePod reports whether all that is kept of the two is the same. What is kept
// is what is read, but for the version.
func samePod(was, is *corev1.Pod) bool {
	x, y := *was, *is
	x.ResourceVersion, y.ResourceVersion = "", ""
	return reflect.DeepEqual(&x, &y)
}
