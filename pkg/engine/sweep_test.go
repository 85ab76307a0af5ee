package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"heteroflow.io/heteroflow/pkg/ledger"
)

// A bind whose outcome nobody could read leaves a hold. When its pod is never
// bound again the sweep ends it, if the pod is not bound; it takes nothing from
// one that is, and ends nothing while the API server does not say.
func TestSweepSettlesWhatNobodyConfirms(t *testing.T) {
	tests := map[string]struct {
		how  behaviour
		back time.Duration // when the API server answers again
		held bool          // after five minutes
	}{
		"it did not happen":                 {losesRequest, 20 * time.Second, false},
		"it happened":                       {losesAnswer, 20 * time.Second, true},
		"it did not, and nobody can say so": {losesRequest, time.Hour, true},
		"it did not, which is learnt late":  {losesRequest, 200 * time.Second, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(1)
				c.server.create(pod("a", whole(1)))
				c.server.next = []behaviour{tc.how}
				c.server.set(true)
				time.AfterFunc(tc.back, func() { c.server.set(false) })
				if _, err := c.Bind(t.Context(), target("a", "n1")); !errors.Is(err, ErrUnknown) {
					t.Fatalf("bind = %v, want the outcome to be unknown", err)
				}
				stop := c.sweeps(t)
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				stop()
				if h, ok := c.ledger.Hold("a"); ok != tc.held || ok && h.State != ledger.Held {
					t.Errorf("held %t (%s), want %t", ok, h.State, tc.held)
				}
				c.mustLeaveNoGate(t)
			})
		})
	}
}

// A hold that is new, or that a bind is working on, is not looked up.
func TestSweepLeavesBindsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		c.server.create(pod("a", whole(1)))
		c.server.busy = make(chan struct{}) // the Binding is on its way
		bound := make(chan error)
		go func() {
			_, err := c.Bind(t.Context(), target("a", "n1"))
			bound <- err
		}()
		stop := c.sweeps(t)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := c.server.asked(); n != 0 {
			t.Errorf("%d reads of a pod that is being bound", n)
		}
		c.server.busy <- struct{}{}
		if err := <-bound; err != nil {
			t.Fatal(err)
		}
		stop()
		c.server.mustAgree(t, c.ledger)
	})
}

// The hold of a bind that has just succeeded is not looked up: the informer is
// about to confirm it. Only when it does not for a whole period is the API server
// asked, and what is bound stays.
func TestSweepWaitsForTheInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		c.server.create(pod("a", whole(1)))
		stop := c.sweeps(t)
		time.Sleep(29 * time.Second)
		if _, err := c.Bind(t.Context(), target("a", "n1")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second) // a sweep has come by a second after the bind
		synctest.Wait()
		if n := c.server.asked(); n != 0 {
			t.Errorf("%d reads before a period had passed", n)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		stop()
		if n := c.server.asked(); n != 1 {
			t.Errorf("%d reads after one, want 1", n)
		}
		c.server.mustAgree(t, c.ledger)
	})
}

// sweeps runs the sweep every half minute until stop is called.
func (c *cluster) sweeps(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Run(ctx, 30*time.Second) }()
	return func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want %v", err, context.Canceled)
		}
	}
}
