package kube

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// arbiter is Clashes over a shelf's books, in epochs 5 and on, with the evictions
// that it asks for.
type arbiter struct {
	*Clashes
	shelf *shelf

	mu      sync.Mutex
	first   int64       // guarded by mu; our first epoch
	answers []int       // guarded by mu; to the next evictions, before they succeed
	asked   []string    // guarded by mu; evictions: "name uid"
	lost    []gpu.PodID // guarded by mu
	texts   []string    // guarded by mu
}

func newArbiter(t *testing.T) *arbiter {
	t.Helper()
	a := &arbiter{shelf: newShelf(), first: 5}
	server := newAPIServer(t, func(s *apiServer) { s.other = a.serve })
	a.Clashes = &Clashes{
		Client: server.client(t), Ledger: a.shelf.Ledger, Logger: logr.Discard(),
		First: func() int64 {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.first
		},
		Lost: func(p *gpu.Placement, text string) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.lost, a.texts = append(a.lost, p.Pod), append(a.texts, text)
		},
	}
	a.shelf.Appeared = a.Appeared
	a.shelf.NodeSeen(newNode("n1", devices))
	return a
}

func (a *arbiter) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var e policyv1.Eviction
	body, _ := io.ReadAll(r.Body)
	name := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/ns/pods/"), "/eviction")
	if err := json.Unmarshal(body, &e); err != nil || r.Method != http.MethodPost || e.DeleteOptions == nil || e.DeleteOptions.Preconditions == nil || e.DeleteOptions.GracePeriodSeconds != nil {
		refuse(w, http.StatusTeapot, "", "not an eviction of one very pod in its own time")
		return
	}
	a.asked = append(a.asked, name+" "+string(*e.DeleteOptions.Preconditions.UID))
	if len(a.answers) > 0 {
		code := a.answers[0]
		a.answers = a.answers[1:]
		refuse(w, code, map[int]metav1.StatusReason{404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict, 429: metav1.StatusReasonTooManyRequests}[code], "no")
		return
	}
	done(w, r)
}

// reserves is a bind of ours that has come so far that its Binding is sent.
func (a *arbiter) reserves(t *testing.T, name string, card gpu.CardID, index int) {
	t.Helper()
	if err := a.shelf.Ledger.Reserve(whole(name, card, index)); err != nil {
		t.Fatal(err)
	}
	a.Sending(gpu.PodID("uid-" + name))
}

