package kube

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// CatchUp reads the pods that were bound by us, past every cache, and has those
// hold their cards which the watch has not told of yet: it may be behind, and
// what the leader before has bound last is what matters. When it returns without
// an error the books know of everything that was bound before it was called.
//
// Everybody else's pods come with the watch: they are not fenced either.
func (b *Books) CatchUp(ctx context.Context, client kubernetes.Interface) error {
	began, found := b.Now(), 0
	err := eachNewest(ctx, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		o.LabelSelector = codec.BoundByLabel + "=" + codec.BoundByValue
		return client.CoreV1().Pods("").List(ctx, o)
	}, func(pod *corev1.Pod) {
		if codec.Active(pod) && b.adopt(pod, began) {
			found++
		}
	})
	if err != nil {
		return fmt.Errorf("read what is bound: %w", err)
	}
	if found > 0 {
		b.Logger.Info("pods were bound that the watch had not told of", "pods", found)
	}
	return nil
}

// adopt has the pod hold its cards unless it does; false if it did, or if it has
// left since it was read.
func (b *Books) adopt(pod *corev1.Pod, read time.Time) bool {
	// Of tens of thousands nearly all are held as they should be, which is told
	// without reading their records.
	on := gpu.Placement{Pod: gpu.PodID(pod.UID), Node: gpu.NodeID(pod.Spec.NodeName)}
	b.mu.Lock()
	defer b.mu.Unlock()
	h, held := b.Ledger.Hold(on.Pod)
	if lasts(&h, held, &on) || b.left.since(on.Pod, read) {
		return false
	}
	b.podSeen(pod)
	return true
}
