package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/test/oracle"
	"heteroflow.io/heteroflow/test/simnode"
)

// TestCardsOfOthersAreNotFreeRoom has somebody else bind pods past us, by hand:
// one that asks for a card, and one that brings a record of cards it has made
// up. What they may hold is given to nobody.
func TestCardsOfOthersAreNotFreeRoom(t *testing.T) {
	s := begin(t, defaults)
	s.add(
		simnode.Spec{Name: "others-asks", Cards: simnode.Cards("others-asks", 2, "nvidia", "Model-asks", 24564)},
		simnode.Spec{Name: "others-forges", Cards: simnode.Cards("others-forges", 2, "nvidia", "Model-forges", 24564)},
	)
	s.bindByHand(podFor("asks", amount{vendorCards, 1}), "others-asks")
	forged := with(podFor("forges", amount{vendorCards, 1}), allocationOf,
		`{"version":1,"tenant":"`+s.ns+`","boundAt":"2026-01-01T00:00:00Z","epoch":0,"containers":[{"name":"main","init":false,"cards":[`+
			`{"vendor":"nvidia","uuid":"none","index":0,"memoryMiB":24564,"cores":100,"exclusive":true,"isolation":"exclusive"}]}]}`)
	s.bindByHand(forged, "others-forges")
	s.eventually("the forgery to be told of", func() error {
		return s.hasEvent("forges", "RecordForged", "label heteroflow.io/bound-by is missing")
	})

	// One of two cards is left where the number is known, and none where it is
	// not.
	for _, name := range []string{"asks-0", "asks-1"} {
		s.create(with(podFor(name, amount{wholeCards, 1}), modelKey, "Model-asks"))
	}
	s.create(with(podFor("beside-a-forger", amount{wholeCards, 1}), modelKey, "Model-forges"))
	s.eventually("one pod beside the one that asks", func() error { return s.bound(3) })
	s.meanwhile(3*time.Second, "the cards of others", func() error {
		if n := countBound(s.pods()); n != 3 {
			t.Fatalf("%d pods are bound, want those of others and one of ours", n)
		}
		return s.waits("beside-a-forger")
	})

	// The oracle condemns the two themselves, and nothing else.
	var rest []corev1.Pod
	for _, p := range s.pods() {
		if p.Name != "asks" && p.Name != "forges" {
			rest = append(rest, p)
		}
	}
	for _, wrong := range oracle.Check(s.nodeList(), rest) {
		t.Error(wrong)
	}
}

// bindByHand binds a pod as an administrator can, with no scheduler involved.
func (s *scene) bindByHand(p *corev1.Pod, node string) {
	s.Helper()
	p.Spec.SchedulerName = "nobody"
	s.create(p)
	s.must("bind", s.Client.CoreV1().Pods(s.ns).Bind(s.ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: p.Name},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{}))
	s.runs(p.Name)
}
