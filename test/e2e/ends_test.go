package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/test/simnode"
)

var noOptions metav1.DeleteOptions

// TestEveryWayToEnd has, for each way a pod can end, one pod hold the only card
// of its kind and another wait for it. The second runs once the first has really
// ended, and not before.
func TestEveryWayToEnd(t *testing.T) {
	s := begin(t, defaults)
	for _, tc := range []struct {
		way string
		end func(s *scene, node, holder, waiter string)
	}{
		{"succeeded", func(s *scene, _, holder, _ string) { s.annotate(holder, simnode.End, "Succeeded") }},
		{"failed", func(s *scene, _, holder, _ string) { s.annotate(holder, simnode.End, "Failed") }},
		{"deleted", func(s *scene, _, holder, _ string) { s.remove(holder, false) }},
		{"hanging", endsHanging},
		// Nothing changes in the cluster when these cards become free, so that
		// kube-scheduler is not told: the waiting pod has to be woken.
		{"forced", endsByForce},
		{"node-gone", endsWithItsNode},
	} {
		s.part(tc.way, func(s *scene) {
			node, holder, waiter := "ends-"+tc.way, "holder-"+tc.way, "waiter-"+tc.way
			s.holdsWhileAnotherWaits(node, holder, waiter)
			tc.end(s, node, holder, waiter)
			began := time.Now()
			s.runs(waiter)
			s.Logf("the next pod runs after %.1f s", time.Since(began).Seconds())
			s.verify()
		})
	}
}

// holdsWhileAnotherWaits has holder run on a node's only card, and waiter be
// refused for it.
func (s *scene) holdsWhileAnotherWaits(node, holder, waiter string) {
	s.Helper()
	s.add(oneCard(node, "first"))
	grace := int64(graceSeconds)
	first := with(podFor(holder, amount{wholeCards, 1}), modelKey, node)
	first.Spec.TerminationGracePeriodSeconds = &grace
	s.create(first)
	s.runs(holder)
	s.create(with(podFor(waiter, amount{wholeCards, 1}), modelKey, node))
	s.eventually("a refusal of "+waiter, func() error {
		if got := codesIn(condition(s.pod(waiter))); len(got) != 1 {
			return fmt.Errorf("its condition names %v", got)
		}
		return nil
	})
}

// graceSeconds is what the holders' containers are given to stop.
const graceSeconds = 1

// oneCard is a node with one card of a model that no other node has.
func oneCard(node, bootID string) simnode.Spec {
	return simnode.Spec{Name: node, BootID: bootID, Cards: simnode.Cards(node, 1, "nvidia", "Model-"+node, 24564)}
}

// endsHanging: a pod whose containers ignore their end holds its card until they
// have ended, however long that takes.
func endsHanging(s *scene, _, holder, waiter string) {
	s.annotate(holder, simnode.Hang, "true")
	s.remove(holder, false)
	s.meanwhile(3*time.Second, "a card whose holder hangs", func() error { return s.waits(waiter) })
	s.verify()
	s.annotate(holder, simnode.Hang, "false")
}

// endsByForce: the object is gone at once, but nobody knows of the containers.
// The card stays held for the pod's grace and the linger timeout.
func endsByForce(s *scene, _, holder, waiter string) {
	const held = graceSeconds*time.Second + linger
	s.remove(holder, true)
	s.gone(holder)
	// What passed between the deletion and this line is in the test's favour.
	s.meanwhile(held-time.Second, "a card that lingers", func() error { return s.waits(waiter) })
}

// endsWithItsNode: a machine that is gone holds nothing, and another of its name
// has a free card. The machine's boot ID tells that it is another one.
func endsWithItsNode(s *scene, node, _, _ string) {
	s.must("remove node", s.nodes.Remove(s.ctx, node))
	s.add(oneCard(node, "second"))
}

// annotate directs the simulated kubelet.
func (s *scene) annotate(pod, key, value string) {
	s.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	s.must("annotate", err)
	_, err = s.Client.CoreV1().Pods(s.ns).Patch(s.ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{})
	s.must("annotate", err)
}
