package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// goes returns the node that kube-scheduler would choose for the pod now.
func (c cluster) goes(t *testing.T, name string, ask gpu.Ask, nodes ...gpu.NodeID) gpu.NodeID {
	t.Helper()
	r := pod(name, ask)
	return c.sent(t, &r, nodes...)
}

func (c cluster) sent(t *testing.T, r *gpu.Request, nodes ...gpu.NodeID) gpu.NodeID {
	t.Helper()
	c.server.create(*r)
	feasible := c.Filter(r, nodes).Feasible
	switch len(feasible) {
	case 0:
		return ""
	case 1:
		return feasible[0] // and no score is asked for
	}
	scored := c.Score(r, feasible)
	return slices.MaxFunc(scored, func(a, b Scored) int { return int(a.Score - b.Score) }).Node
}

// A burst of equal pods whose binds have not arrived goes to as many nodes as it
// needs, and not all to the one that was best for the first.
func TestBurstDoesNotPileUp(t *testing.T) {
	for _, spreadOut := range []bool{true, false} {
		c := newCluster(2, 2, 2, 2)
		nodes := []gpu.NodeID{"n1", "n2", "n3", "n4"}
		ask := whole(1)
		if !spreadOut { // two a node by memory alone
			ask = slice(900)
		}
		on := map[gpu.NodeID]int{}
		for i := range 8 {
			on[c.goes(t, fmt.Sprint("p", i), ask, nodes...)]++
		}
		for _, id := range nodes {
			if on[id] != 2 {
				t.Errorf("pods on nodes: %v, want 2 on each", on)
				break
			}
		}
		if got := c.ledger.Pods(); len(got) != 0 {
			t.Errorf("the ledger holds cards for %v", got)
		}
	}
}

// When every bind has arrived no hint is left.
func TestHintsEndWithTheBind(t *testing.T) {
	c := newCluster(2, 2)
	for i := range 4 {
		name := fmt.Sprint("p", i)
		node := c.goes(t, name, whole(1), "n1", "n2")
		if _, err := c.Bind(t.Context(), target(name, node)); err != nil {
			t.Error(err)
		}
	}
	c.goes(t, "refused", whole(1), "n1", "n2")
	if n := len(c.hints.made); n != 0 {
		t.Errorf("%d hints are left", n)
	}
}

// A bind that is refused, or that never comes, frees what it was expected to
// take; so does the pod's end, or its being asked about anew.
func TestHintsEnd(t *testing.T) {
	ends := map[string]func(t *testing.T, c cluster){
		"refused": func(t *testing.T, c cluster) {
			c.server.next = []behaviour{refuses}
			if _, err := c.Bind(t.Context(), target("first", "n1")); err == nil {
				t.Error("the bind was not refused")
			}
		},
		"bound elsewhere": func(t *testing.T, c cluster) {
			if _, err := c.Bind(t.Context(), target("first", "n2")); err != nil {
				t.Error(err)
			}
		},
		"gone":                  func(_ *testing.T, c cluster) { c.Forget("first") },
		"time is up":            func(*testing.T, cluster) { time.Sleep(hintLife) },
		"no such pod":           func(t *testing.T, c cluster) { c.server.remove("first"); bindFails(t, c) },
		"asked about elsewhere": func(t *testing.T, c cluster) { c.goes(t, "first", whole(1), "n2") },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(1, 1, 1)
				if got := c.goes(t, "first", whole(1), "n1"); got != "n1" {
					t.Fatalf("goes to %s", got)
				}
				if got := c.goes(t, "second", whole(1), "n1", "n3"); got != "n3" {
					t.Errorf("is sent to %s, where the first is expected", got)
				}
				c.Forget("second")
				end(t, c)
				if got := c.goes(t, "third", whole(1), "n1", "n3"); got != "n1" {
					t.Errorf("is sent to %s, though nobody is expected on n1 any more", got)
				}
			})
		})
	}
}

func bindFails(t *testing.T, c cluster) {
	t.Helper()
	if _, err := c.Bind(t.Context(), target("first", "n1")); err == nil {
		t.Error("bound")
	}
}

