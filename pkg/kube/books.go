package kube

import (
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/metrics"
	"heteroflow.io/heteroflow/pkg/policy"
	"heteroflow.io/heteroflow/pkg/topology"
)

// Books turns what is seen of nodes and pods into the ledger's moves. It is safe
// for concurrent use, by informers and the audit; but what happens to one object
// must be told in order, as an informer does.
type Books struct {
	Ledger   *ledger.Ledger
	Settings policy.Settings
	// Linger is how long past its grace period a pod counts whose object has
	// gone while its containers may run.
	Linger time.Duration
	Now    func() time.Time
	Logger klog.Logger
	// InventoryError is told of inventories that cannot be read, TopologyError of
	// topologies, Settled of pods that wait for no node any more, Gone of pods that nothing more will be heard
	// of. They must not call back: the books are locked.
	InventoryError func()
	TopologyError  func()
	Settled        func(gpu.PodID)
	Gone           func(gpu.PodID)
	// Appeared is told of bound pods that were not known to be bound; nil: nobody
	// is.
	Appeared func(*corev1.Pod, *gpu.Placement)
	// Forged is told of pods on which somebody else has written what only the
	// scheduler writes; nil: nobody is. It must not call back either.
	Forged func(pod *corev1.Pod, kind metrics.Forgery, text string)

	mu     sync.Mutex                       // held for each move, so that what it is based on still holds
	faults map[gpu.NodeID]string            // guarded by mu; node -> what is wrong with its inventory or topology; told once
	left   departures                       // guarded by mu
	places map[gpu.NodeID]topology.Location // guarded by mu; what the topology file says; never edited

	forgeries forgeries // guarded by mu
}

// NodeSeen tells of a node that is there.
func (b *Books) NodeSeen(node *corev1.Node) {
	facts, err := codec.Facts(node, b.Settings)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setNode(facts, err)
}

// nodeSeen is NodeSeen for who has the lock.
func (b *Books) nodeSeen(node *corev1.Node) { b.setNode(codec.Facts(node, b.Settings)) }

func (b *Books) setNode(facts ledger.Facts, err error) {
	facts.Location = b.located(facts.ID, facts.Location)
	b.inventory(facts.ID, err)
	b.Ledger.SetNode(facts)
}

// inventory tells of an inventory or a topology that cannot be read, once until it changes:
// nodes are seen with every heartbeat.
func (b *Books) inventory(node gpu.NodeID, err error) {
	if err == nil {
		delete(b.faults, node)
		return
	}
	if b.faults[node] == err.Error() {
		return
	}
	if b.faults == nil {
		b.faults = map[gpu.NodeID]string{}
	}
	b.faults[node] = err.Error()
	if errors.Is(err, codec.ErrTopology) {
		b.TopologyError()
		b.Logger.Error(err, "topology cannot be read, how the node's cards are joined counts as not known", "node", node)
		return
	}
	b.InventoryError()
	b.Logger.Error(err, "inventory cannot be read, the node counts as having no cards", "node", node)
}

// NodeGone tells of a node that is no longer there.
func (b *Books) NodeGone(node *corev1.Node) {
	id := gpu.NodeID(node.Name)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.faults, id)
	b.Ledger.RemoveNode(id)
}

// PodSeen tells of a pod that is there.
func (b *Books) PodSeen(pod *corev1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.podSeen(pod)
}

// podSeen is PodSeen for who has the lock.
func (b *Books) podSeen(pod *corev1.Pod) {
	id := gpu.PodID(pod.UID)
	if pod.Spec.NodeName != "" || codec.Ended(pod) || pod.DeletionTimestamp != nil {
		b.Settled(id)
	}
	switch {
	case codec.Active(pod):
		b.left.remove(id)
		p := codec.Placement(pod)
		if !b.keepCards(pod, &p) {
			b.tellForeign(pod, &p)
		}
		h, held := b.Ledger.Hold(id)
		b.Ledger.Confirm(p)
		if b.Appeared != nil && !lasts(&h, held, &p) {
			b.Appeared(pod, &p)
		}
	case codec.Ended(pod):
		b.left.add(id, b.Now())
		b.forgeries.forget(id)
		b.Ledger.Release(id)
	default:
		b.early(pod)
		if pod.DeletionTimestamp != nil { // nobody binds it any more, so nobody goes for it
			b.Ledger.Unclaim(id)
		}
	}
	// A pod that is not bound may be about to be: its hold is the engine's.
}

// keepCards puts back into p the cards that the pod is known to have, or the
// claim on those that it may have. They never change while it runs: who edits the
// record on the pod, or writes one later, does not change what its containers use.
// Who edits what they are shown may do so, when they start anew. It reports whether
// there was anything to put back.
func (b *Books) keepCards(pod *corev1.Pod, p *gpu.Placement) bool {
	h, known := b.Ledger.Hold(p.Pod)
	if !known || h.State == ledger.Held || h.State == ledger.Claimed || h.Node != p.Node || len(h.Grants) == 0 && len(h.Foreign) == 0 {
		return false
	}
	if reflect.DeepEqual(h.Grants, p.Grants) && slices.Equal(h.Foreign, p.Foreign) {
		return false
	}
	p.Grants, p.Foreign = h.Grants, b.changed(pod, h.Grants, h.Foreign)
	return true
}

// tellForeign says, when it is first seen, that a pod has cards which nobody can
// name: cards are closed for it, and somebody will ask why.
func (b *Books) tellForeign(pod *corev1.Pod, p *gpu.Placement) {
	if len(p.Foreign) == 0 {
		return
	}
	if h, known := b.Ledger.Hold(p.Pod); known && len(h.Foreign) > 0 {
		return
	}
	b.Logger.Info("pod holds cards that cannot be named, others are closed for it", "pod", klog.KObj(pod), "podUID", pod.UID,
		"node", p.Node, "claims", p.Foreign)
	b.doubted(pod)
}

// PodGone tells of a pod whose object has gone. certain says that pod is the
// object as it was at the end; else something may have been missed.
//
// An object that goes in the ordinary way has ended before: the kubelet deletes
// it last. Otherwise somebody has deleted it by force, or pod garbage collection
// has, and the containers may still run.
func (b *Books) PodGone(pod *corev1.Pod, certain bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.podGone(pod, certain)
}

// podGone is PodGone for who has the lock.
func (b *Books) podGone(pod *corev1.Pod, certain bool) {
	id := gpu.PodID(pod.UID)
	b.Gone(id)
	b.left.add(id, b.Now())
	b.forgeries.forget(id)
	b.Ledger.Unclaim(id) // a bind that fails after this leads back to nothing
	switch {
	case codec.Ended(pod):
		b.Ledger.Release(id)
	case pod.Spec.NodeName == "" && certain:
		b.Ledger.Unreserve(id)
	default:
		// What was not bound when it was last seen may have been bound since:
		// then the ledger has it, and else Linger does nothing.
		b.Ledger.Linger(id, b.Now().Add(codec.Grace(pod)+b.Linger))
	}
}
