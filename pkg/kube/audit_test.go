package kube

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// auditor is an audit of a shelf's books, with what it has told.
type auditor struct {
	*Audit
	shelf    *shelf
	server   *apiServer
	watched  cache.Indexer // pods as the watch has them
	found    []string
	standing int
	blind    bool // looks at single pods fail
}

func newAuditor(t *testing.T) *auditor {
	t.Helper()
	a := &auditor{shelf: newShelf(), watched: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})}
	a.server = newAPIServer(t)
	a.server.other = func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/ns/pods/")
		i := slices.IndexFunc(a.server.pods, func(p corev1.Pod) bool { return p.Name == name })
		switch {
		case a.blind:
			refuse(w, http.StatusInternalServerError, "", "out of order")
		case i < 0:
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "no such pod")
		default:
			answer(w, a.server.pods[i])
		}
	}
	a.Audit = &Audit{
		Client: a.server.client(t), Lister: corelisters.NewPodLister(a.watched), Books: &a.shelf.Books, Ready: func() bool { return true },
		Found:    func(node gpu.NodeID, text string) { a.found = append(a.found, string(node)+": "+text) },
		Standing: func(n int) { a.standing = n },
	}
	a.shelf.NodeSeen(newNode("n1", devices))
	return a
}

// pods are what the API server has.
func (a *auditor) pods(pods ...*corev1.Pod) {
	a.server.pods = nil
	for _, p := range pods {
		a.server.pods = append(a.server.pods, *p)
	}
}

func (a *auditor) pass(t *testing.T) {
	t.Helper()
	if err := a.audit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (a *auditor) want(t *testing.T, standing int, found ...string) {
	t.Helper()
	if diff := cmp.Diff(found, a.found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if a.standing != standing {
		t.Errorf("%d mismatches stand, want %d", a.standing, standing)
	}
}

// takes reports whether the card would be given to somebody new.
func (a *auditor) takes(card gpu.CardID, index int) bool {
	next := whole("next", card, index)
	if a.shelf.Ledger.Reserve(next) != nil {
		return false
	}
	a.shelf.Ledger.Unreserve(next.Pod)
	return true
}

// onCard moves the pod's record to another card, as whoever edits it would.
func onCard(t *testing.T, card gpu.CardID, index int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		annotations, err := codec.Annotations(whole(pod.Name, card, index), start(), 0)
		if err != nil {
			t.Fatal(err)
		}
		pod.Annotations = annotations
	}
}

func TestAuditFindsNothingWhereBooksAgree(t *testing.T) {
	a := newAuditor(t)
	running, over, waiting := boundPod(t, "p"), boundPod(t, "over", ended(corev1.PodSucceeded)), unbound("w")
	a.pods(running, over, waiting)
	a.shelf.PodSeen(running)
	held := whole("binding", "GPU-b", 1)
	if err := a.shelf.Ledger.Reserve(held); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		a.pass(t)
	}
	a.want(t, 0)
	if got := standing(a.shelf.Ledger, held.Pod); got != "held" {
		t.Errorf("a bind on its way is %s", got)
	}
}

// A pod that the watch has lost is on a card that looks free.
func TestAuditAdoptsWhatIsNotHeld(t *testing.T) {
	a := newAuditor(t)
	a.pods(boundPod(t, "p"))
	a.pass(t)
	if got := standing(a.shelf.Ledger, "uid-p"); got != "bound" {
		t.Errorf("the pod is %s after one audit, want bound", got)
	}
	a.pass(t)
	a.want(t, 0)
}

// An end that the watch has lost frees the card, when two audits agree.
func TestAuditGivesBackWhatDoesNotRun(t *testing.T) {
	for name, tc := range map[string]struct {
		now  func(*testing.T) []*corev1.Pod
		then string
	}{
		"ended":                  {func(t *testing.T) []*corev1.Pod { return []*corev1.Pod{boundPod(t, "p", ended(corev1.PodFailed))} }, "none"},
		"gone unseen":            {func(*testing.T) []*corev1.Pod { return nil }, "lingering 1m30s"},
		"another of its name":    {func(*testing.T) []*corev1.Pod { p := unbound("p"); p.UID = "uid-q"; return []*corev1.Pod{p} }, "lingering 1m30s"},
		"not bound, it says":     {func(*testing.T) []*corev1.Pod { return []*corev1.Pod{unbound("p")} }, "none"},
		"failed, but it runs on": {func(t *testing.T) []*corev1.Pod { return []*corev1.Pod{boundPod(t, "p", collected)} }, "bound"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuditor(t)
			a.shelf.PodSeen(boundPod(t, "p"))
			a.pods(tc.now(t)...)
			a.pass(t)
			if got := standing(a.shelf.Ledger, "uid-p"); got != "bound" {
				t.Errorf("the hold is %s after one audit, want bound", got)
			}
			a.pass(t)
			if got := standing(a.shelf.Ledger, "uid-p"); got != tc.then {
				t.Errorf("the hold is %s, want %s", got, tc.then)
			}
			told := len(a.found)
			a.pass(t)
			if want := map[bool]int{true: 0, false: 1}[tc.then == "bound"]; told != want || len(a.found) != want {
				t.Errorf("told %q, want %d, once", a.found, want)
			}
			if a.standing != 0 {
				t.Errorf("%d mismatches stand after the repair", a.standing)
			}
		})
	}
}

// Whoever edits a record does not move a container: both cards count until the
// record says again what is true. It is told once.
func TestAuditFencesWhatARecordClaims(t *testing.T) {
	a := newAuditor(t)
	a.shelf.PodSeen(boundPod(t, "p"))
	shown := func(p *corev1.Pod) { p.Annotations[shownKey] = "GPU-a" }
	edited := boundPod(t, "p", onCard(t, "GPU-b", 1), shown)
	a.shelf.PodSeen(edited)
	a.pods(edited)
	for range 3 {
		a.pass(t)
		if a.takes("GPU-a", 0) || a.takes("GPU-b", 1) {
			t.Error("a card that may be in use is given away")
		}
	}
	a.want(t, 1, "n1: pod ns/p is on record for GPU-b, and was bound to GPU-a")

	a.pods(boundPod(t, "p"))
	a.pass(t)
	a.want(t, 0, "n1: pod ns/p is on record for GPU-b, and was bound to GPU-a")
	if a.takes("GPU-a", 0) || !a.takes("GPU-b", 1) {
		t.Error("the fence is not where it should be")
	}
}

// Who cannot be asked proves nothing: what is held stays, and what either book
// has counts.
func TestAuditThatCannotSee(t *testing.T) {
	a := newAuditor(t)
	a.shelf.PodSeen(boundPod(t, "p"))
	a.pods(boundPod(t, "q", onCard(t, "GPU-b", 1)))
	a.blind = true
	for range 3 {
		a.pass(t)
	}
	if got := standing(a.shelf.Ledger, "uid-p"); got != "bound" {
		t.Errorf("a hold that nobody can look up is %s", got)
	}
	if a.takes("GPU-b", 1) {
		t.Error("a card that the second book has in use is given away")
	}
	a.server.Close()
	if err := a.audit(t.Context()); err == nil {
		t.Error("a list that fails passes for an empty one")
	}
	if got := standing(a.shelf.Ledger, "uid-p"); got != "bound" {
		t.Errorf("the hold is %s after a list that failed", got)
	}
}
