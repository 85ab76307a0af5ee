package ledger_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// TestBurstAtALimit: of many that ask at once exactly as many are let in as fit,
// from whichever of a tenant's namespaces, while some come and go, and the rules
// are set anew under them.
func TestBurstAtALimit(t *testing.T) {
	const cards, askers, rounds = 40, 12, 20
	rules := written{
		owner:  map[string]gpu.TenantID{"b1": "blue", "b2": "blue", "b3": "blue"},
		limits: map[gpu.Account][]gpu.Limit{"tenant/blue": {cardsOf("Tenant blue", 17)}, "namespace/b1": {cardsOf("ResourceQuota b1/gpus", 5)}},
	}
	for range rounds {
		l := ledger.New(rules)
		l.SetNode(wide(cards))
		var in, full atomic.Int64
		var asking sync.WaitGroup
		for i := range askers {
			asking.Go(func() { ask(t, l, rules, i, cards, &in, &full) })
		}
		asking.Wait()
		s := l.Snapshot()
		if in.Load() != 17 || in.Load()+full.Load() != askers*cards {
			t.Fatalf("%d have been let in and %d refused, want 17 and the others", in.Load(), full.Load())
		}
		devices := gpu.Limit{Measure: gpu.Devices}
		if blue, b1 := devices.Of(s.Spent("tenant/blue")), devices.Of(s.Spent("namespace/b1")); blue != 17 || b1 > 5 {
			t.Fatalf("blue is charged for %d, b1 for %d, want 17 and no more than 5", blue, b1)
		}
	}
}

// ask asks for every card once, one of its tenant's three namespaces each time.
func ask(t *testing.T, l *ledger.Ledger, rules ledger.Rules, asker, cards int, in, full *atomic.Int64) {
	for j := range cards {
		id := gpu.PodID(fmt.Sprintf("p%d-%d", asker, j))
		p := pod(id, slice(gpu.CardID(fmt.Sprintf("w%d", (asker+j)%cards)), 1, 0))
		p.Namespace = []string{"b1", "b2", "b3"}[(asker+j)%3]
		switch err := l.Reserve(p); {
		case err == nil && j%5 == 0: // gives it back, and tries again
			l.Confirm(p)
			l.Release(id)
			if l.Reserve(p) == nil {
				in.Add(1)
			} else {
				full.Add(1)
			}
		case err == nil:
			in.Add(1)
		case errors.Is(err, ledger.ErrQuota):
			full.Add(1)
		default:
			t.Errorf("Reserve = %v", err)
		}
		if j%10 == asker%10 {
			l.Govern(rules)
			l.Snapshot()
		}
	}
}

// wide is a node with so many cards that nobody is refused for want of room.
func wide(cards int) ledger.Facts {
	f := ledger.Facts{ID: "n1"}
	for i := range cards {
		c := card(gpu.CardID(fmt.Sprintf("w%d", i)), i, gpu.Nvidia)
		c.MaxSlices = 20
		f.Cards = append(f.Cards, c)
	}
	return f
}
