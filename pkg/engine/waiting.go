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
	// tried has the version of each node that seemed to fit and that the pod did
	// not get: kube-scheduler may have reasons of its own, which do not end
	// because cards are free.
	tried map[gpu.NodeID]uint64
	vain  int          // touches that it did not get a node after
	short bool         // a quota was in its way
	purse ledger.Purse // that quota at the last look
	until int          // the turn of Wake before which it is left alone
}

// Bounds of the memory for pods that wait.
const (
	mostWaiting = 8192
	mostTried   = 1024 // nodes of a pod; then it tries them anew
)

// waiting remembers refused pods until they are bound or gone. The oldest are
// forgotten when there are too many: kube-scheduler tries them all the same.
// The zero value is ready for use.
type waiting struct {
	mu                  sync.Mutex
	remembered[*waiter] // guarded by mu, and so are the waiters; in the order of their turns
}

// refused enters the pod, which fitted nowhere in that state; short says that a
// quota is one of the reasons.
func (w *waiting) refused(r *gpu.Request, in ledger.Snapshot, short bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.byPod[r.Pod]
	if at == nil {
		at = &waiter{}
	}
	at.request, at.seen, at.short = *r, in, short
	at.purse = in.Purse(r.Namespace)
	at.refusals++
	w.put(r.Pod, at, mostWaiting)
}

// forget drops a pod that waits no more.
func (w *waiting) forget(pod gpu.PodID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.take(pod)
}

// postpone puts a pod last. It is called with mu held.
func (w *waiting) postpone(pod gpu.PodID) {
	if i := slices.Index(w.order, pod); i >= 0 {
		w.order = append(slices.Delete(w.order, i, i+1), pod)
	}
}

// try notes that the pod did not get this state of a node.
func (at *waiter) try(node *ledger.Node) {
	if at.tried == nil || len(at.tried) >= mostTried {
		at.tried = map[gpu.NodeID]uint64{}
	}
	at.tried[node.ID] = node.Version
}
