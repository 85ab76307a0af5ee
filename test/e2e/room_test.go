package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	extender "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/test/simnode"
)

// TestHalvesFillCards: as many halves as there are, at once, for one node: two a
// card, and none bounced for long.
func TestHalvesFillCards(t *testing.T) {
	s := begin(t, defaults)
	s.add(simnode.Spec{Name: "halves", Cards: simnode.Cards("halves", 8, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)})
	half := []amount{{sliceMemory, 81920 * 9 / 10 / 2}, {sliceCores, 50}} // of what the reserve leaves
	began := time.Now()
	s.create(many(16, s.ns, "half", nil, half...)...)
	s.eventually("16 halves", func() error { return s.bound(16) })
	s.Logf("16 halves after %.1f s", time.Since(began).Seconds())
	s.holders(16)
	s.verify()

	// Seven cards are full now and one is made free: of three halves two run.
	for _, p := range s.pods() {
		if got := s.has(&p); got[0].Card == "GPU-halves-nvidia-7" {
			s.remove(p.Name, false)
		}
	}
	s.holders(14)
	s.create(many(3, s.ns, "late", nil, half...)...)
	s.eventually("two of three", func() error { return s.bound(16) })
	s.meanwhile(2*time.Second, "a full node", func() error {
		if n := countBound(s.pods()); n != 16 {
			return fmt.Errorf("%d pods are bound", n)
		}
		return nil
	})
	s.verify()
}

// TestLastCard: of many that want the last card one gets it.
func TestLastCard(t *testing.T) {
	s := begin(t, defaults)
	s.add(oneCard("last", "1"))
	s.create(many(10, s.ns, "wants", nil, amount{wholeCards, 1})...)
	s.eventually("one pod", func() error { return s.bound(1) })
	s.toldReasons(slices.DeleteFunc(s.pods(), func(p corev1.Pod) bool { return p.Spec.NodeName != "" }))
	if n := countBound(s.pods()); n != 1 {
		t.Errorf("%d pods are bound", n)
	}
	s.holders(1)
	s.verify()
}

// TestFilterLeavesNoTrace: asking is free. The same question five times changes
// neither the pod nor the ledger.
func TestFilterLeavesNoTrace(t *testing.T) {
	s := begin(t, defaults)
	s.add(oneCard("asked", "1"))
	p := podFor("p", amount{wholeCards, 1})
	p.Spec.SchedulerName = "nobody"
	s.create(p)
	before := s.pod("p")
	for range 5 {
		body, err := json.Marshal(extender.ExtenderArgs{Pod: before, NodeNames: &[]string{"asked"}})
		s.must("encode", err)
		answer, err := http.Post(s.ExtenderURL()+"/filter", "application/json", bytes.NewReader(body))
		s.must("ask", err)
		var result extender.ExtenderFilterResult
		s.must("decode", json.NewDecoder(answer.Body).Decode(&result))
		s.check("close", answer.Body.Close())
		if result.NodeNames == nil || !slices.Equal(*result.NodeNames, []string{"asked"}) {
			t.Fatalf("answer %+v", result)
		}
	}
	if diff := cmp.Diff(before, s.pod("p")); diff != "" {
		t.Errorf("the pod has changed (-before +after):\n%s", diff)
	}
	s.holders(0)
}

// TestPreferencesMatter: what kube-scheduler itself weighs (preferred affinity,
// soft spread) is not drowned by the extender, although it would spread.
func TestPreferencesMatter(t *testing.T) {
	s := begin(t, defaults)
	for _, zone := range []string{"a", "b"} {
		name := "prefers-" + zone
		s.add(simnode.Spec{Name: name, Labels: map[string]string{"zone": zone}, Cards: simnode.Cards(name, 8, "nvidia", "NVIDIA-L40S", 46068)})
	}
	for i := range 4 {
		p := podFor(fmt.Sprintf("likes-b-%d", i), amount{wholeCards, 1})
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}}}},
			}},
		}}
		s.create(p)
		if got := s.runs(p.Name).Spec.NodeName; got != "prefers-b" {
			t.Errorf("pod %d runs on %s", i, got)
		}
	}
	s.verify()
}

// TestNodesThatFlap: a node whose heartbeat is late, or that loses its inventory
// for a moment, keeps what runs there, and its cards stay held.
func TestNodesThatFlap(t *testing.T) {
	s := begin(t, defaults)
	s.add(oneCard("flaps", "1"))
	s.create(podFor("p", amount{wholeCards, 1}))
	s.runs("p")
	for range 3 {
		s.must("not ready", s.nodes.SetReady(s.ctx, "flaps", false))
		s.must("no cards", s.nodes.SetCards(s.ctx, "flaps", nil))
		s.must("ready", s.nodes.SetReady(s.ctx, "flaps", true))
		s.must("cards", s.nodes.SetCards(s.ctx, "flaps", simnode.Cards("flaps", 1, "nvidia", "Model-flaps", 24564)))
	}
	s.create(podFor("q", amount{wholeCards, 1}))
	s.refusedFor("q", "InsufficientGPUCount")
	s.holders(1)
	s.verify()
}
