package kube

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// unreadable makes n pods that were bound to GPU-a, and whose records somebody
// has made unreadable since.
func (a *auditor) unreadable(t *testing.T, n int) (edited []*corev1.Pod) {
	t.Helper()
	for i := range n {
		name := fmt.Sprintf("a%03d", i)
		a.shelf.PodSeen(boundPod(t, name))
		edited = append(edited, boundPod(t, name, func(p *corev1.Pod) { p.Annotations[codec.AnnotationAllocation] = "{" }))
	}
	return edited
}

// However many records somebody edits, who runs on a card that looks free is
// held after one audit, and so are many such pods.
func TestAuditAdoptsBehindManyDifferences(t *testing.T) {
	a := newAuditor(t)
	all := a.unreadable(t, mostLooks+1)
	for i := range mostLooks + 1 {
		all = append(all, boundPod(t, fmt.Sprintf("z%03d", i), onCard(t, "GPU-b", 1)))
	}
	a.pods(all...)
	a.pass(t)
	for _, p := range all[mostLooks+1:] {
		if got := standing(a.shelf.Ledger, whole(p.Name, "", 0).Pod); got != "bound" {
			t.Fatalf("%s is %s after one audit, want bound", p.Name, got)
		}
	}
	if a.takes("GPU-b", 1) {
		t.Error("a card that is in use is given away")
	}
}

// A difference whose turn for a look has not come counts like any other: it is
// fenced, it stands, and it comes to its turn.
func TestAuditFencesWithoutALook(t *testing.T) {
	a := newAuditor(t)
	all := a.unreadable(t, 2*mostLooks)
	a.shelf.PodSeen(boundPod(t, "z"))
	all = append(all, boundPod(t, "z", onCard(t, "GPU-b", 1)))
	a.pods(all...)
	looks := a.countLooks()
	for pass := range 5 {
		a.pass(t)
		if a.takes("GPU-b", 1) {
			t.Errorf("pass %d: the card on the record is given away", pass)
		}
		if want := map[bool]int{true: 0, false: len(all) + 1}[pass == 0]; a.standing != want { // and GPU-a is crowded
			t.Errorf("pass %d: %d mismatches stand, want %d", pass, a.standing, want)
		}
		if pass == 0 && looks["z"] > 0 {
			t.Error("all are looked at in one pass, this test proves nothing")
		}
	}
	if len(looks) != len(all) {
		t.Errorf("%d of %d pods have been looked at in five passes", len(looks), len(all))
	}
	if len(a.found) != len(all)+1 {
		t.Errorf("%d mismatches are told of, want %d, each once", len(a.found), len(all)+1)
	}
	a.pods(append(all[:2*mostLooks:2*mostLooks], boundPod(t, "z"))...)
	a.pass(t)
	if !a.takes("GPU-b", 1) {
		t.Error("the fence stays when the record is right again")
	}
}

// An end that the watch has lost comes to its turn behind many that stand.
func TestAuditGivesBackBehindManyDifferences(t *testing.T) {
	a := newAuditor(t)
	a.pods(a.unreadable(t, 2*mostLooks)...)
	a.shelf.PodSeen(boundPod(t, "z"))
	for range 3 {
		a.pass(t)
	}
	if got := standing(a.shelf.Ledger, "uid-z"); got != "lingering 1m30s" {
		t.Errorf("the hold of a pod that has gone is %s", got)
	}
}

// countLooks counts the looks at single pods, by name.
func (a *auditor) countLooks() map[string]int {
	looks, other := map[string]int{}, a.server.other
	a.server.other = func(w http.ResponseWriter, r *http.Request) {
		looks[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]++
		other(w, r)
	}
	return looks
}

// meanwhile has something happen while the answer to each look is on its way.
func (a *auditor) meanwhile(happens func()) (restore func()) {
	other := a.server.other
	a.server.other = func(w http.ResponseWriter, r *http.Request) {
		other(w, r)
		happens()
	}
	return func() { a.server.other = other }
}

// What the audit has read is old when it acts. Who has left since is not brought
// back, and a hold that lingers does so for as long as was said.
func TestAuditLeavesAloneWhoLeaves(t *testing.T) {
	long := boundPod(t, "p", graceful(3600))
	over := boundPod(t, "p", ended(corev1.PodSucceeded))
	for name, tc := range map[string]struct {
		first, meanwhile func(*shelf)
		blind            bool
		want             string
	}{
		"ended and gone":       {func(*shelf) {}, func(s *shelf) { s.PodSeen(long); s.PodSeen(over); s.PodGone(over, true) }, false, "none"},
		"ended":                {func(*shelf) {}, func(s *shelf) { s.PodSeen(over) }, false, "none"},
		"deleted by force":     {func(*shelf) {}, func(s *shelf) { s.PodSeen(long); s.PodGone(long, true) }, false, "lingering 1h1m0s"},
		"held, then forced":    {func(s *shelf) { s.PodSeen(boundPod(t, "p", onCard(t, "GPU-b", 1))) }, func(s *shelf) { s.PodGone(long, false) }, false, "lingering 1h1m0s"},
		"cannot be looked at":  {func(*shelf) {}, func(s *shelf) { s.PodSeen(over) }, true, "none"},
		"lingers and is back":  {func(s *shelf) { s.PodSeen(long); s.PodGone(long, false) }, func(s *shelf) { s.PodSeen(long) }, false, "bound"},
		"never seen, and gone": {func(*shelf) {}, func(s *shelf) { s.PodGone(long, false) }, false, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuditor(t)
			a.pods(long)
			a.blind = tc.blind
			tc.first(a.shelf)
			restore := a.meanwhile(func() { tc.meanwhile(a.shelf) })
			a.pass(t)
			if got := standing(a.shelf.Ledger, "uid-p"); got != tc.want {
				t.Errorf("the hold is %s, want %s", got, tc.want)
			}
			if tc.want == "none" && !a.takes("GPU-a", 0) {
				t.Error("nobody is on GPU-a, and nobody gets it")
			}
			restore()
			if tc.want != "bound" {
				a.pods()
			}
			a.pass(t)
			a.pass(t)
			if got := standing(a.shelf.Ledger, "uid-p"); got != tc.want {
				t.Errorf("two audits later the hold is %s, want %s", got, tc.want)
			}
			a.want(t, 0)
		})
	}
}

