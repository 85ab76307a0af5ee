package preempt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/kube"
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
		return kube.ErrBlocked
	}}
	s.rounds(62)
	if asked < 5 || asked > 15 {
		t.Errorf("asked %d times within a minute", asked)
	}
}

// A pod for whom nobody is ended is told why, once, and only where somebody of lower
// priority offers to be ended.
func TestWhoGetsNobodyIsToldWhy(t *testing.T) {
	s := newStage(t, "n1")
	s.fill("n1")
	s.pod("large", 10, 5)
	s.pod("trains", 10, 1, noted(codec.AnnotationTaskType, "training"))
	s.pod("low", 0, 5)
	s.rounds(20)
	if diff := cmp.Diff(map[string]int{"NotPreempting large": 1, "NotPreempting trains": 1}, s.told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// Manifests that are too much for one object together: the pod with the longest is left
// alone, and the others may be ended.
func TestManifestsThatDoNotFitOneObject(t *testing.T) {
	s := newStage(t, "n1", "n2")
	s.fill("n1")
	s.fill("n2")
	s.pod("high", 10, 2)
	write := s.c.Codec.Manifest
	s.c.Codec.Manifest = func(pod *corev1.Pod, count int) ([]byte, error) {
		text, err := write(pod, count)
		if pod.Spec.NodeName == "n1" {
			text = append(text, bytes.Repeat([]byte(" "), mostManifests/2)...)
		}
		return text, err
	}
	s.rounds(60)
	s.want("where it fits", "high on n2 Bound: n2-0 Succeeded n2-1 Succeeded")
}

// A Job that nobody may read does not have room kept for a preemptor that has gone.
func TestRoomIsNotKeptForWhoHasGone(t *testing.T) {
	s := newStage(t, "n1")
	s.job("a", 1)
	s.pod("v", 0, 4, on("n1"), preemptible, ownedBy("Job", "a"))
	s.pod("high", 10, 4)
	s.rounds(2)
	s.c.Jobs = unreadable{}
	s.drop(s.pods["ns/high"], s.now)
	s.rounds(5)
	s.want("ended", "high on n1 RolledBack: v Evicting")
}

type unreadable struct{ Jobs }

func (unreadable) Get(context.Context, string, string) (*batchv1.Job, error) {
	return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "a", errors.New("no right"))
}