// A hint alone keeps nobody waiting, whoever is expected: it is no hold.
func TestHintRefusesNobody(t *testing.T) {
	c := newCluster(1)
	for _, name := range []string{"first", "second", "third"} {
		if got := c.goes(t, name, whole(1), "n1"); got != "n1" {
			t.Errorf("%s is sent to %q", name, got)
		}
	}
	bound := 0
	for _, name := range []string{"third", "second", "first"} {
		if _, err := c.Bind(t.Context(), target(name, "n1")); err == nil {
			bound++
		}
	}
	if bound != 1 {
		t.Errorf("%d were bound to one card", bound)
	}
}

// What is refused for real keeps its reason: where pods are expected is none.
func TestHintIsNoReason(t *testing.T) {
	c := newCluster(1, 1)
	mustReserve(c, "earlier", "n2-d0")
	c.goes(t, "first", whole(1), "n1")
	r := pod("second", whole(2))
	got := c.Filter(&r, []gpu.NodeID{"n1", "n2"})
	if c := got.Summary.Counts[0]; c.Have != 1 || c.Best != "n1" {
		t.Errorf("counts %+v: the card that nobody has yet is not counted as free", c)
	}
}

func TestHintsAreBounded(t *testing.T) {
	perNode := make([]int, 2*mostHints)
	for i := range perNode {
		perNode[i] = 1
	}
	c := newCluster(perNode...)
	for i := range perNode {
		c.goes(t, fmt.Sprint("p", i), whole(1), gpu.NodeID(fmt.Sprint("n", i+1)))
	}
	if n := len(c.hints.made); n != mostHints {
		t.Errorf("%d hints, want %d", n, mostHints)
	}
}

// The pod that kube-scheduler served first has the last card, though the bind of
// another overtakes its own.
func TestBindGivesWay(t *testing.T) {
	tests := map[string]struct {
		first, second int32 // priorities
		cards         int
		comes         time.Duration // after which the first bind arrives; 0: never
		waits         time.Duration // the second does so long
		wins          bool          // the second gets a card
	}{
		"to a higher priority":                {first: 90, second: 10, cards: 1, comes: time.Second, waits: time.Second},
		"not when there is room for both":     {first: 90, second: 10, cards: 2, comes: time.Second, wins: true},
		"not to an equal one":                 {first: 50, second: 50, cards: 1, comes: time.Second, wins: true},
		"not to a lower one":                  {first: 10, second: 90, cards: 1, comes: time.Second, wins: true},
		"no longer than it can be on its way": {first: 90, second: 10, cards: 1, waits: hintLife, wins: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(tc.cards)
				first, second := pod("first", whole(1)), pod("second", whole(1))
				first.Priority, second.Priority = tc.first, tc.second
				c.sent(t, &first, "n1")
				c.sent(t, &second, "n1")
				if tc.comes > 0 {
					time.AfterFunc(tc.comes, func() { _, _ = c.Bind(context.Background(), target("first", "n1")) })
				}
				start := time.Now()
				_, err := c.Bind(t.Context(), target("second", "n1"))
				if waited := time.Since(start); waited != tc.waits {
					t.Errorf("waited %v, want %v", waited, tc.waits)
				}
				if (err == nil) != tc.wins {
					t.Errorf("bind of the second = %v, want success: %t", err, tc.wins)
				}
				time.Sleep(tc.comes)
				synctest.Wait()
				c.server.mustNotOversell(t, 900)
			})
		})
	}
}

// What could not be bound anyway is refused at once.
func TestBindOfWhatDoesNotFitGivesNoWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(2)
		first, second := pod("first", whole(1)), pod("second", whole(2))
		first.Priority = 90
		c.sent(t, &second, "n1")
		c.sent(t, &first, "n1")
		mustReserve(c, "third", "n1-d0")
		start := time.Now()
		_, err := c.Bind(t.Context(), target("second", "n1"))
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Reason != gpu.InsufficientGPUCount || time.Since(start) != 0 {
			t.Errorf("bind = %v after %v", err, time.Since(start))
		}
	})
}

// Neither a caller that gives up nor the longest wait allowed is passed over.
func TestGivingWayEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		c.cfg.Wait = 2 * time.Second
		c.Engine = New(c.cfg)
		first, second := pod("first", whole(1)), pod("second", whole(1))
		first.Priority = 90
		c.sent(t, &first, "n1")
		c.sent(t, &second, "n1")
		start := time.Now()
		if _, err := c.Bind(t.Context(), target("second", "n1")); err != nil || time.Since(start) != c.cfg.Wait*3/5 {
			t.Errorf("bind = %v after %v, want success after %v", err, time.Since(start), c.cfg.Wait*3/5)
		}
	})
}
