package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// measures tells what was measured of the first card of a node.
func (c cluster) measures(node gpu.NodeID, r gpu.Reading) {
	c.ledger.SetReadings(node, ledger.Readings{Cards: map[gpu.CardID]gpu.Reading{gpu.CardID(node + "-d0"): r}})
}

func degrees(v int64) gpu.Reading    { return gpu.Reading{Temperature: gpu.Measured(v)} }
func memoryUsed(v int64) gpu.Reading { return gpu.Reading{MemoryUsed: gpu.Measured(v)} }

// A pod's own memory is not in the way of the next, and when the pod ends neither is
// what was measured of it.
func TestMemoryOfPodsIsNobodyElses(t *testing.T) {
	c := newCluster(1)
	c.takes(t, "a", "n1", slice(400))
	c.measures("n1", memoryUsed(500)) // its own, and of what is kept back
	c.waits(t, "too-big", slice(501))
	c.takes(t, "b", "n1", slice(500))
	c.measures("n1", memoryUsed(940))
	c.ends("b")
	c.takes(t, "c", "n1", slice(500)) // though nothing has been measured since
	c.server.mustNotOversell(t, 900)
}

// Memory that others use is given to nobody, however many pods come before the first
// of them uses any of its own.
func TestMemoryOfOthersIsNotGivenAway(t *testing.T) {
	c := newCluster(1)
	used := memoryUsed(400) // of 1000, of which 100 are kept back
	used.Temperature = gpu.Measured(40)
	c.measures("n1", used)
	c.waits(t, "too-big", slice(601))
	c.takes(t, "a", "n1", slice(300))
	c.takes(t, "b", "n1", slice(300))
	c.waits(t, "c", slice(1))
	c.ends("a")
	c.waits(t, "d", slice(301)) // though nothing has been measured since
	c.measures("n1", memoryUsed(100))
	c.takes(t, "e", "n1", slice(600))
}

// What was measured is told in the pod's event, of the node that comes nearest.
func TestLoadInTheEvent(t *testing.T) {
	c := newCluster(1, 1, 1, 1)
	c.measures("n1", degrees(91))
	c.measures("n2", degrees(80))
	c.ledger.SetReadings("n3", ledger.Readings{CPU: gpu.Measured(93)})
	c.measures("n4", memoryUsed(1000))
	r := pod("a", whole(1))
	f := c.Filter(&r, []gpu.NodeID{"n1", "n2", "n3", "n4"})
	want := "0/4 nodes: 2 LoadThresholdExceeded (lowest: CPU of the node 93 percent, allowed below 90 on n3), " +
		"2 Overheated (lowest: GPU temperature 80 °C, allowed below 79 on n2)"
	if diff := cmp.Diff(want, f.Summary.String()); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

// Whatever is held and measured, what the filter lets through the bind takes where
// nothing happens in between, by the same verdict, and an engine that remembers
// answers as one that does not.
func TestFilterAndBindGoByTheSameMeasures(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := newCluster(2, 1)
	asks := []gpu.Ask{whole(1), whole(2), slice(100), slice(500), {Count: 1, Whole: true, Memory: 900}, {Count: 1, Cores: 50}}
	bound, on := 0, []string{}
	for step := range 1500 {
		node := gpu.NodeID(fmt.Sprintf("n%d", 1+random.IntN(2)))
		c.ledger.SetReadings(node, someReadings(random, node))
		if len(on) > random.IntN(5) {
			k := random.IntN(len(on))
			c.ends(on[k])
			on = slices.Delete(on, k, k+1)
		}
		r := pod(fmt.Sprintf("p%d", step), asks[random.IntN(len(asks))])
		c.server.create(r)
		f := c.Filter(&r, []gpu.NodeID{node})
		if diff := cmp.Diff(New(c.cfg).Filter(&r, []gpu.NodeID{node}), f); diff != "" {
			t.Fatalf("step %d (-fresh +remembering):\n%s", step, diff)
		}
		_, err := c.Bind(t.Context(), target(string(r.Pod), node))
		switch {
		case (err == nil) != (f.Fit == 1):
			t.Fatalf("step %d: fits %d nodes, Bind = %v", step, f.Fit, err)
		case err == nil:
			bound++
			on = append(on, r.Name)
			c.mustBeCool(t, r.Pod)
		default:
			var refused *Refusal
			if v := f.Refused[0].Verdict; !errors.As(err, &refused) || refused.Reason != v.Reason || refused.Detail != fmt.Sprintf("node %s no longer fits%s", node, figures(v)) {
				t.Fatalf("step %d: refused with %+v, Bind = %v", step, v, err)
			}
			c.server.remove(r.Name)
		}
	}
	if bound < 100 {
		t.Errorf("%d pods were bound: the test tries nothing", bound)
	}
}

// mustBeCool looks at the pod's cards as they were measured, with nobody's help.
func (c cluster) mustBeCool(t *testing.T, pod gpu.PodID) {
	t.Helper()
	h, _ := c.ledger.Hold(pod)
	n, _ := c.ledger.Snapshot().Node(h.Node)
	if n.Readings.CPU.AtLeast(90) || n.Readings.Memory.AtLeast(90) {
		t.Errorf("%s is on %s, of which %+v was measured", pod, n.ID, n.Readings)
	}
	for _, u := range h.Uses() {
		for i := range n.Cards {
			r := n.Cards[i].Reading
			if n.Cards[i].ID == u.Card && (r.Temperature.AtLeast(79) || r.Utilisation.AtLeast(95) || r.MemoryUsed.AtLeast(950)) {
				t.Errorf("%s is on %s, of which %+v was measured", pod, u.Card, r)
			}
		}
	}
}

func someReadings(random *rand.Rand, node gpu.NodeID) ledger.Readings {
	some := func(of ...int64) gpu.Figure {
		if random.IntN(3) > 0 {
			return gpu.Figure{}
		}
		return gpu.Measured(of[random.IntN(len(of))])
	}
	r := ledger.Readings{CPU: some(0, 50, 89, 90), Memory: some(10, 80, 95), Cards: map[gpu.CardID]gpu.Reading{}}
	for i := range 2 {
		r.Cards[gpu.CardID(fmt.Sprintf("%s-d%d", node, i))] = gpu.Reading{
			Temperature: some(40, 78, 79, 90), Utilisation: some(0, 94, 95), MemoryUsed: some(0, 100, 300, 600, 949, 950),
		}
	}
	return r
}
