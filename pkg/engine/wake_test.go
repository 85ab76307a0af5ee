package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/policy"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// wakes runs Wake until the test's bubble ends.
func (c cluster) wakes(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Wake(ctx, WakePeriod) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Wake = %v, want canceled", err)
		}
	})
}

// waits has kube-scheduler ask about a pod, which fits nowhere.
func (c cluster) waits(t *testing.T, name string, ask gpu.Ask) {
	t.Helper()
	r := pod(name, ask)
	c.server.create(r)
	c.tries(t, name, false)
}

// tries has kube-scheduler ask about a pod again.
func (c cluster) tries(t *testing.T, name string, fits bool) {
	t.Helper()
	c.server.mu.Lock()
	r := c.server.pods[key("ns", name)].Request
	c.server.mu.Unlock()
	var nodes []gpu.NodeID
	for id := range c.ledger.Snapshot().Nodes() {
		nodes = append(nodes, id)
	}
	if f := c.Filter(&r, nodes); (len(f.Feasible) > 0) != fits {
		t.Fatalf("pod %s fits %v", name, f.Feasible)
	}
}

// takes gives a pod the cards as a bind that has been confirmed would.
func (c cluster) takes(t *testing.T, name string, node gpu.NodeID, ask gpu.Ask) {
	t.Helper()
	c.server.create(pod(name, ask))
	if _, err := c.Bind(t.Context(), target(name, node)); err != nil {
		t.Fatal(err)
	}
	c.confirm()
}

// ends has a pod end, as nobody is told.
func (c cluster) ends(name string) {
	c.server.remove(name)
	c.ledger.Release(gpu.PodID(name))
}

// woken returns who has been touched, in order.
func (c cluster) woken() []string {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	return slices.Clone(c.server.touched)
}

func (c cluster) mustHaveWoken(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, c.woken()); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
}

// A hold that ends by itself is told by nobody: who waits for it is woken within
// a second, and once.
func TestWakesWhoFitsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		c.takes(t, "holder", "n1", whole(1))
		c.waits(t, "waiter", whole(1))
		c.waits(t, "too-big", whole(2))
		c.wakes(t)
		time.Sleep(time.Minute)
		c.mustHaveWoken(t)

		c.ends("holder")
		time.Sleep(time.Second)
		c.mustHaveWoken(t, "waiter@n1")
		time.Sleep(10 * time.Second)
		c.mustHaveWoken(t, "waiter@n1")
	})
}

// Kube-scheduler is told of most changes itself.
func TestWakesNobodyWhoComesByItself(t *testing.T) {
	for name, comes := range map[string]func(*testing.T, cluster){
		"and fits":    func(t *testing.T, c cluster) { c.tries(t, "waiter", true) },
		"and is gone": func(_ *testing.T, c cluster) { c.Forget("waiter") },
		"and is bound": func(t *testing.T, c cluster) {
			if _, err := c.Bind(t.Context(), target("waiter", "n1")); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(1)
				c.takes(t, "holder", "n1", whole(1))
				c.waits(t, "waiter", whole(1))
				c.wakes(t)
				time.Sleep(time.Minute)
				c.ends("holder")
				time.Sleep(300 * time.Millisecond)
				comes(t, c)
				time.Sleep(time.Minute)
				c.mustHaveWoken(t)
			})
		})
	}
}

// One card wakes one pod, the longest waiting. Were it not to come, for reasons
// of kube-scheduler's own, the next gets its turn, and the first is not woken
// again for the same.
func TestWakesOneForOneCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		c.takes(t, "holder", "n1", whole(1))
		for i := range 3 {
			c.waits(t, fmt.Sprintf("w%d", i), whole(1))
		}
		c.wakes(t)
		c.ends("holder")
		time.Sleep(10 * time.Second)
		c.mustHaveWoken(t, "w0@n1")
		time.Sleep(10 * time.Second)
		c.mustHaveWoken(t, "w0@n1", "w1@n1")
		time.Sleep(time.Hour)
		c.mustHaveWoken(t, "w0@n1", "w1@n1", "w2@n1")
	})
}

