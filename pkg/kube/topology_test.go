package kube

import (
	"testing"

	"heteroflow.io/heteroflow/pkg/codec"
)

// A node whose topology cannot be read keeps its cards and is no inventory that
// cannot be read; once it can be, it counts.
func TestTopologyThatCannotBeRead(t *testing.T) {
	s := newShelf()
	for _, step := range []struct {
		text  string
		known bool
	}{{`{"links":[]}`, true}, {`{"links":[["GPU-a"]]}`, false}, {`{"links":[["GPU-a"]]}`, false}, {`{"links":[]}`, true}} {
		node := newNode("n1", devices)
		node.Annotations[codec.AnnotationTopology] = step.text
		s.NodeSeen(node)
		n, ok := s.Ledger.Snapshot().Node("n1")
		if !ok || len(n.Cards) == 0 || n.Links.Known() != step.known {
			t.Errorf("%s: %d cards, links known %t", step.text, len(n.Cards), n.Links.Known())
		}
	}
	if s.inventoryErrors != 0 {
		t.Errorf("%d inventories could not be read", s.inventoryErrors)
	}
	if s.topologyErrors != 1 { // told once until it changes
		t.Errorf("%d topologies could not be read, want 1", s.topologyErrors)
	}
}
