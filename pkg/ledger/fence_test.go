package ledger_test

import (
	"errors"
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// A fenced card takes nobody new, whoever is on it stays, and it is open again
// when the next word does not name it.
func TestFence(t *testing.T) {
	first := pod("p1", slice("a", 10, 10))
	l := world(t, first)
	before := take(l.Snapshot())
	l.Fence(map[gpu.NodeID][]gpu.CardID{"n1": {"a"}, "elsewhere": {"x"}})

	second := pod("p2", slice("a", 10, 10))
	if err := l.Reserve(second); !errors.Is(err, ledger.ErrNoRoom) {
		t.Errorf("a fenced card: %v, want %v", err, ledger.ErrNoRoom)
	}
	if _, err := l.Snapshot().With(second); !errors.Is(err, ledger.ErrNoRoom) {
		t.Errorf("a plan with a fenced card: %v, want %v", err, ledger.ErrNoRoom)
	}
	if err := l.Reserve(first); err != nil {
		t.Errorf("who is there already: %v", err)
	}
	if err := l.Reserve(pod("p3", slice("b", 10, 10))); err != nil {
		t.Errorf("the card beside it: %v", err)
	}
	news := n1()
	news.Unavailable = true
	l.SetNode(news)
	if n := node(t, l.Snapshot(), "n1"); !n.Cards[0].Fenced || n.Cards[1].Fenced {
		t.Errorf("after other news of the node: %+v", n.Cards[:2])
	}
	if freeze(before.Snapshot) != before.text {
		t.Error("a snapshot has changed")
	}

	l.Fence(nil)
	if err := l.Reserve(second); err != nil {
		t.Errorf("after the fence: %v", err)
	}
}

// What has changed between two states is found, and nothing else.
func TestSince(t *testing.T) {
	l := world(t)
	first := l.Snapshot()
	changed := func(old ledger.Snapshot) (ids string) {
		for _, n := range l.Snapshot().Since(old) {
			ids += string(n.ID)
		}
		return ids
	}
	if got := changed(ledger.Snapshot{}); got != "n1n2" {
		t.Errorf("since the beginning: %q", got)
	}
	if got := changed(first); got != "" {
		t.Errorf("since nothing has happened: %q", got)
	}
	if err := l.Reserve(on("n2", pod("p", slice("e", 10, 10)))); err != nil {
		t.Fatal(err)
	}
	second := l.Snapshot()
	if got := changed(first); got != "n2" {
		t.Errorf("since a hold: %q", got)
	}
	l.SetNode(ledger.Facts{ID: "n11"})
	l.RemoveNode("n1")
	if got := changed(second); got != "n11" {
		t.Errorf("since nodes came and went: %q", got)
	}
}
