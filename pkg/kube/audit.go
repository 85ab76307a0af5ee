package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Audit holds a second book against the ledger: what the API server's pods add
// up to when all of them are read anew. The watch may have lost something, and
// somebody may have edited a record; neither must go unseen.
//
// A difference that is there at two audits is a mismatch, and no Binding that is
// on its way. It is told of and, where one look at the pod explains it, repaired.
// As long as it stands the larger figure counts: what the ledger holds is held,
// and cards that only the other book names take nobody new.
type Audit struct {
	Client kubernetes.Interface
	Books  *Books
	Ready  func() bool // whether the ledger has been built
	// Found is told of each mismatch, once as long as it stays the same; Standing
	// of how many there are after an audit.
	Found    func(node gpu.NodeID, text string)
	Standing func(mismatches int)

	told map[gpu.PodID]string // pod -> the mismatch that has been told

	mu       sync.Mutex
	suspects map[gpu.PodID]string // guarded by mu; pod -> its difference at the last audit; never edited
}

// mostLooks bounds how many pods one audit looks at one by one.
const mostLooks = 200

// Run audits every so often until ctx ends, the first time after one period.
func (a *Audit) Run(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if !a.Ready() {
				continue
			}
			pass, stop := context.WithTimeout(ctx, every)
			if err := a.audit(pass); err != nil && ctx.Err() == nil {
				a.Books.Logger.Error(err, "the books could not be compared")
			}
			stop()
		}
	}
}

// audit compares the books once.
func (a *Audit) audit(ctx context.Context) error {
	second, err := a.recompute(ctx)
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	differ := a.differing(second)
	if len(differ) > mostLooks {
		a.Books.Logger.Info("the books differ about more pods than one audit looks at", "pods", len(differ))
		differ = differ[:mostLooks]
	}
	now := &findings{before: a.differences(), differ: map[gpu.PodID]string{}, stands: map[gpu.PodID]finding{}, fences: map[gpu.NodeID][]gpu.CardID{}}
	for _, p := range differ {
		a.look(ctx, p, now)
	}
	a.Books.Ledger.Fence(now.fences)
	a.conclude(now)
	return nil
}

// findings is what one audit finds.
type findings struct {
	before map[gpu.PodID]string // those of the audit before
	differ map[gpu.PodID]string // pod -> what the books say of it
	stands map[gpu.PodID]finding
	fences map[gpu.NodeID][]gpu.CardID
}

type finding struct {
	node gpu.NodeID
	text string
}

// recompute reads all pods from the store, past every cache, and returns what
// those that count hold.
func (a *Audit) recompute(ctx context.Context) (map[gpu.PodID]gpu.Placement, error) {
	book := map[gpu.PodID]gpu.Placement{}
	list := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return a.Client.CoreV1().Pods("").List(ctx, o)
	})
	err := list.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if pod, ok := o.(*corev1.Pod); ok && codec.Active(pod) {
			book[gpu.PodID(pod.UID)] = codec.Placement(pod)
		}
		return nil
	})
	return book, err
}

// differing returns the pods about which the books differ, as either has them,
// ordered by pod. Holds of binds on their way, and those that linger, are the
// ledger's alone.
func (a *Audit) differing(second map[gpu.PodID]gpu.Placement) (differ []gpu.Placement) {
	for id, theirs := range second {
		if h, ok := a.Books.Ledger.Hold(id); !ok || !alike(&h, &theirs) {
			differ = append(differ, theirs)
		}
	}
	for _, h := range a.Books.Ledger.Confirmed() {
		if _, ok := second[h.Pod]; !ok {
			differ = append(differ, h.Placement)
		}
	}
	slices.SortFunc(differ, func(a, b gpu.Placement) int { return strings.Compare(string(a.Pod), string(b.Pod)) })
	return differ
}

// alike reports whether both books have the pod on the same cards of one node.
func alike(h *ledger.Hold, theirs *gpu.Placement) bool {
	return h.State != ledger.Held && h.State != ledger.Lingering && h.Node == theirs.Node &&
		slices.Equal(h.Uses(), theirs.Uses()) && slices.Equal(h.Foreign, theirs.Foreign)
}

