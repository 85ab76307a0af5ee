package engine

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// inACrowd has the nodes n1 and on with so many cards each, and enough without
// any that kube-scheduler looks at a part only.
func inACrowd(perNode ...int) cluster {
	c := newCluster(perNode...)
	for i := range shownWhole {
		c.ledger.SetNode(ledger.Facts{ID: gpu.NodeID(fmt.Sprintf("z%03d", i))})
	}
	return c
}

// misses has kube-scheduler ask about a pod with a sample that fits it nowhere.
func (c cluster) misses(t *testing.T, name string) {
	t.Helper()
	r := pod(name, whole(1))
	if f := c.Filter(&r, []gpu.NodeID{"z000", "z001"}); len(f.Feasible) > 0 {
		t.Fatalf("pod %s fits %v", name, f.Feasible)
	}
}

// comes has kube-scheduler ask about a pod's node alone.
func (c cluster) comes(t *testing.T, name string, node gpu.NodeID) {
	t.Helper()
	r := pod(name, whole(1))
	if f := c.Filter(&r, []gpu.NodeID{node}); len(f.Feasible) != 1 {
		t.Fatalf("pod %s does not fit %s", name, node)
	}
}

// waitsUnseen creates a pod and has its first sample miss.
func (c cluster) waitsUnseen(t *testing.T, name string) {
	t.Helper()
	c.server.create(pod(name, whole(1)))
	c.misses(t, name)
}

// history is what has been done about nominations.
type history struct{ Nominated, Withdrawn, Touched []string }

func (c cluster) mustHaveNominated(t *testing.T, want history) {
	t.Helper()
	synctest.Wait()
	c.server.mu.Lock()
	got := history{slices.Clone(c.server.nominated), slices.Clone(c.server.withdrawn), slices.Clone(c.server.touched)}
	c.server.mu.Unlock()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// edit changes what the API server knows.
func (c cluster) edit(change func(*apiServer)) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	change(c.server)
}

// A pod whose sample has left out the node that fits is pointed to it within a
// second, whether it comes again by itself before that or not.
func TestNominatesWhatWasNotOffered(t *testing.T) {
	tests := map[string]func(*testing.T, cluster){
		"at once":                  func(*testing.T, cluster) {},
		"missed by the next, too":  func(t *testing.T, c cluster) { time.Sleep(400 * time.Millisecond); c.misses(t, "waiter") },
		"a fault in between":       func(_ *testing.T, c cluster) { c.server.set(true); time.Sleep(3 * time.Second); c.server.set(false) },
		"a card goes, another not": func(t *testing.T, c cluster) { time.Sleep(300 * time.Millisecond); c.takes(t, "other", "n1", whole(1)) },
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := inACrowd(2)
				c.wakes(t)
				time.Sleep(time.Minute) // nothing is new any more
				c.waitsUnseen(t, "waiter")
				happens(t, c)
				time.Sleep(time.Second)
				c.comes(t, "waiter", "n1")
				time.Sleep(time.Hour)
				c.mustHaveNominated(t, history{Nominated: []string{"waiter@n1"}})
			})
		})
	}
}

// Room that appears later needs a nomination as much: the next sample may miss it.
func TestNominatesWhereRoomAppears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inACrowd(1)
		c.takes(t, "holder", "n1", whole(1))
		c.waits(t, "waiter", whole(1))
		c.wakes(t)
		time.Sleep(time.Minute)
		c.ends("holder")
		time.Sleep(time.Second)
		c.mustHaveNominated(t, history{Nominated: []string{"waiter@n1"}})
	})
}

// Kube-scheduler looks at all of 100 nodes: a touch does, and takes nothing from
// anybody.
func TestNominatesAboveAHundredNodesOnly(t *testing.T) {
	for nodes, want := range map[int]history{
		100: {Touched: []string{"waiter"}},
		101: {Nominated: []string{"waiter@n1"}},
	} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(1)
				for i := range nodes - 1 {
					c.ledger.SetNode(ledger.Facts{ID: gpu.NodeID(fmt.Sprintf("z%03d", i))})
				}
				c.wakes(t)
				c.waitsUnseen(t, "waiter")
				time.Sleep(time.Second)
				c.mustHaveNominated(t, want)
			})
		})
	}
}

