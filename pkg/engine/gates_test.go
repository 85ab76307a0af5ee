package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// One at a time for each key, and nobody waits for another key.
func TestGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gates[string]
		var mu sync.Mutex
		inside, most, done := map[string]int{}, map[string]int{}, 0
		count := func(key string, by int) {
			mu.Lock()
			defer mu.Unlock()
			inside[key] += by
			most[key] = max(most[key], inside[key])
			if by < 0 {
				done++
			}
		}
		began := time.Now()
		var all sync.WaitGroup
		for i := range 20 {
			key := []string{"a", "b"}[i%2]
			all.Go(func() {
				leave, err := g.enter(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				count(key, 1)
				time.Sleep(time.Second)
				count(key, -1)
				leave()
			})
		}
		all.Wait()
		if most["a"] != 1 || most["b"] != 1 || done != 20 {
			t.Errorf("at most %v at once, %d done", most, done)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("took %s: keys wait for each other", took)
		}
		if len(g.open) != 0 {
			t.Errorf("%d keys are left", len(g.open))
		}
	})
}

// Who gives up leaves nothing behind, and takes nobody's turn.
func TestGatesGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gates[string]
		leave, err := g.enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := g.enter(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("entered while somebody was in: %v", err)
		}
		if users := g.open["a"].users; users != 1 {
			t.Errorf("%d users, want the one inside", users)
		}
		leave()
		if len(g.open) != 0 {
			t.Errorf("%d keys are left", len(g.open))
		}
		again, err := g.enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		again()
	})
}
