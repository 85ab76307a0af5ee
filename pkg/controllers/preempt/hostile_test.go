package preempt

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// An API server that answers no trial run, whatever for, leaves no room kept for ever.
func TestNobodySaysWhetherTheyMayBeEvicted(t *testing.T) {
	s := newStage(t, "n1")
	s.fill("n1")
	s.pod("high", 10, 1)
	s.c.Pods = evictions{podServer{s.world}, func(*corev1.Pod, bool) error {
		return apierrors.NewInternalError(errors.New("a webhook cannot be reached"))
	}}
	s.rounds(12)
	s.want("given up", "high on n1 RolledBack: n1-0 Spared")
	if _, has := s.Hold(gpu.PodID(s.pods["ns/high"].UID)); has || len(s.evicted) > 0 {
		t.Errorf("room is kept: %v; evicted: %v", has, s.evicted)
	}
}

// evictions has evictions answered otherwise.
type evictions struct {
	podServer
	answer func(pod *corev1.Pod, dry bool) error
}

func (e evictions) Evict(ctx context.Context, pod *corev1.Pod, dry bool) error {
	if err := e.answer(pod, dry); err != nil {
		return err
	}
	return e.podServer.Evict(ctx, pod, dry)
}

// One pod that cannot be written down, as its manifest is too long, does not keep the
// others.
func TestOneThatCannotBeMadeAnewIsPassedOver(t *testing.T) {
	s := newStage(t, "n1")
	s.fill("n1")
	s.pod("high", 10, 1)
	write := s.c.Codec.Manifest
	s.c.Codec.Manifest = func(pod *corev1.Pod, count int) ([]byte, error) {
		if pod.Name == "n1-0" {
			return nil, errors.New("is too long")
		}
		return write(pod, count)
	}
	s.rounds(60)
	s.want("the next one goes", "high on n1 Bound: n1-1 Succeeded")
}

// A victim that changes at the last moment, so that it may not be ended any more, costs
// nobody else's life.
func TestNobodyGoesWithOneThatChangesItsMind(t *testing.T) {
	s := newStage(t, "n1")
	for i := range 4 {
		s.pod(fmt.Sprint("v", i), 0, 1, on("n1"), preemptible)
	}
	s.pod("high", 10, 4)
	s.rounds(1)
	s.strike = func(op string) {
		if op != "annotate" || s.pods["ns/v3"].Annotations[codec.AnnotationPreemptible] == "false" {
			return
		}
		s.edit(s.pods["ns/v3"], func(p *corev1.Pod) { p.Annotations[codec.AnnotationPreemptible] = "false" })
	}
	s.rounds(3)
	s.want("rolled back", "high on n1 RolledBack: v0 Spared v1 Spared v2 Spared v3 Spared")
	if diff := cmp.Diff([]string(nil), s.evicted); diff != "" {
		t.Errorf("evicted (-want +got):\n%s", diff)
	}
}

// A Job is not suspended over the head of a pod of it that may not be ended.
func TestAJobIsNotSuspendedOverOneThatStays(t *testing.T) {
	s := newStage(t, "n1", "n2")
	s.c.Codec.Bound = codec.Bound
	suspends := noted(codec.AnnotationPreemptMode, "suspend")
	owner := func(p *corev1.Pod) {
		ownedBy("Job", "job")(p)
		p.OwnerReferences[0].APIVersion = "batch/v1"
	}
	goes := s.pod("goes", 0, 1, on("n1"), owner, suspends, preemptible)
	stays := s.pod("stays", 0, 1, on("n2"), owner)
	other := s.pod("other", 0, 1, on("n2"), preemptible)
	w := s.c.Base()
	r := &round{Controller: s.c, pods: s.sorted()}
	r.furnish(&w)
	units := map[string]string{}
	for _, pods := range w.Pods {
		for _, p := range pods {
			units[p.Name] = p.Unit
		}
	}
	unit := "ns/job/" + string(goes.OwnerReferences[0].UID)
	if diff := cmp.Diff(map[string]string{goes.Name: unit, stays.Name: unit, other.Name: ""}, units); diff != "" {
		t.Errorf("units (-want +got):\n%s", diff)
	}
}

// Whom a budget keeps after all is asked again now and then, and not at each look.
func TestAFewAskWhomABudgetKeeps(t *testing.T) {
	s := newStage(t, "n1")
	s.pod("a", 0, 2, on("n1"), preemptible)
	s.pod("b", 0, 2, on("n1"), preemptible)
	s.pod("high", 10, 4)
	asked := 0
	s.c.Pods = evictions{podServer{s.world}, func(pod *corev1.Pod, dry bool) error {
		if dry || pod.Name != "b" {
			return nil
		}
		asked++
		return ErrBlocked
	}}
	s.rounds(62)
	if asked < 5 || asked > 15 {
		t.Errorf("asked %d times within a minute", asked)
	}
}