// The watch has lost the end of a pod, but not its grace.
func TestAuditKnowsTheGraceOfWhoIsGone(t *testing.T) {
	heir := boundPod(t, "p", graceful(3600))
	heir.UID = "uid-heir"
	for name, tc := range map[string]struct {
		watched *corev1.Pod
		want    string
	}{
		"the watch has it":            {boundPod(t, "p", graceful(3600)), "lingering 1h1m0s"},
		"the watch saw it deleted":    {boundPod(t, "p", graceful(5), terminating(120)), "lingering 3m0s"},
		"the watch has no such pod":   {nil, "lingering 1m30s"},
		"the watch has another of it": {heir, "lingering 1m30s"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuditor(t)
			a.shelf.PodSeen(boundPod(t, "p"))
			if tc.watched != nil {
				if err := a.watched.Add(tc.watched); err != nil {
					t.Fatal(err)
				}
			}
			a.pods()
			a.pass(t)
			a.pass(t)
			if got := standing(a.shelf.Ledger, "uid-p"); got != tc.want {
				t.Errorf("the hold is %s, want %s", got, tc.want)
			}
			if len(a.shelf.gone) != 1 {
				t.Errorf("told as gone: %q", a.shelf.gone)
			}
		})
	}
}

// A hold that ends by itself is not enough for a pod that runs, even if it is on
// the very same card.
func TestAuditConfirmsWhatDoesNotLast(t *testing.T) {
	for name, hold := range map[string]func(*auditor) error{
		"held by a bind": func(a *auditor) error { return a.shelf.Ledger.Reserve(whole("p", "GPU-a", 0)) },
		"lingering": func(a *auditor) error {
			a.shelf.PodSeen(boundPod(t, "p", graceful(3600)))
			a.shelf.PodGone(boundPod(t, "p", graceful(3600)), false)
			a.shelf.Now = func() time.Time { return start().Add(time.Minute) }
			return nil
		},
		"held on another node": func(a *auditor) error {
			a.shelf.PodSeen(boundPod(t, "p", func(p *corev1.Pod) { p.Spec.NodeName = "n2" }))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuditor(t)
			if err := hold(a); err != nil {
				t.Fatal(err)
			}
			a.pods(boundPod(t, "p"))
			a.pass(t)
			if h, _ := a.shelf.Ledger.Hold("uid-p"); h.State != ledger.Bound || h.Node != "n1" {
				t.Errorf("the hold is %s on %s, want bound on n1", h.State, h.Node)
			}
		})
	}
}

// A record that its owner writes onto a pod that was bound past us is told of,
// and opens no card.
func TestAuditDoubtsARecordThatComesLater(t *testing.T) {
	a := newAuditor(t)
	a.shelf.PodSeen(boundPod(t, "p", func(p *corev1.Pod) { p.Annotations, p.Labels = nil, nil }))
	a.shelf.PodSeen(boundPod(t, "p"))
	a.pods(boundPod(t, "p"))
	for range 2 {
		a.pass(t)
		if a.takes("GPU-a", 0) || a.takes("GPU-b", 1) {
			t.Error("a card that the pod may be on is given away")
		}
	}
	a.want(t, 1, "n1: pod ns/p is on record for GPU-a, and was bound to no card that can be named")
}

// The watch goes on while the audit repairs: whatever the order, who has gone is
// gone at the end.
func TestAuditBesideTheWatch(t *testing.T) {
	a := newAuditor(t)
	var all, over []*corev1.Pod
	for i := range 20 {
		name := fmt.Sprintf("p%d", i)
		all, over = append(all, boundPod(t, name)), append(over, boundPod(t, name, ended(corev1.PodSucceeded)))
	}
	a.pods(all...)
	var watch sync.WaitGroup
	for range 5 {
		watch.Go(func() {
			for i, p := range all {
				a.shelf.PodSeen(p)
				a.shelf.PodSeen(over[i])
				a.shelf.PodGone(over[i], true)
			}
		})
		a.pass(t)
		watch.Wait()
		if pods := a.shelf.Ledger.Pods(); len(pods) > 0 {
			t.Fatalf("held though they have gone: %q", pods)
		}
	}
}

// A mismatch that stands is not a new one because the API server is out of order
// for an audit, and it is told of once.
func TestAuditKeepsAMismatchItCannotLookAt(t *testing.T) {
	a := newAuditor(t)
	a.shelf.PodSeen(boundPod(t, "p"))
	a.shelf.PodGone(boundPod(t, "p"), false)
	a.shelf.PodSeen(boundPod(t, "p")) // is there after all, and counts as ever
	a.pods(boundPod(t, "p", onCard(t, "GPU-b", 1)))
	for pass, blind := range []bool{false, false, true, true, false} {
		a.blind = blind
		a.pass(t)
		if a.takes("GPU-b", 1) {
			t.Errorf("pass %d: the card on the record is given away", pass)
		}
		if pass > 0 {
			a.want(t, 1, "n1: pod ns/p is on record for GPU-b, and was bound to GPU-a")
		}
	}
}
