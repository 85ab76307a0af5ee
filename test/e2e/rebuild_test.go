package e2e

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/test/cluster"
)

const rebuildPolicy = `
apiVersion: heteroflow.io/v1alpha1
kind: SchedulerPolicy
metadata: {name: default}
spec:
  defaultTaskTimeout: 4s
  plugins:
  - {name: rebuild, args: {grace: 3s, atOnce: 2}}
`

// rebuilding is how the extender runs where nobody has minutes.
var rebuilding = cluster.Extender{Policy: rebuildPolicy, Linger: linger, Verbosity: 2}

func inference() v1alpha1.TaskGroupSpec {
	return v1alpha1.TaskGroupSpec{Type: v1alpha1.TaskGroupInference}
}

// TestRebuild has nodes of a service fall silent. Its members there are made anew
// elsewhere, two at a time; those that still serve are left alone, however their node
// looks; and so is who has no owner.
func TestRebuild(t *testing.T) {
	s := begin(t, rebuilding)
	s.add(cards("rebuild-a", 2), cards("rebuild-b", 2), cards("rebuild-c", 2), cards("rebuild-d", 2), cards("rebuild-e", 2))
	s.group("chat", "", inference())
	member := func(name string) *corev1.Pod {
		p := with(with(podFor(name, amount{wholeCards, 1}), taskGroupKey, "chat"), taskTypeKey, "inference")
		return with(p, modelKey, "Model-rebuild")
	}
	s.deployment(member("chat"), 9) // with the other one all cards: each node has a member
	s.create(member("alone"))
	s.eventually("the service to run", func() error { return s.podsOf("chat", 9) })
	home := s.runs("alone").Spec.NodeName

	// Its kubelet says that it is not well, and goes on.
	before := s.uids("")
	s.must("make a node not ready", s.nodes.SetReady(s.ctx, home, false))
	s.meanwhile(16*time.Second, "members that serve", func() error {
		if n := s.changed(before, ""); n > 0 {
			return fmt.Errorf("%d pods are others now", n)
		}
		return nil
	})

	// And falls silent.
	s.add(cards("rebuild-f", 2))
	s.must("lose a node", s.nodes.Lose(s.ctx, home))
	s.eventually("the members to run elsewhere", func() error { return s.run(9, "chat", home) })
	s.eventually("the one without an owner to be told of", func() error { return s.hasEvent("alone", "NotRebuilt", home) })
	if p := s.pod("alone"); p.DeletionTimestamp != nil {
		s.Error("it is ended, and nobody makes it anew")
	}
	rebuilt := errors.New("no event says so")
	for _, p := range s.pods() {
		if p.Spec.NodeName == home && p.Labels["app"] == "chat" && s.hasEvent(p.Name, "Rebuilding", home) == nil {
			rebuilt = nil
		}
	}
	s.check("an event of who is made anew", rebuilt)
	s.verify()

	// Another one is gone.
	s.add(cards("rebuild-g", 2))
	gone := ""
	for _, p := range s.pods() {
		if p.Labels["app"] == "chat" && p.Spec.NodeName != home {
			gone = p.Spec.NodeName
		}
	}
	s.must("take a node away", s.nodes.Vanish(s.ctx, gone))
	s.eventually("the members to run elsewhere", func() error { return s.run(9, "chat", home, gone) })
}

// run returns an error unless so many pods of the app run on nodes that are not lost.
func (s *scene) run(want int, app string, lost ...string) error {
	n := 0
	for _, p := range s.pods() {
		if p.Labels["app"] == app && !slices.Contains(lost, p.Spec.NodeName) && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			n++
		}
	}
	if n != want {
		return fmt.Errorf("%d do, want %d", n, want)
	}
	return nil
}
