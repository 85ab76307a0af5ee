package ledger_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

func names(s ledger.Snapshot) []gpu.NodeID {
	var ids []gpu.NodeID
	for id, n := range s.Nodes() {
		if id != n.ID {
			panic("node " + n.ID + " under the name " + id)
		}
		ids = append(ids, id)
	}
	return ids
}

func TestSnapshotOrder(t *testing.T) {
	l := ledger.New(apart{})
	if s := l.Snapshot(); s.Len() != 0 || names(s) != nil {
		t.Error("an empty ledger has nodes")
	}
	for _, id := range []gpu.NodeID{"n2", "n10", "n1", "n3"} {
		l.SetNode(ledger.Facts{ID: id})
	}
	if diff := cmp.Diff([]gpu.NodeID{"n1", "n10", "n2", "n3"}, names(l.Snapshot())); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	l.RemoveNode("n3")
	s := l.Snapshot()
	if diff := cmp.Diff([]gpu.NodeID{"n1", "n10", "n2"}, names(s)); diff != "" || s.Len() != 3 {
		t.Errorf("nodes (-want +got), %d in all:\n%s", s.Len(), diff)
	}
	if _, ok := s.Node("n3"); ok {
		t.Error("a removed node is there")
	}
	for range s.Nodes() {
		break // leaving early is allowed
	}
}

func TestSnapshotZero(t *testing.T) {
	var s ledger.Snapshot
	if _, ok := s.Node("n1"); ok || s.Len() != 0 || names(s) != nil {
		t.Error("the zero snapshot has nodes")
	}
	if _, err := s.With(pod("p")); !errors.Is(err, ledger.ErrUnknownNode) {
		t.Errorf("With = %v, want %v", err, ledger.ErrUnknownNode)
	}
}

// A change replaces the node concerned and no other, and what is no change
// replaces nothing: the views of 5,000 nodes rely on that.
func TestSnapshotReplacesOnlyWhatChanged(t *testing.T) {
	p := pod("p", slice("a", 1, 0))
	tests := map[string]struct {
		do       func(l *ledger.Ledger)
		replaced bool
	}{
		"reserve":               {do: func(l *ledger.Ledger) { _ = l.Reserve(pod("q", slice("a", 1, 0))) }, replaced: true},
		"confirm":               {do: func(l *ledger.Ledger) { l.Confirm(pod("q")) }, replaced: true},
		"drain":                 {do: func(l *ledger.Ledger) { _ = l.Drain("p") }, replaced: true},
		"linger":                {do: func(l *ledger.Ledger) { l.Linger("p", start) }, replaced: true},
		"release":               {do: func(l *ledger.Ledger) { l.Release("p") }, replaced: true},
		"new facts":             {do: func(l *ledger.Ledger) { f := n1(); f.Unavailable = true; l.SetNode(f) }, replaced: true},
		"confirm again":         {do: func(l *ledger.Ledger) { l.Confirm(pod("p", slice("a", 1, 0))) }},
		"reserve again":         {do: func(l *ledger.Ledger) { _ = l.Reserve(p) }},
		"reserve refused":       {do: func(l *ledger.Ledger) { _ = l.Reserve(pod("q", whole("a"))) }},
		"unreserve of a bound":  {do: func(l *ledger.Ledger) { l.Unreserve("p") }},
		"release of nobody":     {do: func(l *ledger.Ledger) { l.Release("q") }},
		"the same facts":        {do: func(l *ledger.Ledger) { l.SetNode(n1()) }},
		"nothing":               {do: func(*ledger.Ledger) {}},
		"a node comes and goes": {do: func(l *ledger.Ledger) { l.SetNode(ledger.Facts{ID: "n0"}); l.Snapshot(); l.RemoveNode("n0") }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := world(t)
			l.Confirm(p)
			before := l.Snapshot()
			tc.do(l)
			after := l.Snapshot()
			if got := node(t, before, "n1") != node(t, after, "n1"); got != tc.replaced {
				t.Errorf("n1 replaced: %t, want %t", got, tc.replaced)
			}
			if node(t, before, "n2") != node(t, after, "n2") {
				t.Error("n2 replaced")
			}
		})
	}
}

