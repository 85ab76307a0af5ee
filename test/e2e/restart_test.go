package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/test/simnode"
)

// TestRestartInTheMiddle kills the scheduler in the middle of a burst, twice.
// Whatever it was doing, every pod runs in the end and no card is given twice.
func TestRestartInTheMiddle(t *testing.T) {
	s := begin(t, defaults)
	for i := range 20 {
		name := fmt.Sprintf("restart-%d", i)
		s.add(simnode.Spec{Name: name, Cards: simnode.Cards(name, 8, "nvidia", "NVIDIA-A100-SXM4-80GB", 81920)})
	}
	// Three of these fit on a card: there is room for 480.
	const burst = 400
	created := make(chan error, 1)
	go func() {
		created <- s.burst(many(burst, s.ns, "slice", nil, amount{sliceMemory, 20000}, amount{sliceCores, 30}))
	}()
	for _, least := range []int{burst / 10, burst / 2} {
		s.eventually("the middle of the burst", func() error { return s.bound(least) })
		s.KillExtender()
		t.Logf("killed with %d pods bound", countBound(s.pods()))
		s.verify()
		s.must("restart", s.StartExtender(s.ctx, s.running))
	}
	s.must("create pods", <-created)
	s.eventually("all pods", func() error { return s.bound(burst) })
	s.verify()
}

// bound returns an error while fewer pods than that are bound.
func (s *scene) bound(least int) error {
	if n := countBound(s.pods()); n < least {
		return fmt.Errorf("%d of %d pods are bound", n, least)
	}
	return nil
}

func countBound(pods []corev1.Pod) int {
	n := 0
	for i := range pods {
		if pods[i].Spec.NodeName != "" {
			n++
		}
	}
	return n
}
