package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// A Binding that hangs is given up early enough for its outcome to be read back
// in the time that the caller waits.
func TestBindLeavesTimeToReadBack(t *testing.T) {
	for name, how := range map[string]behaviour{"it happened": hangsThenDone, "it did not": hangs} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(1)
				c.server.create(pod("a", whole(1)))
				c.server.next = []behaviour{how}
				ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
				defer stop()
				began := time.Now()
				_, err := c.Bind(ctx, target("a", "n1"))
				if (err == nil) != (how == hangsThenDone) {
					t.Errorf("error %v", err)
				}
				if took := time.Since(began); took != 5*time.Second {
					t.Errorf("took %s, want the 10 s less the 5 s of the read-back", took)
				}
				c.server.mustAgree(t, c.ledger)
			})
		})
	}
}

// It looks again and again, but not for ever, and finds what is there when the
// API server is back.
func TestBindReadsBackUntilAnswered(t *testing.T) {
	for name, tc := range map[string]struct {
		back  time.Duration
		found bool
		took  time.Duration
		reads int
	}{
		"back in time":  {2100 * time.Millisecond, true, 2500 * time.Millisecond, 6},
		"back too late": {time.Minute, false, 5 * time.Second, 11},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(1)
				c.server.create(pod("a", whole(1)))
				c.server.next = []behaviour{losesAnswer}
				c.server.set(true)
				time.AfterFunc(tc.back, func() { c.server.set(false) })
				began := time.Now()
				_, err := c.Bind(t.Context(), target("a", "n1"))
				if (err == nil) != tc.found {
					t.Errorf("error %v", err)
				}
				if took := time.Since(began); took != tc.took {
					t.Errorf("took %s, want %s", took, tc.took)
				}
				if c.server.reads > tc.reads {
					t.Errorf("%d reads, want at most %d", c.server.reads, tc.reads)
				}
				if h, _ := c.ledger.Hold("a"); h.State != ledger.Held {
					t.Errorf("the hold is %s, though the pod is bound", h.State)
				}
			})
		})
	}
}

// Without a pause of its own the search still makes one.
func TestBindNeverFloods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		c.server.create(pod("a", whole(1)))
		c.server.next = []behaviour{losesAnswer}
		c.server.set(true)
		c.Engine = New(Config{Ledger: c.ledger, Now: time.Now, Pipeline: c.cfg.Pipeline, Pods: c.server, Binder: c.server, Wait: time.Second, Readback: time.Second})
		_, _ = c.Bind(t.Context(), target("a", "n1"))
		if c.server.reads > 21 {
			t.Errorf("%d reads in a second", c.server.reads)
		}
	})
}

// kube-scheduler may give up on a bind and try the pod elsewhere while the first
// is still on its way.
func TestBindOfOnePodToTwoNodes(t *testing.T) {
	for name, how := range map[string]behaviour{
		"works": works, "refused": refuses, "answer lost": losesAnswer, "request lost": losesRequest,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(2, 2)
				c.server.create(pod("a", whole(1)))
				c.server.freeze()
				c.server.next = []behaviour{how}
				c.server.busy = make(chan struct{}, 2)
				errs := make(map[gpu.NodeID]error)
				var mu sync.Mutex
				var both sync.WaitGroup
				for _, n := range []gpu.NodeID{"n1", "n2"} {
					both.Go(func() {
						_, err := c.Bind(t.Context(), target("a", n))
						mu.Lock()
						defer mu.Unlock()
						errs[n] = err
					})
				}
				synctest.Wait() // one is at the API server, the other waits for it
				if c.server.binds != 1 || len(c.ledger.Pods()) != 1 {
					t.Errorf("%d Bindings on their way, %d holds", c.server.binds, len(c.ledger.Pods()))
				}
				c.server.busy <- struct{}{}
				c.server.busy <- struct{}{}
				both.Wait()
				bound := c.server.bound()
				if len(bound) != 1 {
					t.Fatalf("bound %v, %v", bound, errs)
				}
				for n, err := range errs {
					if (err == nil) != (bound["a"].Node == n) {
						t.Errorf("bind to %s: %v, but it is bound to %s", n, err, bound["a"].Node)
					}
				}
				c.server.mustAgree(t, c.ledger)
				c.mustLeaveNoGate(t)
			})
		})
	}
}

// Waiting for another bind of the pod, or of the node, has an end.
func TestBindWaitsAreBounded(t *testing.T) {
	for name, wait := range map[string]struct {
		enter func(cluster) (func(), error)
		left  []gpu.PodID
	}{
		"pod":  {func(c cluster) (func(), error) { return c.pods.enter(context.Background(), "a") }, nil},
		"node": {func(c cluster) (func(), error) { return c.nodes.enter(context.Background(), "n1") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(1)
				c.server.create(pod("a", whole(1)))
				leave, err := wait.enter(c)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				_, err = c.Bind(t.Context(), target("a", "n1"))
				var refusal *Refusal
				if !errors.As(err, &refusal) || refusal.Reason != gpu.BindConflict || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v, want BindConflict for want of time", err)
				}
				if took := time.Since(began); took != 5*time.Second {
					t.Errorf("waited %s, want 5 s", took)
				}
				ctx, stop := context.WithTimeout(t.Context(), time.Second)
				defer stop()
				began = time.Now()
				if _, err := c.Bind(ctx, target("a", "n1")); err == nil || time.Since(began) != time.Second {
					t.Errorf("the caller's time is shorter: %v after %s", err, time.Since(began))
				}
				leave()
				if _, err := c.Bind(t.Context(), target("a", "n1")); err != nil {
					t.Errorf("when it is free again: %v", err)
				}
				c.server.mustAgree(t, c.ledger)
				c.mustLeaveNoGate(t)
			})
		})
	}
}

// The node is free for others while the API server is asked.
func TestBindHoldsNoNodeWhileItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(2)
		c.server.create(pod("a", whole(1)))
		c.server.create(pod("b", whole(1)))
		c.server.busy = make(chan struct{})
		var both sync.WaitGroup
		for _, name := range []string{"a", "b"} {
			both.Go(func() {
				if _, err := c.Bind(t.Context(), target(name, "n1")); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if c.server.binds != 2 {
			t.Errorf("%d Bindings on their way, want both", c.server.binds)
		}
		close(c.server.busy)
		both.Wait()
		c.server.mustAgree(t, c.ledger)
	})
}
