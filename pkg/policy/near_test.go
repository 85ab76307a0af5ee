package policy

import (
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/tenancy"
	"heteroflow.io/heteroflow/pkg/topology"
)

// TestScoresThatDoNotLookAtPeers: what is remembered of a node's score is the same
// wherever members of the group are, with every plugin on; and with them it is
// complete.
func TestScoresThatDoNotLookAtPeers(t *testing.T) {
	s := Default()
	for i := range s.Plugins {
		s.Plugins[i].Enabled = true
	}
	pipe := s.Pipeline()
	l := ledger.New(tenancy.Separate{})
	for i, rack := range []string{"r1", "r1", "r2"} {
		l.SetNode(ledger.Facts{ID: gpu.NodeID(rune('a' + i)), Location: topology.Location{Zone: "z", Rack: rack}, RDMA: ledger.RDMA{Stated: true, Able: true}, CPU: 1000, Memory: 1000})
	}
	alone := l.Snapshot()
	l.Confirm(gpu.Placement{Pod: "member", Node: "b", Group: "g"})
	with := l.Snapshot()
	r := &gpu.Request{Group: "g", Asks: []gpu.Ask{{Container: "c", Count: 2, Whole: true}}}
	first, later := &pipeline.Cycle{Request: r, Peers: pipeline.PeersOf("g", alone)}, &pipeline.Cycle{Request: r, Peers: pipeline.PeersOf("g", with)}
	moved := false
	for id, n := range alone.Nodes() {
		before, after := pipe.Base(first, n, &pipeline.Scratch{}), pipe.Base(later, n, &pipeline.Scratch{})
		if before != after {
			t.Errorf("%s: %+v without members, %+v with", id, before, after)
		}
		total, _ := pipe.Rate(later, n)
		if got := pipe.Complete(later, n, before); got != total || pipe.Total(later, n, &pipeline.Scratch{}) != total {
			t.Errorf("%s: %v of what was remembered, %v at once", id, got, total)
		}
		moved = moved || total != pipe.Complete(first, n, before)
	}
	if !moved {
		t.Error("members change no score: nothing was tried")
	}
}
