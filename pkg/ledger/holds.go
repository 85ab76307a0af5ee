package ledger

import (
	"cmp"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// A node's holds are a slice ordered by pod. It is never edited: snapshots have
// it. These make the next one.

// find returns where pod is in holds, or would be.
func find(holds []*Hold, pod gpu.PodID) (int, bool) {
	return slices.BinarySearchFunc(holds, pod, func(h *Hold, pod gpu.PodID) int { return cmp.Compare(h.Pod, pod) })
}

// with returns holds with h in it, in place of another of the same pod.
func with(holds []*Hold, h *Hold) []*Hold {
	i, ok := find(holds, h.Pod)
	next := make([]*Hold, 0, len(holds)+1)
	next = append(next, holds[:i]...)
	next = append(next, h)
	if ok {
		i++
	}
	return append(next, holds[i:]...)
}

// without returns the holds for which drop says no.
func without(holds []*Hold, drop func(*Hold) bool) []*Hold {
	return slices.DeleteFunc(slices.Clone(holds), drop)
}