// A pod that is refused although a node seems to fit, since kube-scheduler does
// not offer that node, is not woken again before the node has changed.
func TestWakesOnceForAState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1, 1)
		c.takes(t, "holder", "n1", whole(1))
		c.takes(t, "other", "n2", whole(1))
		c.waits(t, "waiter", whole(1))
		c.wakes(t)
		c.ends("holder")
		refused := func() {
			r := pod("waiter", whole(1))
			c.Filter(&r, []gpu.NodeID{"n2"})
		}
		time.Sleep(time.Second)
		refused()
		time.Sleep(time.Hour)
		c.mustHaveWoken(t, "waiter@n1")

		c.takes(t, "small", "n1", slice(100))
		c.ends("small")
		time.Sleep(time.Second)
		c.mustHaveWoken(t, "waiter@n1", "waiter@n1")
	})
}

// Of many nodes kube-scheduler offers a sample. A pod that was not offered the
// node that fits is nominated for it.
func TestWakesWhoWasNotOfferedItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1, 1)
		c.takes(t, "holder", "n2", whole(1))
		r := pod("waiter", whole(1))
		c.server.create(r)
		c.wakes(t)
		c.Filter(&r, []gpu.NodeID{"n2"})
		time.Sleep(time.Second)
		c.mustHaveWoken(t, "waiter@n1")
		c.Filter(&r, []gpu.NodeID{"n2"}) // n1 has a taint, or the like
		time.Sleep(time.Hour)
		c.mustHaveWoken(t, "waiter@n1")
	})
}

// Another policy may allow what no node's change does.
func TestWakesWhenThePolicyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		var current atomic.Pointer[pipeline.Pipeline]
		current.Store(pipeline.New(pipeline.Config{Filters: []pipeline.Filter{nothing{}}}))
		c.Engine = New(Config{Ledger: c.ledger, Pods: c.server, Binder: c.server, Wait: time.Second, Readback: time.Second,
			Pipeline: current.Load})
		c.waits(t, "waiter", whole(1))
		c.wakes(t)
		time.Sleep(time.Minute)
		c.mustHaveWoken(t)
		current.Store(policy.Default().Pipeline(tenancy.Separate{}))
		time.Sleep(time.Second)
		c.mustHaveWoken(t, "waiter@n1")
	})
}

// nothing refuses every node.
type nothing struct{}

func (nothing) Name() string { return "nothing" }

func (nothing) Filter(*pipeline.Cycle, *pipeline.Candidate) pipeline.Verdict {
	return pipeline.Verdict{Reason: gpu.NodeUnavailable}
}

// Many that can be woken at once are woken at a bounded rate, and all of them.
func TestWakesAtABoundedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods = 200
		c := newCluster()
		for i := range pods {
			c.waits(t, fmt.Sprintf("w%03d", i), whole(1))
		}
		c.wakes(t)
		for i := range pods / 4 {
			id := gpu.NodeID(fmt.Sprintf("m%02d", i))
			c.ledger.SetNode(ledger.Facts{ID: id, Cards: cards(id, 4)})
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := len(c.woken()); n == 0 || n > 40 {
			t.Errorf("%d touches in two seconds, want some and at most 40", n)
		}
		time.Sleep(9 * time.Second)
		synctest.Wait()
		got := c.woken()
		slices.Sort(got)
		if n := len(slices.Compact(got)); n != pods {
			t.Errorf("%d of %d have been woken", n, pods)
		}
	})
}

// An API server that does not answer costs a touch, and nothing else.
func TestWakeOutlivesFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		c.takes(t, "holder", "n1", whole(1))
		c.waits(t, "waiter", whole(1))
		c.wakes(t)
		c.server.set(true)
		c.ends("holder")
		time.Sleep(time.Minute)
		c.server.set(false)
		c.takes(t, "small", "n1", slice(100))
		c.ends("small")
		time.Sleep(time.Second)
		c.mustHaveWoken(t, "waiter@n1")
	})
}
