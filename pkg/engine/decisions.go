package engine

import (
	"slices"
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
	mu    sync.Mutex
	byPod map[gpu.PodID]Decision // guarded by mu
	order []gpu.PodID            // guarded by mu: the pods of byPod, oldest first
}

func (d *decisions) filtered(pod gpu.PodID, feasible, asked int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.put(pod, Decision{Feasible: feasible, Asked: asked})
}

func (d *decisions) scored(pod gpu.PodID, all []Scored, best []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.byPod[pod]
	at.Best = nil
	for _, i := range best[:min(bestShown, len(best))] {
		at.Best = append(at.Best, all[i])
	}
	d.put(pod, at)
}

// put must be called with mu held.
func (d *decisions) put(pod gpu.PodID, at Decision) {
	if d.byPod == nil {
		d.byPod = map[gpu.PodID]Decision{}
	}
	if _, known := d.byPod[pod]; !known {
		d.order = append(d.order, pod)
	}
	d.byPod[pod] = at
	for len(d.order) > mostDecisions {
		delete(d.byPod, d.order[0])
		d.order = d.order[1:]
	}
}

// take returns the decision about the pod and forgets it.
func (d *decisions) take(pod gpu.PodID) Decision {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, known := d.byPod[pod]
	if known {
		delete(d.byPod, pod)
		i := slices.Index(d.order, pod)
		d.order = slices.Delete(d.order, i, i+1)
	}
	return at
}
