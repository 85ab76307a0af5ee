package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// loaded returns five nodes of which n1 to n4 have 0, 1, 2 and 1 of two cards
// held: spread gives them 100, 100 - 100/6, 100 - 200/6 and as n2.
func loaded() cluster {
	c := newCluster(2, 2, 2, 2)
	for _, id := range []gpu.CardID{"n2-d0", "n3-d0", "n3-d1", "n4-d0"} {
		c.ledger.Confirm(gpu.Placement{Pod: gpu.PodID(id), Node: gpu.NodeID(id[:2]), Namespace: "ns", Grants: []gpu.Grant{{
			Shares: []gpu.Share{{Card: id, Memory: 1000, Cores: 100, Exclusive: true}},
		}}})
	}
	return c
}

func answers(s []Scored) map[gpu.NodeID]int64 {
	out := map[gpu.NodeID]int64{}
	for _, n := range s {
		out[n.Node] = n.Score
	}
	return out
}

func TestScoreRanks(t *testing.T) {
	c := loaded()
	r := pod("a", whole(1))
	nodes := []gpu.NodeID{"n3", "n1", "n4", "n2"}
	got := c.Score(&r, nodes)
	var order []gpu.NodeID
	for _, s := range got {
		order = append(order, s.Node)
	}
	if diff := cmp.Diff(nodes, order); diff != "" {
		t.Errorf("order (-asked +got):\n%s", diff)
	}
	// n2 and n4 are equal: the name decides, and no two answers are.
	want := map[gpu.NodeID]int64{"n1": 400, "n2": 300, "n4": 200, "n3": 100}
	for range 10 {
		rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		if diff := cmp.Diff(want, answers(c.Score(&r, nodes))); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
	}
	first := c.Score(&r, []gpu.NodeID{"n1"})
	if diff := cmp.Diff([]Scored{{Node: "n1", Total: 100, Parts: []pipeline.Part{{Plugin: "spread", Score: 100, Weight: 1}}, Score: 100}}, first); diff != "" {
		t.Errorf("scored (-want +got):\n%s", diff)
	}
}

// Where kube-scheduler has soft preferences of its own, ours are as small as
// its: 0 to 10.
func TestScoreWithSoftPreferences(t *testing.T) {
	want := map[gpu.NodeID]int64{"n1": 10, "n2": 8, "n3": 7, "n4": 8}
	nodes := []gpu.NodeID{"n1", "n2", "n3", "n4"}

	c := loaded()
	r := pod("a", whole(1))
	r.SoftPreferences = true
	if diff := cmp.Diff(want, answers(c.Score(&r, nodes))); diff != "" {
		t.Errorf("of the pod (-want +got):\n%s", diff)
	}

	c.ledger.SetNode(ledger.Facts{ID: "n2", Cards: cards("n2", 2), PreferNoSchedule: true})
	r.SoftPreferences = false
	if diff := cmp.Diff(want, answers(c.Score(&r, nodes))); diff != "" {
		t.Errorf("for a taint on one of the nodes (-want +got):\n%s", diff)
	}
	if got := answers(c.Score(&r, []gpu.NodeID{"n1", "n3"})); got["n1"] != 200 {
		t.Errorf("answers %v, though the node with the taint was not asked about", got)
	}
}

// One step in rank outweighs all that our kube-scheduler profile leaves on.
func TestScoreStep(t *testing.T) {
	if rankStep*10 <= 900 {
		t.Errorf("a step of %d counts %d", rankStep, rankStep*10)
	}
}

func TestScoreOfUnknownNodes(t *testing.T) {
	c := loaded()
	r := pod("a", whole(1))
	got := answers(c.Score(&r, []gpu.NodeID{"a-stranger", "n3"}))
	if diff := cmp.Diff(map[gpu.NodeID]int64{"a-stranger": 100, "n3": 200}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if got := c.Score(&r, nil); len(got) != 0 {
		t.Errorf("answers %v to no question", got)
	}
}
