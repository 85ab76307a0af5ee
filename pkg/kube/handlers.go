package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

func nodeHandler(b *Books) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { b.NodeSeen(o.(*corev1.Node)) },
		UpdateFunc: func(before, after any) { b.NodeChanged(before.(*corev1.Node), after.(*corev1.Node)) },
		DeleteFunc: func(o any) {
			if node, _ := last[*corev1.Node](o); node != nil {
				b.NodeGone(node)
			}
		},
	}
}

func podHandler(b *Books) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { b.PodSeen(o.(*corev1.Pod)) },
		UpdateFunc: func(before, after any) {
			was, is := before.(*corev1.Pod), after.(*corev1.Pod)
			if was.UID != is.UID {
				// One pod has gone and another of its name has come while
				// nobody was looking: only the name is the same.
				b.PodGone(was, false)
			}
			b.PodChanged(was, is)
		},
		DeleteFunc: func(o any) {
			if pod, certain := last[*corev1.Pod](o); pod != nil {
				b.PodGone(pod, certain)
			}
		},
	}
}

// last returns the object that a deletion is about, as it was last seen; certain
// is false when the deletion itself was missed and found out by a later list.
func last[T any](o any) (object T, certain bool) {
	if tombstone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		object, _ = tombstone.Obj.(T)
		return object, false
	}
	object, certain = o.(T)
	return object, certain
}
