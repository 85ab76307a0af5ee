package kube

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/metrics"
)

const shownKey = "heteroflow.io/visible-devices-0"

// told is one forgery as the books have told of it.
type toldForgery struct {
	Pod  string
	Kind metrics.Forgery
	Text string
}

// listen keeps what the books tell.
func (s *shelf) listen() *[]toldForgery {
	var all []toldForgery
	s.Forged = func(pod *corev1.Pod, kind metrics.Forgery, text string) {
		all = append(all, toldForgery{pod.Name, kind, text})
	}
	return &all
}

// What was let in although nobody but the scheduler writes it is told of, once,
// and is never free room.
func TestForgeries(t *testing.T) {
	show := func(value string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Annotations[shownKey] = value } }
	set := func(key, value string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Annotations[key] = value } }
	another := func(p *corev1.Pod) {
		p.Annotations[codec.AnnotationAllocation] = strings.ReplaceAll(p.Annotations[codec.AnnotationAllocation], "GPU-a", "GPU-b")
	}
	nothing := func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }
	only := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations, p.Labels = map[string]string{key: value}, nil }
	}
	static := func(p *corev1.Pod) { p.Annotations[corev1.MirrorPodAnnotationKey] = "x" }

	tests := map[string]struct {
		seen []*corev1.Pod
		kind metrics.Forgery // "" for none
		text string
		free int // cards, of 2
	}{
		"none": {[]*corev1.Pod{boundPod(t, "p"), boundPod(t, "p", func(p *corev1.Pod) { p.Annotations["note"] = "x" })}, "", "", 1},
		"left from an earlier life": {
			[]*corev1.Pod{boundPod(t, "p", set("heteroflow.io/mem-limit-0", ""), set("heteroflow.io/visible-devices-4", ""))}, "", "", 1},
		"bound by hand, no record": {
			[]*corev1.Pod{boundPod(t, "p", func(p *corev1.Pod) { p.Annotations, p.Labels = nil, nil })}, "", "", 0},

		"without the label": {
			[]*corev1.Pod{boundPod(t, "p", func(p *corev1.Pod) { p.Labels = nil })}, metrics.ForgeryDoubted, "label heteroflow.io/bound-by is missing", 0},
		"for another node": {
			[]*corev1.Pod{boundPod(t, "p", set(codec.AnnotationHAMiNode, "n2"))}, metrics.ForgeryDoubted, `made for node "n2"`, 0},
		"shown other cards than those on record": {
			[]*corev1.Pod{boundPod(t, "p", show("GPU-b"))}, metrics.ForgeryDoubted, `show containers "visible-devices GPU-b", where the record has "visible-devices GPU-a"`, 0},
		"shown no cards": {
			[]*corev1.Pod{boundPod(t, "p", func(p *corev1.Pod) { delete(p.Annotations, shownKey) })}, metrics.ForgeryDoubted, `show containers ""`, 0},
		"another container is shown cards": {
			[]*corev1.Pod{boundPod(t, "p", set("heteroflow.io/visible-devices-1", "GPU-b"))}, metrics.ForgeryDoubted, "visible-devices GPU-a; visible-devices GPU-b", 0},
		"containers with other numbers": { // they refer to the ones that they had
			[]*corev1.Pod{boundPod(t, "p", set(codec.AnnotationContainers, `{"main":3}`))}, "", "", 1},
		"a record, and asks for nothing": {
			[]*corev1.Pod{boundPod(t, "p", nothing)}, metrics.ForgeryDoubted, "", 0},
		"shown cards, and no record": {
			[]*corev1.Pod{boundPod(t, "p", only(shownKey, "GPU-b"))}, metrics.ForgeryDoubted, "there is no record", 0},
		"shown cards, no record, and asks for nothing": {
			[]*corev1.Pod{boundPod(t, "p", only(shownKey, "GPU-b"), nothing)}, metrics.ForgeryDoubted, "there is no record", 0},
		"a static pod": {
			[]*corev1.Pod{boundPod(t, "p", static)}, metrics.ForgeryDoubted, "static pod", 0},

		"the record is changed later": {
			[]*corev1.Pod{boundPod(t, "p"), boundPod(t, "p", another)}, metrics.ForgeryChanged, "it counts for GPU-a", 1},
		"the record is taken off later": {
			[]*corev1.Pod{boundPod(t, "p"), boundPod(t, "p", func(p *corev1.Pod) { delete(p.Annotations, codec.AnnotationAllocation) })},
			metrics.ForgeryChanged, "it counts for GPU-a", 1},
		"shown other cards later": {
			[]*corev1.Pod{boundPod(t, "p"), boundPod(t, "p", show("GPU-b"))}, metrics.ForgeryChanged, "besides GPU-a", 0},
		"a consistent change later": {
			[]*corev1.Pod{boundPod(t, "p"), boundPod(t, "p", another, show("GPU-b"))}, metrics.ForgeryChanged, "besides GPU-a", 0},

		"the record before it is bound": {
			[]*corev1.Pod{early("p", codec.AnnotationAllocation)}, metrics.ForgeryEarly, codec.AnnotationAllocation, 2},
		"numbers of containers, as admission gives them": {
			[]*corev1.Pod{early("p", codec.AnnotationContainers)}, "", "", 2},
		"HAMi's own keys, as its scheduler writes them": {
			[]*corev1.Pod{early("p", "hami.io/vgpu-devices-to-allocate")}, "", "", 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			told := s.listen()
			s.NodeSeen(newNode("n1", devices))
			for _, pod := range tc.seen {
				s.PodSeen(pod)
				s.PodSeen(pod) // informers repeat themselves
			}
			if got := freeCards(s); got != tc.free {
				t.Errorf("%d cards are free, want %d", got, tc.free)
			}
			if tc.kind == "" {
				if len(*told) > 0 {
					t.Errorf("told of %v", *told)
				}
				return
			}
			if len(*told) != 1 || (*told)[0].Kind != tc.kind || !strings.Contains((*told)[0].Text, tc.text) {
				t.Errorf("told of %+v, want one that is %s and says %q", *told, tc.kind, tc.text)
			}
		})
	}
}