// boundIn is a pod on GPU-a that was bound in that epoch.
func boundIn(t *testing.T, name string, epoch int64, change ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := boundPod(t, name)
	var err error
	if pod.Annotations, err = codec.Annotations(whole(name, "GPU-a", 0), start(), epoch); err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func (a *arbiter) wants(t *testing.T, left bool, asked ...string) {
	t.Helper()
	if got := a.settle(t.Context()); got != left {
		t.Errorf("somebody is left to be looked at: %t, want %t", got, left)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if diff := cmp.Diff(asked, a.asked); diff != "" {
		t.Errorf("evictions (-want +got):\n%s", diff)
	}
}

// The pod of the older epoch loses, whichever of the two is seen first to be bound.
func TestTheOlderEpochLoses(t *testing.T) {
	for name, play := range map[string]func(t *testing.T, a *arbiter){
		"the winner runs": func(t *testing.T, a *arbiter) {
			a.reserves(t, "winner", "GPU-a", 0)
			a.shelf.PodSeen(boundIn(t, "winner", 7))
			a.shelf.PodSeen(boundIn(t, "late", 4))
		},
		"the winner's Binding is on its way": func(t *testing.T, a *arbiter) {
			a.reserves(t, "winner", "GPU-a", 0)
			a.shelf.PodSeen(boundIn(t, "late", 4))
			a.wants(t, true)
			a.shelf.PodSeen(boundIn(t, "winner", 7))
		},
		"from before there were epochs": func(t *testing.T, a *arbiter) {
			a.reserves(t, "winner", "GPU-a", 0)
			a.shelf.PodSeen(boundIn(t, "winner", 7))
			a.shelf.PodSeen(boundIn(t, "late", 0))
		},
		"we have tried to bind it too": func(t *testing.T, a *arbiter) {
			a.Sending("uid-late")
			a.reserves(t, "winner", "GPU-a", 0)
			a.shelf.PodSeen(boundIn(t, "winner", 7))
			a.shelf.PodSeen(boundIn(t, "late", 4))
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newArbiter(t)
			play(t, a)
			a.wants(t, false, "late uid-late")
			if diff := cmp.Diff([]gpu.PodID{"uid-late"}, a.lost); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if text := a.texts[0]; !strings.Contains(text, "GPU-a") || !strings.Contains(text, "uid-winner") {
				t.Errorf("told %q", text)
			}
			for _, pod := range []gpu.PodID{"uid-late", "uid-winner"} {
				if got := standing(a.shelf.Ledger, pod); got != "bound" {
					t.Errorf("%s is %s: both count until one has gone", pod, got)
				}
			}
			a.wants(t, false, "late uid-late")
		})
	}
}

// Nobody loses who need not, and nobody by what another has written.
func TestNobodyElseLoses(t *testing.T) {
	for name, play := range map[string]func(t *testing.T, a *arbiter){
		"there is room for both": func(t *testing.T, a *arbiter) {
			a.reserves(t, "winner", "GPU-b", 1)
			a.shelf.PodSeen(boundIn(t, "late", 4))
		},
		"the other's Binding fails": func(t *testing.T, a *arbiter) {
			a.reserves(t, "winner", "GPU-a", 0)
			a.shelf.PodSeen(boundIn(t, "late", 4))
			a.wants(t, true)
			a.shelf.Ledger.Unreserve("uid-winner")
		},
		"the other has forged a later epoch": func(t *testing.T, a *arbiter) {
			a.shelf.PodSeen(boundIn(t, "forger", 9))
			a.shelf.PodSeen(boundIn(t, "late", 4))
		},
		"the other was there, of a leader before us": func(t *testing.T, a *arbiter) {
			a.shelf.PodSeen(boundIn(t, "before", 4))
			a.shelf.PodSeen(boundIn(t, "late", 4))
		},
		"it was there before, and is told again": func(t *testing.T, a *arbiter) {
			a.mu.Lock()
			a.first = 0
			a.mu.Unlock()
			a.shelf.PodSeen(boundIn(t, "early", 4))
			a.mu.Lock()
			a.first = 5
			a.mu.Unlock()
			a.Sending("uid-winner")
			a.shelf.PodSeen(boundIn(t, "winner", 7))
			a.shelf.PodSeen(boundIn(t, "early", 4))
		},
		"it was reserved for, and its Binding is not sent": func(t *testing.T, a *arbiter) {
			if err := a.shelf.Ledger.Reserve(whole("winner", "GPU-a", 0)); err != nil {
				t.Fatal(err)
			}
			a.shelf.PodSeen(boundIn(t, "late", 4))
			a.wants(t, true)
			a.shelf.Ledger.Unreserve("uid-winner")
		},
		"of an epoch of our own": func(t *testing.T, a *arbiter) {
			a.reserves(t, "winner", "GPU-a", 0)
			a.shelf.PodSeen(boundIn(t, "winner", 7))
			a.shelf.PodSeen(boundIn(t, "late", 5))
		},
		"its annotation says another epoch than its record": func(t *testing.T, a *arbiter) {
			a.reserves(t, "winner", "GPU-a", 0)
			a.shelf.PodSeen(boundIn(t, "winner", 7))
			a.shelf.PodSeen(boundIn(t, "late", 7, func(p *corev1.Pod) { p.Annotations[codec.AnnotationEpoch] = "4" }))
		},
		"its record is not ours": func(t *testing.T, a *arbiter) {
			a.reserves(t, "winner", "GPU-a", 0)
			a.shelf.PodSeen(boundIn(t, "winner", 7))
			a.shelf.PodSeen(boundIn(t, "late", 4, func(p *corev1.Pod) { p.Labels = nil }))
		},
		"it has gone by itself": func(t *testing.T, a *arbiter) {
			a.shelf.Gone = a.Gone
			a.reserves(t, "winner", "GPU-a", 0)
			a.shelf.PodSeen(boundIn(t, "winner", 7))
			a.shelf.PodSeen(boundIn(t, "late", 4))
			a.shelf.PodGone(boundIn(t, "late", 4, ended(corev1.PodFailed)), true)
		},
		"the other has gone": func(t *testing.T, a *arbiter) {
			a.reserves(t, "winner", "GPU-a", 0)
			a.shelf.PodSeen(boundIn(t, "winner", 7))
			a.shelf.PodSeen(boundIn(t, "late", 4))
			a.shelf.PodGone(boundIn(t, "winner", 7), true) // lingers
		},
		"its rival came the same way": func(t *testing.T, a *arbiter) {
			a.Sending("uid-one")
			a.shelf.PodSeen(boundIn(t, "one", 4))
			a.shelf.PodSeen(boundIn(t, "two", 4))
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newArbiter(t)
			play(t, a)
			a.wants(t, false)
			if len(a.lost) > 0 {
				t.Errorf("told %v", a.lost)
			}
		})
	}
}

