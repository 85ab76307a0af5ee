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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
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
	// Lister finds pods as they were last seen by the watch, which may have lost
	// their end.
	Lister corelisters.PodLister
	Books  *Books
	Ready  func() bool // whether the ledger has been built
	// Found is told of each mismatch, and of each card that is held by more than it
	// has room for, once as long as it stays the same; Standing of how many of both
	// there are after an audit.
	Found    func(node gpu.NodeID, text string)
	Standing func(mismatches int)

	told   map[gpu.PodID]string // pod or cardKey -> what has been told
	looked gpu.PodID            // who was the last whose turn it was to be looked at

	mu       sync.Mutex
	suspects map[gpu.PodID]string // guarded by mu; pod -> its difference at the last audit; never edited
}

// mostLooks bounds how many pods one audit looks at one by one, past those that
// run and are not held. The others wait for their turn, and count meanwhile.
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
			pass, stop := context.WithTimeout(ctx, min(every, leftFor))
			if err := a.audit(pass); err != nil && ctx.Err() == nil {
				a.Books.Logger.Error(err, "the books could not be compared")
			}
			stop()
		}
	}
}

// audit compares the books once.
func (a *Audit) audit(ctx context.Context) error {
	now := &findings{began: a.Books.Now(), before: a.differences(), differ: map[gpu.PodID]string{},
		stands: map[gpu.PodID]finding{}, fences: map[gpu.NodeID][]gpu.CardID{}}
	second, err := a.recompute(ctx)
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	loose, others := a.differing(second)
	for i := range loose {
		a.look(ctx, &loose[i], now)
	}
	others = a.turns(others)
	for i := range others {
		if i < mostLooks {
			a.look(ctx, &others[i], now)
		} else {
			a.keep(&others[i], now)
		}
	}
	a.Books.Ledger.Fence(now.fences)
	a.crowds(now)
	a.conclude(now)
	return nil
}

// turns orders the differences so that those come first which have waited for a
// look: a few hundred that stand must not hide what comes behind them.
func (a *Audit) turns(all []difference) []difference {
	next, _ := slices.BinarySearchFunc(all, a.looked, func(d difference, looked gpu.PodID) int {
		if d.Pod <= looked {
			return -1
		}
		return 1
	})
	all = slices.Concat(all[next:], all[:next])
	if len(all) > mostLooks {
		a.Books.Logger.Info("the books differ about more pods than one audit looks at", "pods", len(all))
		a.looked = all[mostLooks-1].Pod
	}
	return all
}

// difference is a pod about which the books differ, as one of them has it, and
// what is to be said of it as long as nobody has looked.
type difference struct {
	gpu.Placement
	text string
}

// findings is what one audit finds.
type findings struct {
	began  time.Time            // before anything was read
	before map[gpu.PodID]string // those of the audit before
	differ map[gpu.PodID]string // pod, or cardKey of a crowded card -> what is to be said of it
	stands map[gpu.PodID]finding
	fences map[gpu.NodeID][]gpu.CardID
}

type finding struct {
	node gpu.NodeID
	card gpu.CardID // that is crowded; "": about a pod
	text string
}

// book is what the API server's pods add up to. Of the tens of thousands that the
// ledger has on the same cards only the names are kept.
type book struct {
	active map[gpu.PodID]struct{}
	unlike map[gpu.PodID]gpu.Placement // those that the ledger had otherwise when they were read
}

// auditPage is how many pods are read at a time, some 15 KiB each: what is in
// memory at once is what the whole process grows by.
const auditPage = 200

// recompute reads all pods from the store, past every cache.
func (a *Audit) recompute(ctx context.Context) (book, error) {
	second := book{active: map[gpu.PodID]struct{}{}, unlike: map[gpu.PodID]gpu.Placement{}}
	list := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return a.Client.CoreV1().Pods("").List(ctx, o)
	})
	list.PageSize, list.PageBufferSize = auditPage, 1
	err := list.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		pod, ok := o.(*corev1.Pod)
		if !ok || !codec.Active(pod) {
			return nil
		}
		id, theirs := gpu.PodID(pod.UID), codec.Placement(pod)
		second.active[id] = struct{}{}
		if h, held := a.Books.Ledger.Hold(id); !lasts(&h, held, &theirs) || !alike(&h, &theirs) {
			second.unlike[id] = theirs
		}
		return nil
	})
	return second, err
}

const (
	textLoose = "runs, and is not held"
	textOver  = "is held, and does not run any more"
)

// differing returns the pods about which the books differ, ordered by pod: loose
// are those that run with nothing to hold their cards for good. Claims, holds of binds
// on their way, and those that linger, are the ledger's alone.
func (a *Audit) differing(second book) (loose, others []difference) {
	for _, id := range slices.Sorted(maps.Keys(second.unlike)) {
		theirs := second.unlike[id]
		h, held := a.Books.Ledger.Hold(id)
		switch {
		case !lasts(&h, held, &theirs):
			loose = append(loose, difference{theirs, textLoose})
		case !alike(&h, &theirs):
			others = append(others, difference{theirs, textRecord(&h, &theirs)})
		}
	}
	for _, h := range a.Books.Ledger.Confirmed() {
		if _, ok := second.active[h.Pod]; !ok {
			others = append(others, difference{h.Placement, textOver})
		}
	}
	slices.SortFunc(others, func(a, b difference) int { return strings.Compare(string(a.Pod), string(b.Pod)) })
	return loose, others
}

