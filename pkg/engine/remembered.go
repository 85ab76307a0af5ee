package engine

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// remembered is something about each of a bounded number of pods: when there are
// too many, those that came first are forgotten. The zero value is ready for use
// by one goroutine at a time.
type remembered[T any] struct {
	byPod map[gpu.PodID]T
	order []gpu.PodID // the pods of byPod, the first to be forgotten first
}

// put remembers v of the pod, which keeps its place if it is known, and no more
// than most pods.
func (m *remembered[T]) put(pod gpu.PodID, v T, most int) {
	if m.byPod == nil {
		m.byPod = map[gpu.PodID]T{}
	}
	if _, known := m.byPod[pod]; !known {
		m.order = append(m.order, pod)
	}
	m.byPod[pod] = v
	for len(m.order) > most {
		delete(m.byPod, m.order[0])
		m.order = m.order[1:]
	}
}

// take returns what is remembered of the pod, nothing if it is not known, and
// forgets it.
func (m *remembered[T]) take(pod gpu.PodID) T {
	v, known := m.byPod[pod]
	if known {
		delete(m.byPod, pod)
		i := slices.Index(m.order, pod)
		m.order = slices.Delete(m.order, i, i+1)
	}
	return v
}
