package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// A burst for the same eight cards: exactly eight get one each.
func TestBindBurst(t *testing.T) {
	c := newCluster(8)
	var all sync.WaitGroup
	start := make(chan struct{})
	results := make(chan error, 50)
	for i := range 50 {
		name := fmt.Sprintf("p%d", i)
		c.server.create(pod(name, whole(1)))
		all.Go(func() {
			<-start
			_, err := c.Bind(t.Context(), target(name, "n1"))
			results <- err
		})
	}
	close(start)
	all.Wait()
	close(results)
	bound := 0
	for err := range results {
		var refusal *Refusal
		switch {
		case err == nil:
			bound++
		case !errors.As(err, &refusal) || refusal.Reason != gpu.InsufficientGPUCount:
			t.Errorf("error %v, want InsufficientGPUCount", err)
		}
	}
	if bound != 8 || len(c.server.bound()) != 8 {
		t.Errorf("%d binds succeeded, %d pods are bound, want 8", bound, len(c.server.bound()))
	}
	c.server.mustNotOversell(t, 900)
	c.server.mustAgree(t, c.ledger)
	c.mustLeaveNoGate(t)
}

// Many pods of all sizes on few cards, an API server that fails in every way,
// an informer that lags: whatever is bound is never more than there is, and
// when the API server is well again both books agree and all that fits is bound.
func TestBindStorm(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range 20 {
		synctest.Test(t, func(t *testing.T) { storm(t, rand.New(rand.NewPCG(seed, uint64(round)))) })
	}
}

func storm(t *testing.T, random *rand.Rand) {
	c := newCluster(3, 2, 1)
	nodes := []gpu.NodeID{"n1", "n2", "n3"}
	var names []string
	for i := range 24 {
		ask := slice(gpu.MiB(100 + 100*random.IntN(8)))
		if random.IntN(3) == 0 {
			ask = whole(1)
		}
		names = append(names, fmt.Sprintf("p%d", i))
		c.server.create(pod(names[i], ask))
	}
	c.server.freeze()
	for range 200 {
		c.server.next = append(c.server.next, behaviour(random.IntN(int(comesLate)+1)))
	}
	var all sync.WaitGroup
	for _, name := range names {
		tries := make([]gpu.NodeID, 4)
		for i := range tries {
			tries[i] = nodes[random.IntN(3)]
		}
		pause := time.Duration(random.IntN(2000)) * time.Millisecond
		all.Go(func() { // kube-scheduler has two binds of a pod on their way at times
			for _, n := range tries {
				all.Go(func() {
					ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
					defer stop()
					_, _ = c.Bind(ctx, target(name, n))
				})
				time.Sleep(pause)
			}
		})
	}
	all.Go(func() { // outages
		for range 5 {
			time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
			c.server.set(true)
			time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
			c.server.set(false)
			c.server.deliver()
			c.confirm()
			c.server.mustNotOversell(t, 900)
		}
	})
	all.Wait()
	c.server.next = nil
	for _, name := range names {
		for _, n := range nodes {
			_, _ = c.Bind(t.Context(), target(name, n))
		}
	}
	c.server.deliver()
	c.confirm()
	c.server.mustNotOversell(t, 900)
	c.server.mustAgree(t, c.ledger)
	c.mustLeaveNoGate(t)
	for _, name := range names {
		r := pod(name, c.server.pods["ns/"+name].Request.Asks...)
		if f := c.Filter(&r, nodes); c.server.pods["ns/"+name].Node == "" && len(f.Feasible) > 0 {
			t.Errorf("pod %s fits %v, but is not bound", name, f.Feasible)
		}
	}
}

// A Binding may arrive long after everybody has given it up. By then its cards
// may have been given back: it must not come to pass any more.
func TestBindingThatComesLate(t *testing.T) {
	for name, again := range map[string]Target{
		"the pod goes elsewhere": target("a", "n2"),
		"the pod comes again":    target("a", "n1"),
		"another takes the card": target("b", "n1"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(1, 1)
				c.server.create(pod("a", whole(1)))
				c.server.create(pod("b", whole(1)))
				c.server.next = []behaviour{comesLate}
				if _, err := c.Bind(t.Context(), target("a", "n1")); err == nil {
					t.Fatal("a Binding that has not arrived is taken for one that has")
				}
				if _, err := c.Bind(t.Context(), again); err != nil {
					t.Errorf("after it: %v", err)
				}
				c.server.deliver()
				c.server.mustNotOversell(t, 900)
				c.server.mustAgree(t, c.ledger)
			})
		})
	}
}
