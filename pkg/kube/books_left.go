package kube

import (
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// departures remembers which pods have ended or gone lately. Who has read a pod
// before it left, and acts on that afterwards, would bring back what it held. The
// zero value is ready for use.
type departures struct {
	at    map[gpu.PodID]time.Time // pod -> when that was first seen
	order []departure             // oldest first; who came back is in it still
}

type departure struct {
	pod gpu.PodID
	at  time.Time
}

const (
	// leftFor is how long a departure is remembered, and so the longest that
	// somebody may act on what he has read.
	leftFor = 10 * time.Minute
	// mostLeft bounds the memory, at more pods than a large cluster ends in one
	// audit. The oldest are forgotten.
	mostLeft = 1 << 16
)

// add notes that the pod has left. Its first leaving counts: what was read after
// that is read without it.
func (d *departures) add(pod gpu.PodID, now time.Time) {
	d.forget(now)
	if _, known := d.at[pod]; known {
		return
	}
	if d.at == nil {
		d.at = map[gpu.PodID]time.Time{}
	}
	d.at[pod] = now
	d.order = append(d.order, departure{pod, now})
}

// forget makes room for one more.
func (d *departures) forget(now time.Time) {
	for len(d.order) > 0 && (len(d.order) >= mostLeft || now.Sub(d.order[0].at) > leftFor) {
		if first := d.order[0]; d.at[first.pod].Equal(first.at) {
			delete(d.at, first.pod)
		}
		d.order = d.order[1:]
	}
}

// remove notes that the pod is there after all.
func (d *departures) remove(pod gpu.PodID) { delete(d.at, pod) }

// since reports whether the pod has left since then: what was read of it from
// then on may be older than that.
func (d *departures) since(pod gpu.PodID, then time.Time) bool {
	at, known := d.at[pod]
	return known && !at.Before(then)
}
