package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// TestClaimantsThatGo: a claim ends with its pod, whatever is seen of that; and is none
// once the pod is bound, with what it was bound with.
func TestClaimantsThatGo(t *testing.T) {
	gone := func(certain bool) func(*shelf) {
		return func(s *shelf) { s.PodGone(unbound("p"), certain) }
	}
	deleted := unbound("p")
	terminating(30)(deleted)
	failed := unbound("p")
	failed.Status.Phase = corev1.PodFailed
	tests := map[string]struct {
		happens func(*shelf)
		bind    bool // on its way when that happens, and refused after it
		want    string
	}{
		"still there":                           {happens: func(s *shelf) { s.PodSeen(unbound("p")) }, want: "claimed"},
		"deleted":                               {happens: func(s *shelf) { s.PodSeen(deleted) }, want: "none"},
		"ended before it was bound":             {happens: func(s *shelf) { s.PodSeen(failed) }, want: "none"},
		"gone":                                  {happens: gone(true), want: "none"},
		"gone unseen":                           {happens: gone(false), want: "none"},
		"deleted while it is bound":             {happens: func(s *shelf) { s.PodSeen(deleted) }, bind: true, want: "none"},
		"gone while it is bound":                {happens: gone(true), bind: true, want: "none"},
		"still there while a bind of it fails":  {happens: func(s *shelf) { s.PodSeen(unbound("p")) }, bind: true, want: "claimed"},
		"bound, though to another card of ours": {happens: func(s *shelf) { s.PodSeen(boundPod(t, "p")) }, want: "bound"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			s.NodeSeen(newNode("n1", devices))
			s.PodSeen(boundPod(t, "v", onCard(t, "GPU-b", 1)))
			if err := s.Ledger.Claim(whole("p", "GPU-b", 1), []gpu.PodID{"uid-v"}); err != nil {
				t.Fatal(err)
			}
			if tc.bind {
				if err := s.Ledger.Reserve(whole("p", "GPU-a", 0)); err != nil {
					t.Fatal(err)
				}
			}
			tc.happens(s)
			s.Ledger.Unreserve("uid-p")
			h, ok := s.Ledger.Hold("uid-p")
			if got := map[bool]string{true: h.State.String(), false: "none"}[ok]; got != tc.want {
				t.Errorf("it is %s, want %s", got, tc.want)
			}
			if tc.want == "bound" && h.Uses()[0].Card != "GPU-a" {
				t.Errorf("bound with %+v, want what the Binding says", h.Uses())
			}
		})
	}
}

// TestAuditLeavesClaimsAlone: a claim is on no pod, and what it is on top of is no crowd.
func TestAuditLeavesClaimsAlone(t *testing.T) {
	a := newAuditor(t)
	v, p := boundPod(t, "v"), unbound("p")
	a.pods(v, p)
	a.shelf.PodSeen(v)
	a.shelf.PodSeen(p)
	if err := a.shelf.Ledger.Claim(whole("p", "GPU-a", 0), []gpu.PodID{"uid-v"}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		a.pass(t)
	}
	a.want(t, 0)
	if got := standing(a.shelf.Ledger, "uid-p"); got == "none" {
		t.Error("the claim has ended")
	}
	// Somebody has bound it, and the watch has not told: that is what counts.
	a.pods(v, boundPod(t, "p", onCard(t, "GPU-b", 1)))
	a.pass(t)
	if h, _ := a.shelf.Ledger.Hold("uid-p"); h.State.String() != "bound" || h.Uses()[0].Card != "GPU-b" {
		t.Errorf("held: %s %+v, want what runs", h.State, h.Uses())
	}
}
