package engine

import (
	"sync"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Decision is what was found out about a pod before it was bound, for its
// event.
type Decision struct {
	Feasible int // nodes that fit
	Asked    int // nodes that kube-scheduler asked about
	Best     []Scored
}

// mostDecisions bounds the memory for pods that are filtered and never bound.
const mostDecisions = 4096

// bestShown is how many nodes' scores an event names.
const bestShown = 3

// decisions remembers the last decision about each pod until it is bound. The
// oldest are forgotten when there are too many. The zero value is ready for use.
type decisions struct {
	mu                   sync.Mutex
	remembered[Decision] // guarded by mu
}

func (d *decisions) filtered(pod gpu.PodID, feasible, asked int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.put(pod, Decision{Feasible: feasible, Asked: asked}, mostDecisions)
}

func (d *decisions) scored(pod gpu.PodID, all []Scored, best []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.byPod[pod]
	at.Best = nil
	for _, i := range best[:min(bestShown, len(best))] {
		at.Best = append(at.Best, all[i])
	}
	d.put(pod, at, mostDecisions)
}

// take returns the decision about the pod and forgets it.
func (d *decisions) take(pod gpu.PodID) Decision {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.remembered.take(pod)
}