func TestSnapshotOfUnchangedBooksCostsNothing(t *testing.T) {
	l := world(t, pod("p", slice("a", 1, 0)))
	if n := testing.AllocsPerRun(100, func() { l.Snapshot() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestWith(t *testing.T) {
	l := world(t, pod("o", slice("a", 60, 0)))
	s := l.Snapshot()
	frozen := freeze(s)

	first, err := s.With(pod("p", slice("a", 30, 0)))
	if err != nil {
		t.Fatal(err)
	}
	second, err := first.With(on("n2", pod("q", whole("e"))))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(books{"a": "o 60/0/1, p 30/0/1", "e": "q 100/100/1!"}, held(second)); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(books{"a": "o 60/0/1, p 30/0/1"}, held(first)); diff != "" {
		t.Errorf("held in the first plan (-want +got):\n%s", diff)
	}
	if n := node(t, second, "n1"); n.UsedCPU != 200 || n != node(t, first, "n1") {
		t.Errorf("n1 of the second plan uses %d mCPU and is the first plan's: %t", n.UsedCPU, n == node(t, first, "n1"))
	}
	if got := node(t, first, "n1").Holds[1].State; got != ledger.Held {
		t.Errorf("a planned hold is %s, want held", got)
	}
	if diff := cmp.Diff([]gpu.NodeID{"n1", "n2"}, names(second)); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if _, err := second.With(pod("r", slice("a", 1, 0))); !errors.Is(err, ledger.ErrNoRoom) {
		t.Errorf("With on what the plan has filled = %v, want %v", err, ledger.ErrNoRoom)
	}
	again, err := second.With(pod("p", slice("a", 30, 0)))
	if err != nil || node(t, again, "n1") != node(t, second, "n1") {
		t.Errorf("planning the same again = %v, or is a change", err)
	}
	if _, err := second.With(pod("p", slice("a", 31, 0))); !errors.Is(err, ledger.ErrHeldElsewhere) {
		t.Errorf("planning it otherwise = %v, want %v", err, ledger.ErrHeldElsewhere)
	}
	if freeze(s) != frozen || freeze(l.Snapshot()) != frozen {
		t.Error("a plan has changed the snapshot or the books")
	}
}

func TestWithout(t *testing.T) {
	l := world(t, pod("o", slice("a", 60, 0)), pod("p", whole("b")), on("n2", pod("q", whole("e"))))
	l.Confirm(foreign("x", gpu.Foreign{Vendor: gpu.Nvidia, Cards: 1}))
	s := l.Snapshot()
	frozen := freeze(s)
	tests := map[string]struct {
		node gpu.NodeID
		pods []gpu.PodID
		want books
	}{
		"nobody":           {node: "n1", want: held(s)},
		"a pod":            {node: "n1", pods: []gpu.PodID{"p"}, want: books{"a": "o 60/0/1", "c": "closed", "e": "q 100/100/1!"}},
		"a foreign pod":    {node: "n1", pods: []gpu.PodID{"x"}, want: books{"a": "o 60/0/1", "b": "p 100/100/1!", "e": "q 100/100/1!"}},
		"several":          {node: "n1", pods: []gpu.PodID{"x", "o", "p"}, want: books{"e": "q 100/100/1!"}},
		"a pod elsewhere":  {node: "n1", pods: []gpu.PodID{"q"}, want: held(s)},
		"a node not there": {node: "n3", pods: []gpu.PodID{"p"}, want: held(s)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := s.Without(tc.node, tc.pods...)
			if diff := cmp.Diff(tc.want, held(got)); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			if freeze(s) != frozen {
				t.Error("a plan has changed the snapshot")
			}
		})
	}
	t.Run("makes room", func(t *testing.T) {
		if _, err := s.With(pod("r", whole("b"))); !errors.Is(err, ledger.ErrNoRoom) {
			t.Errorf("With = %v, want %v", err, ledger.ErrNoRoom)
		}
		if _, err := s.Without("n1", "p").With(pod("r", whole("b"))); err != nil {
			t.Errorf("Without p: %v", err)
		}
	})
}