// look asks for the pod itself, since either book may be behind by a moment.
func (a *Audit) look(ctx context.Context, p gpu.Placement, now *findings) {
	pod, err := a.Client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && gpu.PodID(pod.UID) != p.Pod:
		a.settle(p, nil, now)
	case err != nil: // nobody can say: what either book has counts
		a.doubt(p, now, "cannot be looked at: "+err.Error())
	default:
		a.settle(p, pod, now)
	}
}

// settle compares the ledger with the pod as it is, nil if it is gone, and
// repairs what that explains.
func (a *Audit) settle(p gpu.Placement, pod *corev1.Pod, now *findings) {
	h, held := a.Books.Ledger.Hold(p.Pod)
	if pod == nil || !codec.Active(pod) {
		if held && h.State != ledger.Held && h.State != ledger.Lingering && a.confirmed(h.Placement, now, "is held, and does not run any more") {
			a.end(p.Pod, pod)
		}
		return
	}
	theirs := codec.Placement(pod)
	switch {
	case held && alike(&h, &theirs):
	case !held || h.Node != theirs.Node || h.State == ledger.Held || h.State == ledger.Lingering:
		// Cards that are in use and not held are the worst there is.
		a.confirmed(theirs, now, "runs, and is not held")
		a.Books.Logger.Info("pod runs whose cards were not held, which they are now", "pod", klog.KObj(pod), "podUID", pod.UID, "node", theirs.Node)
		a.Books.PodSeen(pod)
	default:
		a.doubt(theirs, now, "is on record for "+cardsText(theirs.Uses())+", and was bound to "+cardsText(h.Uses()))
	}
}

// doubt notes a difference that stands, and fences what only the second book has.
func (a *Audit) doubt(theirs gpu.Placement, now *findings, text string) {
	a.confirmed(theirs, now, text)
	for _, u := range theirs.Uses() {
		now.fences[theirs.Node] = append(now.fences[theirs.Node], u.Card)
	}
}

// confirmed notes the difference, and reports whether the last audit had it too.
func (a *Audit) confirmed(p gpu.Placement, now *findings, text string) bool {
	text = fmt.Sprintf("pod %s/%s %s", p.Namespace, p.Name, text)
	now.differ[p.Pod] = text
	if now.before[p.Pod] != text {
		return false
	}
	now.stands[p.Pod] = finding{p.Node, text}
	return true
}

// end gives back what a pod held that does not run any more. Of one whose object
// has gone unseen it is not known whether its containers have ended.
func (a *Audit) end(id gpu.PodID, pod *corev1.Pod) {
	if pod == nil {
		a.Books.Ledger.Linger(id, a.Books.Now().Add(corev1.DefaultTerminationGracePeriodSeconds*time.Second+a.Books.Linger))
		return
	}
	a.Books.Ledger.Release(id) // ended, or not bound
}

// conclude tells of what has not been told yet.
func (a *Audit) conclude(now *findings) {
	told := map[gpu.PodID]string{}
	for id, f := range now.stands {
		told[id] = f.text
		if a.told[id] != f.text {
			a.Books.Logger.Error(errMismatch, "books", "node", f.node, "podUID", id, "difference", f.text)
			a.Found(f.node, f.text)
		}
	}
	a.Standing(len(now.stands))
	a.told = told
	a.mu.Lock()
	defer a.mu.Unlock()
	a.suspects = now.differ
}

func (a *Audit) differences() map[gpu.PodID]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.suspects
}

// Differences returns what the last audit has found, ordered by pod. Those that
// the next one finds too are mismatches.
func (a *Audit) Differences() (texts []string) {
	all := a.differences()
	for _, id := range slices.Sorted(maps.Keys(all)) {
		texts = append(texts, all[id])
	}
	return texts
}

var errMismatch = errors.New("the ledger and the API server's pods disagree")

// cardsText names cards for people.
func cardsText(uses []gpu.CardUse) string {
	if len(uses) == 0 {
		return "no card that can be named"
	}
	names := make([]string, len(uses))
	for i, u := range uses {
		names[i] = string(u.Card)
	}
	return strings.Join(names, ", ")
}
