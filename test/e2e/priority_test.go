package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPriorityDecidesWhoIsNext has four pods want the one card there is. Each
// round a kube-scheduler that has just started sees all that wait at once; the
// one it places is gone before the next round. So who was created first, and who
// has been refused how often, does not matter; nor that all four are shown the
// one free card, and their Bindings race.
func TestPriorityDecidesWhoIsNext(t *testing.T) {
	s := begin(t, defaults)
	s.admit()
	s.add(oneCard("priority", "first"))
	s.pauseKubeScheduler()
	s.create(with(bare(podFor("ten", amount{wholeCards, 1})), priorityKey, "10"))
	s.create(with(bare(podFor("ninety", amount{wholeCards, 1})), priorityKey, "90"))
	s.create(bare(podFor("silent", amount{wholeCards, 1}))) // 50
	s.create(with(bare(podFor("seventy", amount{wholeCards, 1})), priorityKey, "70"))

	var got []string
	for range 4 {
		s.must("kube-scheduler", s.StartKubeScheduler(s.ctx))
		next := s.firstBound()
		s.must("stop kube-scheduler", s.StopKubeScheduler(s.ctx))
		got = append(got, next)
		s.verify()
		s.remove(next, false)
		s.gone(next)
	}
	if diff := cmp.Diff([]string{"ninety", "seventy", "silent", "ten"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
