package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Clashes settles what slips through the fence: API servers learn of a new epoch
// from a watch, so a Binding of a replaced scheduler may come to pass for a moment
// after it, onto cards that we have given away since. The pod of the older epoch
// loses: it is evicted, before its containers start if possible. Until it has gone
// both count.
//
// What a record says is not enough to end anybody: the pod must have appeared
// after our term began, in an earlier epoch, and the other must have been bound
// by this very process. So nobody can have another's pod evicted by forging one.
type Clashes struct {
	Client kubernetes.Interface
	Ledger *ledger.Ledger
	// First is the first epoch of our term; 0: there has been none.
	First func() int64
	// Lost is told of each pod that loses, once.
	Lost   func(p *gpu.Placement, text string)
	Logger klog.Logger

	mu    sync.Mutex
	given map[gpu.PodID]struct{}   // guarded by mu; pods that we have sent Bindings for
	late  map[gpu.PodID]*latecomer // guarded by mu; those that may have to go
	news  chan struct{}            // guarded by mu; holds one when late has grown; nil before the first use
}

// latecomer is a pod of an earlier epoch that has appeared in ours.
type latecomer struct {
	gpu.Placement
	epoch int64 // it was bound in
	told  bool
}

// How often latecomers are looked at while there are some, and how long an
// eviction may take.
const (
	clashLook = 100 * time.Millisecond
	evictTime = 5 * time.Second
)

// Sending tells that a Binding of ours is about to be sent.
func (c *Clashes) Sending(pod gpu.PodID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given == nil {
		c.given = map[gpu.PodID]struct{}{}
	}
	c.given[pod] = struct{}{}
}

// Gone tells of a pod of which nothing more will be heard.
func (c *Clashes) Gone(pod gpu.PodID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.given, pod)
	delete(c.late, pod)
}

// Appeared tells of a bound pod that had not been known to be bound.
func (c *Clashes) Appeared(pod *corev1.Pod, p *gpu.Placement) {
	if len(p.Grants) == 0 {
		return
	}
	first := c.First()
	epoch, ours := codec.BoundIn(pod)
	if !ours || epoch >= first {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.given, p.Pod) // if we have sent one too, it came too late
	if c.late == nil {
		c.late = map[gpu.PodID]*latecomer{}
	}
	c.late[p.Pod] = &latecomer{Placement: *p, epoch: epoch}
	c.Logger.Info("pod has appeared that was bound in an earlier epoch", "pod", klog.KObj(pod), "podUID", pod.UID, "node", p.Node, "epoch", epoch, "first", first)
	select {
	case c.told() <- struct{}{}:
	default:
	}
}

// told is where it is told that there is somebody to look at. mu is held.
func (c *Clashes) told() chan struct{} {
	if c.news == nil {
		c.news = make(chan struct{}, 1)
	}
	return c.news
}

// Run looks at those who have appeared, until ctx ends.
func (c *Clashes) Run(ctx context.Context) error {
	c.mu.Lock()
	news := c.told()
	c.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-news:
		}
		for c.settle(ctx) && pause(ctx, clashLook) {
		}
	}
}

// settle looks at each latecomer once, and reports whether there are some left.
func (c *Clashes) settle(ctx context.Context) (left bool) {
	for _, l := range c.latecomers() {
		switch by, final := c.lost(l); {
		case !final:
			left = true
		case by == "":
			c.drop(l.Pod) // there was room for it, or the other was not bound after all
		case c.evict(ctx, l, by) != nil:
			left = true
		default:
			c.drop(l.Pod)
		}
	}
	return left
}

func (c *Clashes) latecomers() (all []*latecomer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.late {
		all = append(all, l)
	}
	return all
}

func (c *Clashes) drop(pod gpu.PodID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.late, pod)
}

// lost returns the pod to which l loses, "" for none. It is not final while the
// outcome of a Binding of ours is open: nobody is evicted for one that fails.
func (c *Clashes) lost(l *latecomer) (by gpu.PodID, final bool) {
	final = true
	for _, rival := range c.Ledger.Rivals(l.Pod) {
		c.mu.Lock()
		_, ours := c.given[rival]
		c.mu.Unlock()
		h, held := c.Ledger.Hold(rival)
		switch {
		case held && h.State == ledger.Held: // by this process, though its Binding may not be sent yet
			final = false
		case !ours || !held || h.State == ledger.Lingering:
		default:
			return rival, true
		}
	}
	return "", final
}

// evict has the pod end in its own time; the UID makes it that very pod.
func (c *Clashes) evict(ctx context.Context, l *latecomer, by gpu.PodID) error {
	text := fmt.Sprintf("pod %s/%s on %s was bound in epoch %d by a scheduler that had been replaced, to cards (%s) that the pod with UID %s has been given since: it is evicted",
		l.Namespace, l.Name, l.Node, l.epoch, cardsText(l.Uses()), by)
	if !l.told {
		l.told = true
		c.Logger.Info("pod loses its cards to one of a later epoch and is evicted", "pod", klog.KRef(l.Namespace, l.Name), "podUID", l.Pod, "node", l.Node, "winner", by)
		c.Lost(&l.Placement, text)
	}
	ctx, stop := context.WithTimeout(ctx, evictTime)
	defer stop()
	uid := types.UID(l.Pod)
	err := c.Client.CoreV1().Pods(l.Namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it has gone, or it is another of its name
	}
	if err != nil {
		c.Logger.Error(err, "pod could not be evicted, and is tried again", "pod", klog.KRef(l.Namespace, l.Name), "podUID", l.Pod)
		pause(ctx, time.Second)
	}
	return err
}
