package engine

import (
	"slices"
	"sync"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// waiter is a pod that no node fitted when it was last asked about.
type waiter struct {
	request  gpu.Request
	shape    string          // of the request; see keyOf
	refusals int             // how often it has been refused
	seen     ledger.Snapshot // the newest state in which no node is known to fit
	whose    whose           // at that time
	// tried has the version of each node that seemed to fit and that the pod did
	// not get: kube-scheduler may have reasons of its own, which do not end
	// because cards are free.
	tried map[gpu.NodeID]uint64
	vain  int // touches that it did not get a node after
	until int // the turn of Wake before which it is left alone
	// least is what it takes of quotas on any card, and dear what quotas would have
	// to allow for nodes to fit that have room: then it may fit a node though none
	// has changed.
	least gpu.Spending
	dear  prices
}

// whose says to whom a pod belongs: its tenant, and why nothing new may come from
// its namespace; and whether it waits for its task group. Nothing else that people write
// changes what a node is to it without changing the node, or what its quotas leave.
type whose struct {
	tenant gpu.TenantID
	closed gpu.Reason
	waits  bool
}

func ownerOf(namespace string, in ledger.Snapshot) (w whose) {
	w.tenant, w.closed = in.Owner(namespace)
	return w
}

// whoseIs says whose the pod of the request is.
func whoseIs(r *gpu.Request, in ledger.Snapshot) whose {
	w := ownerOf(r.Namespace, in)
	w.waits = waits(r, in)
	return w
}

// class is of all waiters that fit the same nodes, but for quotas.
type class struct {
	shape string
	whose whose
	// Where services keep room for themselves: whose members they are, and how long they
	// stay.
	group   gpu.GroupID
	runtime time.Duration
}

func (at *waiter) class(in ledger.Snapshot) class {
	c := class{shape: at.shape, whose: at.whose}
	if in.Keeps() {
		c.runtime = at.request.Runtime
		if _, served := in.Service(at.request.Group); served {
			c.group = at.request.Group
		}
	}
	return c
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

// refused enters the pod, which is theirs and fitted nowhere in that state; on some
// nodes for these prices alone.
func (w *waiting) refused(r *gpu.Request, by whose, in ledger.Snapshot, dear prices) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.byPod[r.Pod]
	if at == nil {
		at = &waiter{}
	}
	at.request, at.whose, at.seen, at.least, at.dear = *r, by, in, pipeline.Least(r), dear
	at.shape = keyOf(r, 0)
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

// anew forgets what is known of nodes, as all of them may do for the pod, which is
// theirs now.
func (at *waiter) anew(theirs whose) {
	at.whose = theirs
	at.seen, at.tried, at.dear, at.vain, at.until = ledger.Snapshot{}, nil, prices{}, 0, 0
}

// try notes that the pod did not get this state of a node.
func (at *waiter) try(node *ledger.Node) {
	if at.tried == nil || len(at.tried) >= mostTried {
		at.tried = map[gpu.NodeID]uint64{}
	}
	at.tried[node.ID] = node.Version
}
