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
		c.mustHaveWoken(t, "waiter")
		time.Sleep(10 * time.Second)
		c.mustHaveWoken(t, "waiter")
	})
}

// Nobody is woken, and no node nominated, by one who may not be the leader any
// more; what it would have done is done when it leads again.
func TestWakesNobodyWhileItDoesNotLead(t *testing.T) {
	tests := map[string]struct {
		beside int // nodes without cards
		done   history
	}{
		"a touch":      {0, history{Touched: []string{"waiter"}}},
		"a nomination": {shownWhole, history{Nominated: []string{"waiter@n1"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var leads atomic.Bool
				c := newCluster(append([]int{1}, make([]int, tc.beside)...)...)
				c.cfg.Leads = leads.Load
				c.takes(t, "holder", "n1", whole(1))
				c.waits(t, "waiter", whole(1))
				c.wakes(t)
				leads.Store(true)
				time.Sleep(time.Minute)
				c.ends("holder")
				time.Sleep(WakePeriod) // there is a claim by now
				leads.Store(false)
				time.Sleep(time.Minute)
				c.mustHaveNominated(t, history{})
				leads.Store(true)
				time.Sleep(time.Second)
				c.mustHaveNominated(t, tc.done)
			})
		})
	}
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

// One card wakes one pod, the longest waiting. Were it not to come in a moment,
// for reasons of kube-scheduler's own, the next gets its turn, and the first is
// not woken again for the same.
func TestWakesOneForOneCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		c.takes(t, "holder", "n1", whole(1))
		for i := range 3 {
			c.waits(t, fmt.Sprintf("w%d", i), whole(1))
		}
		c.wakes(t)
		c.ends("holder")
		time.Sleep(time.Second)
		c.mustHaveWoken(t, "w0")
		time.Sleep(2500 * time.Millisecond)
		c.mustHaveWoken(t, "w0", "w1")
		time.Sleep(time.Hour)
		c.mustHaveWoken(t, "w0", "w1", "w2")
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
		c.mustHaveWoken(t, "waiter")

		c.takes(t, "small", "n1", slice(100))
		c.ends("small")
		time.Sleep(time.Second)
		c.mustHaveWoken(t, "waiter", "waiter")
	})
}

// Of many nodes kube-scheduler offers a sample. A pod that was not offered the
// node that fits is woken once, for another.
func TestWakesWhoWasNotOfferedItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1, 1)
		c.takes(t, "holder", "n2", whole(1))
		r := pod("waiter", whole(1))
		c.server.create(r)
		c.wakes(t)
		time.Sleep(time.Minute) // nothing is new any more
		c.Filter(&r, []gpu.NodeID{"n2"})
		time.Sleep(time.Second)
		c.mustHaveWoken(t, "waiter")
		c.Filter(&r, []gpu.NodeID{"n2"}) // n1 has a taint, or the like
		time.Sleep(time.Hour)
		c.mustHaveWoken(t, "waiter")
	})
}

// Another policy may allow what no node's change does.
func TestWakesWhenThePolicyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		var current atomic.Pointer[pipeline.Pipeline]
		current.Store(pipeline.New(pipeline.Config{Filters: []pipeline.Filter{nothing{}}}))
		c.Engine = New(Config{Ledger: c.ledger, Now: time.Now, Pods: c.server, Binder: c.server, Wait: time.Second, Readback: time.Second,
			Pipeline: current.Load})
		c.waits(t, "waiter", whole(1))
		c.wakes(t)
		time.Sleep(time.Minute)
		c.mustHaveWoken(t)
		current.Store(policy.Default().Pipeline())
		time.Sleep(time.Second)
		c.mustHaveWoken(t, "waiter")
	})
}

// nothing refuses every node.
type nothing struct{}

func (nothing) Name() string { return "nothing" }

func (nothing) Filter(*pipeline.Cycle, *pipeline.Candidate) pipeline.Verdict {
	return pipeline.Verdict{Reason: gpu.NodeUnavailable}
}