// A node that kube-scheduler keeps the pod off is neither nominated nor worth a
// touch, however often the pod is refused; another that fits is.
func TestNominatesOnlyWhatSuits(t *testing.T) {
	for name, tc := range map[string]struct {
		unsuited []gpu.NodeID
		want     history
	}{
		"the second does": {[]gpu.NodeID{"n1"}, history{Nominated: []string{"waiter@n2"}}},
		"none does":       {[]gpu.NodeID{"n1", "n2"}, history{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := inACrowd(1, 1)
				for _, node := range tc.unsuited {
					c.server.unsuited[node] = true
				}
				c.wakes(t)
				c.waitsUnseen(t, "waiter")
				time.Sleep(time.Second)
				c.mustHaveNominated(t, tc.want)
			})
		})
	}
}

// A node that is cordoned, or gets a taint, after it was found is not nominated.
// Once it suits again the pod's next refusal brings it back.
func TestNominatesNothingThatSuitsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inACrowd(1)
		c.wakes(t)
		c.waitsUnseen(t, "waiter")
		time.Sleep(300 * time.Millisecond)
		c.edit(func(s *apiServer) { s.unsuited["n1"] = true })
		time.Sleep(time.Minute)
		c.misses(t, "waiter")
		time.Sleep(time.Minute)
		c.mustHaveNominated(t, history{})
		c.edit(func(s *apiServer) { s.unsuited["n1"] = false })
		c.misses(t, "waiter")
		time.Sleep(time.Second)
		c.mustHaveNominated(t, history{Nominated: []string{"waiter@n1"}})
	})
}

// A nomination may meet with an attempt that was under way, which ends it: it is
// made once more, before the back-off is over. After that it is known that the
// pod does not get this state of the node, and it is left alone.
func TestNominationThatMeetsAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inACrowd(1)
		c.wakes(t)
		c.waitsUnseen(t, "waiter")
		time.Sleep(900 * time.Millisecond)
		c.mustHaveNominated(t, history{Nominated: []string{"waiter@n1"}})
		c.misses(t, "waiter")
		time.Sleep(time.Second)
		both := []string{"waiter@n1", "waiter@n1"}
		c.mustHaveNominated(t, history{Nominated: both})
		for range 360 { // an hour
			c.misses(t, "waiter")
			time.Sleep(10 * time.Second)
		}
		c.mustHaveNominated(t, history{Nominated: both, Withdrawn: both[:1]})
	})
}

// A nomination that a refusal has not ended is taken back, and not made again.
func TestNominationsInVainAreTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inACrowd(1)
		c.wakes(t)
		c.waitsUnseen(t, "waiter")
		time.Sleep(1500 * time.Millisecond)
		for range 360 { // an hour
			c.misses(t, "waiter")
			time.Sleep(10 * time.Second)
		}
		c.mustHaveNominated(t, history{Nominated: []string{"waiter@n1"}, Withdrawn: []string{"waiter@n1"}})
	})
}

// What kube-scheduler has ended itself costs no write.
func TestNominationsThatEndByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inACrowd(1)
		c.wakes(t)
		c.waitsUnseen(t, "waiter")
		time.Sleep(time.Second)
		c.takes(t, "other", "n1", whole(1)) // nothing to nominate any more
		c.misses(t, "waiter")
		c.edit(func(s *apiServer) { s.nominees["waiter"] = "elsewhere" }) // as preemption does
		time.Sleep(time.Hour)
		c.mustHaveNominated(t, history{Nominated: []string{"waiter@n1"}})
	})
}