// lasts reports whether the pod is held on its node by more than a claim, a bind
// without an outcome, or than until some time.
func lasts(h *ledger.Hold, held bool, theirs *gpu.Placement) bool {
	return held && h.Node == theirs.Node && h.State != ledger.Claimed && h.State != ledger.Held && h.State != ledger.Lingering
}

// alike reports whether both books have the pod on the same cards.
func alike(h *ledger.Hold, theirs *gpu.Placement) bool {
	return slices.Equal(h.Uses(), theirs.Uses()) && slices.Equal(h.Foreign, theirs.Foreign)
}

func textRecord(h *ledger.Hold, theirs *gpu.Placement) string {
	return "is on record for " + cardsText(theirs.Uses()) + ", and was bound to " + cardsText(h.Uses())
}

// look asks for the pod itself, since either book may be behind by a moment.
func (a *Audit) look(ctx context.Context, d *difference, now *findings) {
	pod, err := a.Client.CoreV1().Pods(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && gpu.PodID(pod.UID) != d.Pod:
		a.settle(&d.Placement, nil, now)
	case err != nil: // nobody can say: what either book has counts
		d.text = "cannot be looked at: " + err.Error()
		a.keep(d, now)
	default:
		a.settle(&d.Placement, pod, now)
	}
}

// keep notes a difference without a look: it is what it was at the last audit,
// if it was there.
func (a *Audit) keep(d *difference, now *findings) {
	a.Books.mu.Lock()
	defer a.Books.mu.Unlock()
	if a.Books.left.since(d.Pod, now.began) {
		return
	}
	text, known := now.before[d.Pod]
	if !known {
		text = textAbout(&d.Placement, d.text)
	}
	now.note(&d.Placement, text)
	a.fence(&d.Placement, now)
}

// settle compares the ledger with the pod as it is, nil if it is gone, and
// repairs what that explains. What the watch has told since the pod was read goes
// before: nobody who has left is brought back.
func (a *Audit) settle(p *gpu.Placement, pod *corev1.Pod, now *findings) {
	last := a.lastSeen(p)
	a.Books.mu.Lock()
	defer a.Books.mu.Unlock()
	if a.Books.left.since(p.Pod, now.began) {
		return
	}
	h, held := a.Books.Ledger.Hold(p.Pod)
	if pod == nil || !codec.Active(pod) {
		if lasts(&h, held, &h.Placement) && now.note(p, textAbout(p, textOver)) {
			a.end(pod, last)
		}
		return
	}
	theirs := codec.Placement(pod)
	switch {
	case !lasts(&h, held, &theirs):
		// Cards that are in use and not held are the worst there is.
		now.note(&theirs, textAbout(&theirs, textLoose))
		a.Books.Logger.Info("pod runs whose cards were not held, which they are now", "pod", klog.KObj(pod), "podUID", pod.UID, "node", theirs.Node)
		a.Books.podSeen(pod)
	case !alike(&h, &theirs):
		now.note(&theirs, textAbout(&theirs, textRecord(&h, &theirs)))
		a.fence(&theirs, now)
	}
}

// fence closes what only the second book has.
func (a *Audit) fence(theirs *gpu.Placement, now *findings) {
	var ours []gpu.CardUse
	if h, held := a.Books.Ledger.Hold(theirs.Pod); lasts(&h, held, theirs) {
		ours = h.Uses()
	}
	for _, u := range theirs.Uses() {
		if !slices.Contains(ours, u) {
			now.fences[theirs.Node] = append(now.fences[theirs.Node], u.Card)
		}
	}
}

func textAbout(p *gpu.Placement, text string) string {
	return fmt.Sprintf("pod %s/%s %s", p.Namespace, p.Name, text)
}

// note notes the difference, and reports whether the last audit had it too.
func (f *findings) note(p *gpu.Placement, text string) bool {
	return f.noteAs(p.Pod, finding{node: p.Node, text: text})
}

func (f *findings) noteAs(key gpu.PodID, what finding) bool {
	f.differ[key] = what.text
	if f.before[key] != what.text {
		return false
	}
	f.stands[key] = what
	return true
}

// lastSeen returns the pod as the watch last had it, or as much of it as the
// books have.
func (a *Audit) lastSeen(p *gpu.Placement) *corev1.Pod {
	if pod, err := a.Lister.Pods(p.Namespace).Get(p.Name); err == nil && gpu.PodID(pod.UID) == p.Pod {
		return pod
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: types.UID(p.Pod)},
		Spec:       corev1.PodSpec{NodeName: string(p.Node)},
	}
}

// end gives back what a pod held that does not run any more. Of one whose object
// has gone unseen it is not known whether its containers have ended.
func (a *Audit) end(pod, last *corev1.Pod) {
	switch {
	case pod == nil:
		a.Books.podGone(last, false)
	case codec.Ended(pod):
		a.Books.podSeen(pod)
	default: // not bound, it says
		a.Books.Ledger.Release(gpu.PodID(pod.UID))
	}
}

// conclude tells of what has not been told yet.
func (a *Audit) conclude(now *findings) {
	told := map[gpu.PodID]string{}
	for id, f := range now.stands {
		told[id] = f.text
		if a.told[id] == f.text {
			continue
		}
		if f.card != "" {
			a.Books.Logger.Error(errCrowded, "books", "node", f.node, "card", f.card, "cause", f.text)
		} else {
			a.Books.Logger.Error(errMismatch, "books", "node", f.node, "podUID", id, "difference", f.text)
		}
		a.Found(f.node, f.text)
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
