package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// former are the namespaces that are there no more while something is still held for
// their pods, as by those whose objects were deleted by force. Whose that is and whom
// it is charged to stays as the namespace last said: else a namespace of the same
// name, made anew by somebody else, would take it over. It is for one goroutine.
type former struct {
	podsIn func(namespace string) []gpu.PodID
	there  map[string]*corev1.Namespace // by name; those that were there at the last look
	left   []departed
}

type departed struct {
	namespace *corev1.Namespace
	pods      []gpu.PodID // those that held something when it was found to be gone
}

// join returns the namespaces that are there, and the former ones with them. One that
// was made anew has another UID.
func (f *former) join(now []*corev1.Namespace) []*corev1.Namespace {
	there := make(map[string]*corev1.Namespace, len(now))
	for _, n := range now {
		there[n.Name] = n
	}
	for name, was := range f.there {
		if is := there[name]; is == nil || is.UID != was.UID {
			f.left = append(f.left, departed{was, f.podsIn(name)})
		}
	}
	f.there = there
	f.left = slices.DeleteFunc(f.left, f.over)
	for _, d := range f.left {
		now = append(now, d.namespace)
	}
	return now
}

// over reports whether none of its pods holds anything any more.
func (f *former) over(d departed) bool {
	holding := f.podsIn(d.namespace.Name)
	return !slices.ContainsFunc(d.pods, func(pod gpu.PodID) bool {
		_, holds := slices.BinarySearch(holding, pod)
		return holds
	})
}

// anyOver reports whether that is so of any of them.
func (f *former) anyOver() bool { return slices.ContainsFunc(f.left, f.over) }
