package preempt

import (
	"fmt"
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
)

func ofKind(i int) *Asker {
	return &Asker{Request: gpu.Request{Namespace: fmt.Sprint("n", i), Asks: []gpu.Ask{{Count: 1, Whole: true}}}}
}

// However many kinds of Askers wait, so many are remembered and no more: those that
// came first keep what is known, as long as they wait, and give way when they do not.
func TestMemoryIsBounded(t *testing.T) {
	var m memory
	w := &World{Policy: "default"}
	known := map[int]*kind{}
	for round := range 3 {
		for i := range mostKinds + 100 {
			k := m.of(w, ofKind(i))
			if round == 0 && i < mostKinds {
				known[i] = k
			}
			if k != known[i] {
				t.Fatalf("kind %d in round %d is remembered anew", i, round)
			}
		}
		if len(m.kinds) != mostKinds {
			t.Fatalf("%d kinds are remembered, want %d", len(m.kinds), mostKinds)
		}
	}
	for range idle {
		m.of(w, ofKind(0))
	}
	if m.of(w, ofKind(mostKinds)) == nil {
		t.Error("nothing gives way to who waits, though nobody else does")
	}
	if m.of(w, ofKind(0)) != known[0] || len(m.kinds) != mostKinds {
		t.Error("who waits had to give way")
	}
}

// Pods are alike if nothing but who they are tells them apart, and not if anything does
// that a plan depends on.
func TestKeys(t *testing.T) {
	base := ofKind(0)
	change := func(f func(*Asker)) string {
		a := *base
		f(&a)
		return keyOf(&a, 3)
	}
	for name, key := range map[string]string{
		"the same":      change(func(a *Asker) { a.Pod, a.Name, a.Lineage = "u", "p", "l" }),
		"another group": change(func(a *Asker) { a.Group = "g" }),
	} {
		if same := name == "the same"; (key == keyOf(base, 3)) != same {
			t.Errorf("%s: %s", name, key)
		}
	}
	for name, key := range map[string]string{
		"priority":  change(func(a *Asker) { a.Priority = 1 }),
		"namespace": change(func(a *Asker) { a.Namespace = "other" }),
		"asks":      change(func(a *Asker) { a.Asks = []gpu.Ask{{Count: 2, Whole: true}} }),
		"cpu":       change(func(a *Asker) { a.CPU = 1 }),
		"nodes":     keyOf(base, 4),
	} {
		if key == keyOf(base, 3) {
			t.Errorf("another %s, the same key", name)
		}
	}
	if a, b := change(func(a *Asker) { a.Group = "g" }), change(func(a *Asker) { a.Group = "h" }); a != b {
		t.Error("which group it is makes a difference")
	}
}
