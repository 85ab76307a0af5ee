package engine

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// mustTryTruly holds Trial against what a decision about that state would be: of the
// cluster as it is, and of what it would be without some of its pods.
func (c cluster) mustTryTruly(t *testing.T, r *gpu.Request, nodes []gpu.NodeID, pods ...gpu.PodID) {
	t.Helper()
	now := c.ledger.Snapshot()
	trial := c.Trial(r, now)
	for _, node := range nodes {
		for _, in := range []struct {
			name string
			gone []gpu.PodID
		}{{"now", nil}, {"without some", pods}, {"now again", nil}} {
			state := now.Without(node, in.gone...)
			s := stand(r, state, c.terms(state), c.cfg.Now())
			want, n := false, pipeline.Verdict{}
			if at, ok := state.Node(node); ok {
				n, _ = s.judge(at, &pipeline.Scratch{})
				want = n.OK()
			}
			if got := trial.Fits(state, node); got != want {
				t.Fatalf("%s, %s: fits: %t, want %t (%+v)", node, in.name, got, want, n)
			}
			p, placed := trial.Place(state, node)
			if !placed && want {
				t.Fatalf("%s, %s: it fits, and is given no cards", node, in.name)
			}
			if _, err := state.With(p); placed && err != nil {
				t.Fatalf("%s, %s: %v", node, in.name, err)
			}
		}
	}
}

// TestTrial: a quota counts as in the state that is handed over, though another was asked
// about before.
func TestTrial(t *testing.T) {
	c := limited([]gpu.Limit{cardLimit(2)}, 2, 1)
	c.takes(t, "a", "n1", whole(1))
	c.takes(t, "b", "n2", whole(1))
	now := c.ledger.Snapshot()
	without := func(node gpu.NodeID, id gpu.PodID) func() (bool, bool) {
		r := pod("p", whole(1))
		trial := c.Trial(&r, now)
		return func() (bool, bool) { s := now.Without(node, id); return trial.Fits(s, "n1"), trial.Fits(s, "n2") }
	}
	r := pod("p", whole(1))
	trial := c.Trial(&r, now)
	if trial.Fits(now, "n1") {
		t.Error("it passes the quota, and fits")
	}
	for node, id := range map[gpu.NodeID]gpu.PodID{"n1": "a", "n2": "b"} {
		one, two := without(node, id)()
		if !one || two != (node == "n2") {
			t.Errorf("without %s: fits n1: %t, n2: %t", id, one, two)
		}
	}
	p, ok := trial.Place(now.Without("n2", "b"), "n2")
	if want := (gpu.Placement{}); !ok || p.Node != "n2" || cmp.Equal(p, want) || p.Uses()[0].Card != "n2-d0" {
		t.Errorf("place = %+v, %t", p, ok)
	}
	if trial.Fits(now, "n1") || trial.Fits(now, "n9") {
		t.Error("fits where the quota is passed, or on a node that is not there")
	}
	if _, ok := trial.Place(now, "n9"); ok {
		t.Error("has a place on a node that is not there")
	}
	if diff := cmp.Diff([]gpu.PodID{"a", "b"}, c.ledger.Pods()); diff != "" {
		t.Errorf("a trial has changed the ledger (-want +got):\n%s", diff)
	}
}

// BenchmarkTrial is what a plan asks of a node: one state more of it, without one pod.
func BenchmarkTrial(b *testing.B) {
	c, ids := pool(1000)
	r := pod("a", whole(7))
	now := c.ledger.Snapshot()
	b.Run("a state that has been", func(b *testing.B) {
		trial := c.Trial(&r, now)
		for i := 0; b.Loop(); i++ {
			trial.Fits(now, ids[i%len(ids)])
		}
	})
	b.Run("without a pod", func(b *testing.B) {
		trial := c.Trial(&r, now)
		for i := 0; b.Loop(); i++ {
			node := ids[i%500]
			if trial.Fits(now.Without(node, gpu.PodID(fmt.Sprintf("%s-d0", node))), node) != true {
				b.Fatal("seven of eight are free then")
			}
		}
	})
}