// Of a pod that has gone nothing is kept, or a scheduler that runs for months would
// grow with every pod that it has bound.
func TestNothingIsKeptOfWhoHasGone(t *testing.T) {
	a := newArbiter(t)
	a.shelf.Gone = a.Gone
	a.reserves(t, "winner", "GPU-a", 0)
	a.shelf.PodSeen(boundIn(t, "winner", 7))
	a.shelf.PodSeen(boundIn(t, "late", 4))
	for _, name := range []string{"winner", "late"} {
		a.shelf.PodGone(boundPod(t, name, ended(corev1.PodSucceeded)), true)
	}
	if len(a.given)+len(a.late) > 0 {
		t.Errorf("kept: %v and %v", a.given, a.late)
	}
}

// An eviction that does not succeed is tried again, and told once.
func TestEvictionsThatFail(t *testing.T) {
	for code, again := range map[int]bool{404: false, 409: false, 429: true, 500: true} {
		a := newArbiter(t)
		a.reserves(t, "winner", "GPU-a", 0)
		a.shelf.PodSeen(boundIn(t, "winner", 7))
		a.shelf.PodSeen(boundIn(t, "late", 4))
		a.answers = []int{code}
		a.wants(t, again, "late uid-late")
		if again {
			a.wants(t, false, "late uid-late", "late uid-late")
		}
		if len(a.lost) != 1 {
			t.Errorf("%d: told %v", code, a.lost)
		}
	}
}

// Run looks as soon as somebody appears.
func TestClashesRun(t *testing.T) {
	a := newArbiter(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	told := make(chan string, 1)
	a.Lost = func(_ *gpu.Placement, text string) { told <- text }
	a.reserves(t, "winner", "GPU-a", 0)
	a.shelf.PodSeen(boundIn(t, "winner", 7))
	a.shelf.PodSeen(boundIn(t, "late", 4)) // before it runs: that is not lost
	go func() { ended <- a.Run(ctx) }()
	select {
	case <-told:
	case <-time.After(10 * time.Second):
		t.Error("nobody has been told")
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v", err)
	}
}

// Cards are reserved a moment before it is noted that their Binding is sent, and a
// latecomer that is looked at just then is looked at again.
func TestALatecomerMeetsAReservation(t *testing.T) {
	a := newArbiter(t)
	if err := a.shelf.Ledger.Reserve(whole("winner", "GPU-a", 0)); err != nil {
		t.Fatal(err)
	}
	a.shelf.PodSeen(boundIn(t, "late", 4))
	if !a.settle(t.Context()) {
		t.Error("the latecomer is not looked at again")
	}
	a.Sending("uid-winner")
	a.shelf.PodSeen(boundIn(t, "winner", 7))
	a.wants(t, false, "late uid-late")
}
