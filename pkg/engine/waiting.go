package engine

import (
	"slices"
	"sync"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// waiter is a pod that no node fitted when it was last asked about.
type waiter struct {
	request  gpu.Request
	refusals int             // how often it has been refused
	seen     ledger.Snapshot // the newest state in which no node is known to fit
	// tried has the nodes, as they were, that seemed to fit and that the pod did
	// not get: kube-scheduler may have reasons of its own, which do not end
	// because cards are free.
	tried map[gpu.NodeID]*ledger.Node
}

// mostWaiting bounds the memory for pods that wait.
const mostWaiting = 8192

// waiting remembers refused pods until they are bound or gone. The oldest are
// forgotten when there are too many: kube-scheduler tries them all the same.
// The zero value is ready for use.
type waiting struct {
	mu    sync.Mutex
	byPod map[gpu.PodID]*waiter // guarded by mu, and so are the waiters
	order []gpu.PodID           // guarded by mu: the pods of byPod, in the order of their first refusal
}

// refused enters the pod, which fitted nowhere in that state.
func (w *waiting) refused(r *gpu.Request, in ledger.Snapshot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byPod == nil {
		w.byPod = map[gpu.PodID]*waiter{}
	}
	at := w.byPod[r.Pod]
	if at == nil {
		at = &waiter{}
		w.byPod[r.Pod] = at
		w.order = append(w.order, r.Pod)
	}
	at.request, at.seen = *r, in
	at.refusals++
	for len(w.order) > mostWaiting {
		delete(w.byPod, w.order[0])
		w.order = w.order[1:]
	}
}

// forget drops a pod that waits no more.
func (w *waiting) forget(pod gpu.PodID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.byPod[pod]; !known {
		return
	}
	delete(w.byPod, pod)
	i := slices.Index(w.order, pod)
	w.order = slices.Delete(w.order, i, i+1)
}