// The room that a pod was to have may go to another who leaves as much.
func TestWakesForOtherRoomOfTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(2)
		c.takes(t, "holder", "n1", whole(2))
		c.waits(t, "first", whole(1))
		c.waits(t, "second", whole(1))
		c.wakes(t)
		c.ends("holder")
		time.Sleep(300 * time.Millisecond) // a card has been found for each
		if _, err := c.Bind(t.Context(), target("second", "n1")); err != nil {
			t.Fatal(err) // with the first card, which was the other's
		}
		time.Sleep(600 * time.Millisecond)
		c.mustHaveWoken(t, "first")
	})
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
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(c.woken()); n == 0 || n > 2*wakeErrands {
			t.Errorf("%d touches in a second, want some and at most %d", n, 2*wakeErrands)
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

// A touch that fails is done again.
func TestWakeOutlivesFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		c.takes(t, "holder", "n1", whole(1))
		c.waits(t, "waiter", whole(1))
		c.wakes(t)
		c.server.set(true)
		c.ends("holder")
		time.Sleep(time.Minute)
		c.mustHaveWoken(t)
		c.server.set(false)
		time.Sleep(time.Second)
		c.mustHaveWoken(t, "waiter")
	})
}

// Pods that are gone, or being deleted, or bound by somebody else, take nobody's
// place: the first touch, if it comes to one, is the last.
func TestWakesTheLiving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		c.takes(t, "holder", "n1", whole(1))
		for _, name := range []string{"gone", "dying", "taken", "living"} {
			c.waits(t, name, whole(1))
		}
		c.server.remove("gone")
		c.server.change("dying", func(p *Pod) { p.Gone = true })
		c.server.change("taken", func(p *Pod) { p.Node = "elsewhere" })
		c.wakes(t)
		c.ends("holder")
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if got := c.woken(); !slices.Contains(got, "living") {
			t.Errorf("woken %v, and not the one that waits", got)
		}
		if n := len(c.waiting.order); n != 1 {
			t.Errorf("%d are remembered, want the living one", n)
		}
	})
}

// A pod that kube-scheduler never brings, whatever room there is, is woken ever
// more seldom, and holds up nobody behind it. Nodes change all the time.
func TestWakesAreNotSpentInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(2)
		c.takes(t, "holder", "n1", whole(2))
		c.waits(t, "tainted", whole(1)) // a taint keeps it off n1
		c.waits(t, "living", whole(1))
		c.wakes(t)
		c.ends("holder")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !slices.Contains(c.woken(), "living") {
			t.Errorf("woken %v after five seconds", c.woken())
		}
		c.Forget("living")
		for range 360 { // an hour
			time.Sleep(10 * time.Second)
			c.takes(t, "passing", "n1", slice(100))
			c.ends("passing")
		}
		synctest.Wait()
		if n := len(c.woken()); n > 80 {
			t.Errorf("%d touches in an hour", n)
		}
	})
}

// Nodes whose processors or main memory are taken are kube-scheduler's to
// refuse: nobody is woken for them.
func TestWakesNobodyForANodeWithoutProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		c.takes(t, "holder", "n1", whole(1))
		r := pod("waiter", whole(1))
		r.CPU = 4000
		c.server.create(r)
		c.tries(t, "waiter", false)
		c.wakes(t)
		c.ledger.SetNode(ledger.Facts{ID: "n1", Cards: cards("n1", 1), CPU: 2000})
		c.ends("holder")
		time.Sleep(time.Minute)
		c.mustHaveWoken(t)
	})
}

// However many cannot be woken, those behind them get their turn.
func TestWakeReachesTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		for i := range 2000 {
			c.waits(t, fmt.Sprintf("big%04d", i), whole(9))
		}
		c.waits(t, "small", whole(1))
		c.wakes(t)
		for i := range 20 {
			id := gpu.NodeID(fmt.Sprintf("m%02d", i))
			c.ledger.SetNode(ledger.Facts{ID: id, Cards: cards(id, 1)})
		}
		time.Sleep(5 * time.Second)
		c.mustHaveWoken(t, "small")
	})
}
