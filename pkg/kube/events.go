package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// Events tells pods' owners what was decided, through events on the pods.
//
// client-go has a recorder for this, which is not used: it puts all events of
// one reason together after ten in ten minutes, whatever they say, drops without
// counting, and sleeps for seconds with the queue behind it when a write fails.
// What is told here has been thinned out already: a pod gets an event when its
// set of reasons changes.
type Events struct {
	client  kubernetes.Interface
	now     func() time.Time
	dropped func()
	queue   chan *corev1.Event

	mu   sync.Mutex
	told *memory // guarded by mu
}

// mostQueued is how many events may wait to be written. More come only while the
// API server is slow, when writing ever more would not help it.
const mostQueued = 1000

// NewEvents returns events that are written by client once Run runs, and calls
// dropped for each that is not.
func NewEvents(client kubernetes.Interface, now func() time.Time, dropped func()) *Events {
	return &Events{client: client, now: now, dropped: dropped, queue: make(chan *corev1.Event, mostQueued), told: newMemory()}
}

// Refused tells that no node does, if that is news. It never blocks.
func (e *Events) Refused(r *gpu.Request, dominant gpu.Reason, codes, text string) {
	e.mu.Lock()
	times, news := e.told.refusal(r.Pod, codes, e.now())
	e.mu.Unlock()
	if news {
		e.send(event(about{r.Pod, r.Namespace, r.Name}, corev1.EventTypeWarning, string(dominant), codes, text, times))
	}
}

// reasonAllocated is the reason of the event about success.
const reasonAllocated = "CardsAllocated"

// Bound tells which cards the pod has got. It never blocks.
func (e *Events) Bound(b engine.Bound) {
	p := &b.Placement
	e.Forget(p.Pod)
	if len(p.Grants) > 0 {
		e.send(event(about{p.Pod, p.Namespace, p.Name}, corev1.EventTypeNormal, reasonAllocated, string(p.Node), boundText(&b), 1))
	}
}

// Lost tells that the pod has to go, since its cards have been given to another.
// It never blocks.
func (e *Events) Lost(p *gpu.Placement, text string) {
	e.send(event(about{p.Pod, p.Namespace, p.Name}, corev1.EventTypeWarning, string(gpu.BindConflict), string(p.Node), text, 1))
}

// Mismatch tells, on the node, that the books disagree. It never blocks.
func (e *Events) Mismatch(node gpu.NodeID, text string) {
	e.send(nodeEvent(node, string(gpu.LedgerMismatch), text))
}

// reasonHindered is the reason of the event about a leader that may not decide.
const reasonHindered = "LeaderHindered"

// Hindered tells, on the Lease, what keeps its holder from deciding: nothing is
// bound meanwhile. It never blocks.
func (e *Events) Hindered(lease corev1.ObjectReference, holder Holder, why string) {
	e.send(leaseEvent(lease, reasonHindered, holder.Host+" holds the lease and does not decide: "+why))
}

// Forget drops what is known of a pod that nothing more will be told about.
func (e *Events) Forget(pod gpu.PodID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told.forget(pod)
}

// send queues the event, or drops it.
func (e *Events) send(ev *corev1.Event) {
	stamp := metav1.NewTime(e.now())
	ev.FirstTimestamp, ev.LastTimestamp = stamp, stamp
	select {
	case e.queue <- ev:
	default:
		e.drop(ev)
	}
}

// drop counts the event as not written, and lets it be told when it comes up
// again.
func (e *Events) drop(ev *corev1.Event) {
	e.dropped()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told.untell(gpu.PodID(ev.InvolvedObject.UID))
}

// Limits of the writing: so many at once, so long each, and so long for what is
// queued when ctx has ended.
const (
	writers   = 4
	writeTime = 5 * time.Second
	lastTime  = 2 * time.Second
)

// Run writes events until ctx ends, and then, for a moment, what is left.
func (e *Events) Run(ctx context.Context) error {
	var group sync.WaitGroup
	for range writers {
		group.Go(func() { e.work(ctx) })
	}
	group.Wait()
	return ctx.Err()
}

func (e *Events) work(ctx context.Context) {
	for {
		select {
		case ev := <-e.queue:
			e.write(ctx, ev, writeTime)
		case <-ctx.Done():
			e.drain(ctx)
			return
		}
	}
}

func (e *Events) drain(ctx context.Context) {
	until := time.Now().Add(lastTime)
	for {
		select {
		case ev := <-e.queue:
			if left := time.Until(until); left > 0 {
				e.write(ctx, ev, left)
			} else {
				e.drop(ev)
			}
		default:
			return
		}
	}
}

// write makes the event; one of that name that is there already, because the
// same was told before, is brought up to date instead. One that has been begun
// when ctx ends is finished.
func (e *Events) write(ctx context.Context, ev *corev1.Event, longest time.Duration) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), longest)
	defer stop()
	events := e.client.CoreV1().Events(ev.Namespace)
	_, err := events.Create(ctx, ev, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = events.Patch(ctx, ev.Name, apitypes.MergePatchType, again(ev), metav1.PatchOptions{})
	}
	if err != nil {
		klog.FromContext(ctx).V(2).Info("event not written", "pod", klog.KRef(ev.Namespace, ev.InvolvedObject.Name),
			"podUID", ev.InvolvedObject.UID, "reason", ev.Reason, "cause", err)
		e.drop(ev)
	}
}

// again is the change of an event that happens once more.
func again(ev *corev1.Event) []byte {
	patch, err := json.Marshal(map[string]any{
		"count": ev.Count, "lastTimestamp": ev.LastTimestamp, "message": ev.Message, "reason": ev.Reason,
	})
	if err != nil { // texts, a number and a time can be encoded
		panic(fmt.Sprintf("encode event: %v", err))
	}
	return patch
}
