package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// Who was bound past us is on cards that nobody knows, and a record that comes
// later does not make them known: its owner may have written it.
func TestARecordThatComesLaterIsIgnored(t *testing.T) {
	for name, first := range map[string]func(*corev1.Pod){
		"none at first":         func(p *corev1.Pod) { p.Annotations, p.Labels = nil, nil },
		"not readable at first": func(p *corev1.Pod) { p.Annotations[codec.AnnotationAllocation] = "{" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			s.NodeSeen(newNode("n1", devices))
			s.PodSeen(boundPod(t, "p", first))
			before, _ := s.Ledger.Hold("uid-p")
			for range 2 {
				s.PodSeen(boundPod(t, "p"))
			}
			after, _ := s.Ledger.Hold("uid-p")
			if diff := cmp.Diff(before.Placement, after.Placement); diff != "" || len(after.Foreign) == 0 {
				t.Errorf("what the pod holds (-before +after the record):\n%s", diff)
			}
		})
	}
}

// A claim that was made without a record does not move with the pod's state, and
// not to another node either; a pod that claimed nothing is believed.
func TestWhenARecordIsBelieved(t *testing.T) {
	bare := func(p *corev1.Pod) { p.Annotations, p.Labels = nil, nil }
	none := func(p *corev1.Pod) { bare(p); p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }
	elsewhere := func(p *corev1.Pod) { bare(p); p.Spec.NodeName = "n2" }
	lingers := func(s *shelf) { s.PodGone(boundPod(t, "p", bare), false) }
	for name, tc := range map[string]struct {
		first    func(*corev1.Pod)
		then     func(*shelf)
		believed bool
	}{
		"it claimed cards":              {bare, func(*shelf) {}, false},
		"it claimed cards, and lingers": {bare, lingers, false},
		"it claimed none":               {none, func(*shelf) {}, true},
		"it was on another node":        {elsewhere, func(*shelf) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			s.PodSeen(boundPod(t, "p", tc.first))
			tc.then(s)
			s.PodSeen(boundPod(t, "p"))
			if h, _ := s.Ledger.Hold("uid-p"); (len(h.Grants) > 0) != tc.believed {
				t.Errorf("the pod holds %v, claims %v; believed should be %t", h.Grants, h.Foreign, tc.believed)
			}
		})
	}
}

// Who waits no more is told of, whatever it waited for.
func TestSettled(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want []gpu.PodID
	}{
		"waits":                  {unbound("p"), nil},
		"bound":                  {boundPod(t, "p"), []gpu.PodID{"uid-p"}},
		"ended":                  {boundPod(t, "p", ended(corev1.PodFailed)), []gpu.PodID{"uid-p"}},
		"ended without a node":   {boundPod(t, "p", ended(corev1.PodFailed), func(p *corev1.Pod) { p.Spec.NodeName = "" }), []gpu.PodID{"uid-p"}},
		"being deleted, unbound": {boundPod(t, "p", terminating(30), func(p *corev1.Pod) { p.Spec.NodeName = "" }), []gpu.PodID{"uid-p"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			s.PodSeen(tc.pod)
			if diff := cmp.Diff(tc.want, s.settled); diff != "" {
				t.Errorf("told as settled (-want +got):\n%s", diff)
			}
		})
	}
}
