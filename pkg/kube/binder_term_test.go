package kube

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// inTerm has the binder bind in a term.
func inTerm(b *Binder, t Term) *Binder {
	b.Term = func() (Term, error) { return t, nil }
	return b
}

// The epoch of the moment is in the record and beside it, where the fence looks.
func TestBindSaysItsEpoch(t *testing.T) {
	var sent corev1.Binding
	var told []gpu.PodID
	server := newAPIServer(t, onBinding(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		if len(told) == 0 { // it may have come to pass before its sender goes on
			t.Error("the Binding is there before it is told of")
		}
		done(w, r)
	}))
	b := inTerm(newBinder(t, server.client(t), unbound("p")), Term{Epoch: 1795996397})
	b.Sending = func(pod gpu.PodID) { told = append(told, pod) }
	if err := b.Bind(t.Context(), whole("p", "GPU-a", 0), nil); err != nil {
		t.Fatal(err)
	}
	if sent.Annotations[codec.AnnotationEpoch] != "1795996397" || !strings.Contains(sent.Annotations[codec.AnnotationAllocation], `"epoch":1795996397`) {
		t.Errorf("annotations %v", sent.Annotations)
	}
	if diff := cmp.Diff([]gpu.PodID{"uid-p"}, told); diff != "" {
		t.Errorf("told of (-want +got):\n%s", diff)
	}
}

// Who does not lead sends nothing, and is sure of it.
func TestBindOnlyWhileLeading(t *testing.T) {
	server := newAPIServer(t, onBinding(func(http.ResponseWriter, *http.Request) { t.Error("a Binding is sent") }))
	b := newBinder(t, server.client(t), unbound("p"))
	b.Term = func() (Term, error) { return Term{}, ErrNotLeading }
	b.Sending = func(gpu.PodID) { t.Error("a Binding is told of") }
	if err := b.Bind(t.Context(), whole("p", "GPU-a", 0), nil); !errors.Is(err, engine.ErrRefused) || !errors.Is(err, ErrNotLeading) {
		t.Errorf("error %v", err)
	}
}

// Without a fence nobody waits for a Binding past the end of the Lease; whether it
// has happened is not known then.
func TestBindEndsBeforeTheLease(t *testing.T) {
	release := make(chan struct{})
	server := newAPIServer(t, onBinding(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
	}))
	defer close(release)
	b := inTerm(newBinder(t, server.client(t), unbound("p")), Term{Epoch: 7, Until: time.Now().Add(100 * time.Millisecond)})
	if err := b.Bind(t.Context(), whole("p", "GPU-a", 0), nil); !errors.Is(err, engine.ErrUnknown) {
		t.Errorf("error %v", err)
	}
	b = inTerm(newBinder(t, server.client(t), unbound("p")), Term{Epoch: 7, Until: time.Now().Add(-time.Millisecond)})
	if err := b.Bind(t.Context(), whole("p", "GPU-a", 0), nil); err == nil {
		t.Error("bound after the end")
	}
}

// The leader is told when the fence refuses, and of no other refusal.
func TestBindTellsOfTheFence(t *testing.T) {
	for message, want := range map[string]int{superseded: 1, noParams: 1, "ValidatingAdmissionPolicy 'other' denied request": 0} {
		server := newAPIServer(t, onBinding(says(http.StatusForbidden, message)))
		b := inTerm(newBinder(t, server.client(t), unbound("p")), Term{Epoch: 6})
		told := 0
		b.FenceRefused = func() { told++ }
		if err := b.Bind(t.Context(), whole("p", "GPU-a", 0), nil); !errors.Is(err, engine.ErrRefused) || told != want {
			t.Errorf("%s: told %d times, want %d; %v", message, told, want, err)
		}
	}
}