// A pod that does not come, as one in back-off, lets others have the room; its
// nomination outlasts the back-off, and no more than that.
func TestNominationOutlastsTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inACrowd(1)
		c.wakes(t)
		c.waitsUnseen(t, "sleeps")
		c.waitsUnseen(t, "next")
		time.Sleep(4 * time.Second)
		c.mustHaveNominated(t, history{Nominated: []string{"sleeps@n1", "next@n1"}})
		c.comes(t, "next", "n1")
		time.Sleep(7 * time.Second)
		c.mustHaveNominated(t, history{Nominated: []string{"sleeps@n1", "next@n1"}})
		time.Sleep(6 * time.Second)
		c.mustHaveNominated(t, history{Nominated: []string{"sleeps@n1", "next@n1"}, Withdrawn: []string{"sleeps@n1"}})
	})
}

// Room that nobody is on the way to comes first.
func TestNominatesWhatNobodyIsOnTheWayTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inACrowd(1, 1)
		c.wakes(t)
		c.waitsUnseen(t, "sleeps")
		time.Sleep(4 * time.Second)
		c.waitsUnseen(t, "next")
		time.Sleep(time.Second)
		c.mustHaveNominated(t, history{Nominated: []string{"sleeps@n1", "next@n2"}})
	})
}

// A nomination keeps processors from pods of the same priority: while it lasts,
// nobody is pointed to the node who would find too few of them.
func TestNominationsDoNotBlockEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inACrowd()
		c.ledger.SetNode(ledger.Facts{ID: "n1", Cards: cards("n1", 2), CPU: 1500})
		c.wakes(t)
		for _, name := range []string{"sleeps", "next"} {
			r := pod(name, whole(1))
			r.CPU = 1000
			c.server.create(r)
			c.Filter(&r, []gpu.NodeID{"z000"})
		}
		time.Sleep(14 * time.Second)
		c.mustHaveNominated(t, history{Nominated: []string{"sleeps@n1"}})
		c.Forget("sleeps")
		r := pod("next", whole(1))
		r.CPU = 1000
		c.Filter(&r, []gpu.NodeID{"z000"})
		time.Sleep(2 * time.Second)
		c.mustHaveNominated(t, history{Nominated: []string{"sleeps@n1", "next@n1"}})
	})
}

// A withdrawal that fails is done again.
func TestWithdrawalOutlivesFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inACrowd(1)
		c.wakes(t)
		c.waitsUnseen(t, "waiter")
		time.Sleep(time.Second)
		c.server.set(true)
		c.misses(t, "waiter")
		c.takes(t, "other", "n1", whole(1)) // nothing to nominate any more
		time.Sleep(time.Minute)
		c.mustHaveNominated(t, history{Nominated: []string{"waiter@n1"}})
		c.server.set(false)
		time.Sleep(time.Second)
		c.mustHaveNominated(t, history{Nominated: []string{"waiter@n1"}, Withdrawn: []string{"waiter@n1"}})
	})
}

// A pod that has been bound or has gone meanwhile is forgotten.
func TestNominatesTheLiving(t *testing.T) {
	for name, happens := range map[string]func(cluster){
		"bound":   func(c cluster) { c.server.change("waiter", func(p *Pod) { p.Node = "elsewhere" }) },
		"gone":    func(c cluster) { c.server.remove("waiter") },
		"another": func(c cluster) { c.server.change("waiter", func(p *Pod) { p.Request.Pod = "new" }); c.Forget("waiter") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := inACrowd(1)
				c.waitsUnseen(t, "waiter")
				happens(c)
				c.wakes(t)
				time.Sleep(time.Minute)
				c.mustHaveNominated(t, history{})
				if n := len(c.waiting.order); n != 0 {
					t.Errorf("%d are remembered", n)
				}
			})
		})
	}
}

// Each of a crowd is pointed to room of its own, in one go.
func TestNominatesRoomForEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inACrowd(10, 10, 10, 10, 10)
		c.wakes(t)
		for i := range 60 {
			c.waitsUnseen(t, fmt.Sprintf("w%02d", i))
		}
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		perNode := map[string]int{}
		c.edit(func(s *apiServer) {
			for _, node := range s.nominees {
				perNode[node]++
			}
		})
		if diff := cmp.Diff(map[string]int{"n1": 10, "n2": 10, "n3": 10, "n4": 10, "n5": 10}, perNode); diff != "" {
			t.Errorf("nominations per node (-want +got):\n%s", diff)
		}
	})
}