// early is a pod that waits and has the key already.
func early(name, key string) *corev1.Pod {
	p := unbound(name)
	p.Annotations = map[string]string{key: "{}"}
	return p
}

func freeCards(s *shelf) (free int) {
	n, _ := s.Ledger.Snapshot().Node("n1")
	for i := range n.Cards {
		if n.Cards[i].Free() {
			free++
		}
	}
	return free
}

// Who was shown other cards for a while may have started with them: what he had
// counts, and what he may have got counts until he ends.
func TestAForgeryThatIsUndoneStillCounts(t *testing.T) {
	s := newShelf()
	told := s.listen()
	s.NodeSeen(newNode("n1", devices))
	s.PodSeen(boundPod(t, "p"))
	s.PodSeen(boundPod(t, "p", func(p *corev1.Pod) { p.Annotations[shownKey] = "GPU-b" }))
	s.PodSeen(boundPod(t, "p"))
	h, _ := s.Ledger.Hold("uid-p")
	if diff := cmp.Diff([]gpu.Foreign{{Cards: gpu.AllCards}}, h.Foreign); diff != "" || len(h.Grants) != 1 || h.Grants[0].Shares[0].Card != "GPU-a" {
		t.Errorf("the pod holds %v; its claims (-want +got):\n%s", h.Grants, diff)
	}
	if got := freeCards(s); got != 0 {
		t.Errorf("%d cards are free", got)
	}
	s.PodSeen(boundPod(t, "p", ended(corev1.PodSucceeded)))
	if got := freeCards(s); got != 2 {
		t.Errorf("after its end %d cards are free, want 2", got)
	}
	if len(s.forgeries.told) > 0 {
		t.Errorf("a pod that has ended is remembered: %v", s.forgeries.told)
	}
	if len(*told) == 0 || (*told)[0].Pod != "p" {
		t.Errorf("told of %v", *told)
	}
}

// Pods that come and go leave nothing behind.
func TestForgeriesAreForgotten(t *testing.T) {
	s := newShelf()
	for _, name := range []string{"a", "b"} {
		s.PodSeen(early(name, codec.AnnotationAllocation))
	}
	s.PodGone(early("a", codec.AnnotationAllocation), true)
	if diff := cmp.Diff([]gpu.PodID{"uid-b"}, keys(s.forgeries.told)); diff != "" {
		t.Errorf("remembered (-want +got):\n%s", diff)
	}
}

func keys(told map[gpu.PodID]string) (ids []gpu.PodID) {
	for id := range told {
		ids = append(ids, id)
	}
	return ids
}
