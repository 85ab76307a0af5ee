package engine

import (
	"slices"
	"sync"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

const (
	// hintLife is how long a pod is believed to be on its way to a node. A bind
	// follows its answer within milliseconds, unless the pod has volumes to be
	// made first.
	hintLife = 3 * time.Second
	// mostHints bounds the work of planning with them. kube-scheduler has been
	// seen with some twenty binds on their way.
	mostHints = 128
)

// hints says where pods are expected that have been answered and whose bind has
// not come yet. kube-scheduler binds in the background while it asks about the
// next pod: of equal pods in a burst each would be sent to the node that was
// best for the first. A hint is no hold: it keeps nobody from cards that nobody
// else needs. The zero value is ready for use.
type hints struct {
	mu     sync.Mutex
	made   []hint        // guarded by mu; the oldest first, so the first to end first
	change chan struct{} // guarded by mu; closed when a hint goes; nil while nobody waits
}

type hint struct {
	placement gpu.Placement
	priority  int32
	until     time.Time
}

// put notes where the pod of the request is expected.
func (h *hints) put(r *gpu.Request, p gpu.Placement, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(r.Pod)
	h.made = append(h.made, hint{p, r.Priority, now.Add(hintLife)})
	if len(h.made) > mostHints {
		h.remove(h.made[0].placement.Pod)
	}
}

// drop ends the pod's hint, if it has one.
func (h *hints) drop(pod gpu.PodID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(pod)
}

func (h *hints) remove(pod gpu.PodID) {
	i := slices.IndexFunc(h.made, func(x hint) bool { return x.placement.Pod == pod })
	if i < 0 {
		return
	}
	h.made = slices.Delete(h.made, i, i+1)
	if h.change != nil {
		close(h.change)
		h.change = nil
	}
}

// live drops the hints whose time is up, and returns the others. It is called
// with mu held.
func (h *hints) live(now time.Time) []hint {
	for len(h.made) > 0 && !h.made[0].until.After(now) {
		h.remove(h.made[0].placement.Pod)
	}
	return h.made
}

// plan is the cluster as it will be when the pods have arrived, and whether it
// differs. One that there is no room for any more is left out.
func (h *hints) plan(s ledger.Snapshot, now time.Time) (plan ledger.Snapshot, differs bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.live(now) {
		if next, err := s.With(x.placement); err == nil {
			s, differs = next, true
		}
	}
	return s, differs
}

// ahead returns the pods of higher priority whose placements are such, until when
// the first of them is expected, and what is closed when any hint goes.
func (h *hints) ahead(r *gpu.Request, such func(*gpu.Placement) bool, now time.Time) (ahead []gpu.Placement, until time.Time, change <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.live(now) {
		if x.priority > r.Priority && x.placement.Pod != r.Pod && such(&x.placement) {
			if len(ahead) == 0 {
				until = x.until
			}
			ahead = append(ahead, x.placement)
		}
	}
	if len(ahead) > 0 && h.change == nil {
		h.change = make(chan struct{})
	}
	return ahead, until, h.change
}
