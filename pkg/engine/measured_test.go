package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// card is what is measured of the one card of n1.
func card(r gpu.Reading) ledger.Readings {
	return ledger.Readings{Cards: map[gpu.CardID]gpu.Reading{"n1-d0": r}}
}

// measures are readings under which n1, which has one card of 1000 MiB, takes no
// pod that asks for 600 MiB.
func measures() map[string]struct {
	loaded ledger.Readings
	reason gpu.Reason
	says   string
} {
	is := gpu.Measured
	return map[string]struct {
		loaded ledger.Readings
		reason gpu.Reason
		says   string
	}{
		"heat":              {card(gpu.Reading{Temperature: is(81)}), gpu.Overheated, "GPU temperature 81 °C, allowed below 79"},
		"utilisation":       {card(gpu.Reading{Utilisation: is(99)}), gpu.LoadThresholdExceeded, "GPU utilisation 99 percent, allowed below 95"},
		"memory of a card":  {card(gpu.Reading{MemoryUsed: is(960)}), gpu.InsufficientGPUMemory, "; 860 MiB there are used beyond what pods hold"},
		"CPU":               {ledger.Readings{CPU: is(93)}, gpu.LoadThresholdExceeded, "CPU of the node 93 percent, allowed below 90"},
		"memory":            {ledger.Readings{Memory: is(90)}, gpu.LoadThresholdExceeded, "memory of the node 90 percent, allowed below 90"},
		"a foreign process": {card(gpu.Reading{MemoryUsed: is(500)}), gpu.InsufficientGPUMemory, "500 of 600 MiB"},
	}
}

// A pod that what is measured keeps off waits, is told why, and is woken when the
// figure falls or is not known any more; not before, however the figure moves.
func TestWakesWhenTheLoadFalls(t *testing.T) {
	for name, tc := range measures() {
		for how, fallen := range map[string]ledger.Readings{
			"falls":            card(gpu.Reading{MemoryUsed: gpu.Measured(10), Temperature: gpu.Measured(40)}),
			"is not known now": {},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster(1)
					c.ledger.SetReadings("n1", tc.loaded)
					c.waits(t, "waiter", slice(600))
					r := pod("other", slice(600))
					out := c.Filter(&r, []gpu.NodeID{"n1"})
					if out.Reason != tc.reason || !strings.Contains(out.Summary.String(), tc.says) {
						t.Errorf("%s: %s; want %s: %s", out.Reason, out.Summary, tc.reason, tc.says)
					}
					c.Forget("other")
					c.wakes(t)
					time.Sleep(time.Minute)
					worse := tc.loaded
					worse.CPU = gpu.Measured(95)
					c.ledger.SetReadings("n1", worse)
					time.Sleep(time.Minute)
					c.ledger.SetReadings("n1", tc.loaded)
					time.Sleep(time.Minute)
					c.mustHaveWoken(t)

					c.ledger.SetReadings("n1", fallen)
					time.Sleep(time.Second)
					c.mustHaveWoken(t, "waiter")
					c.tries(t, "waiter", true)
				})
			})
		}
	}
}

// What has become loaded since the filter is refused by bind, with the same reason
// and the figure, and nothing is held then; when it is over the bind works.
func TestBindRefusesWhatIsLoadedByThen(t *testing.T) {
	for name, tc := range measures() {
		t.Run(name, func(t *testing.T) {
			c := newCluster(1)
			r := pod("a", slice(600))
			c.server.create(r)
			if f := c.Filter(&r, []gpu.NodeID{"n1"}); len(f.Feasible) != 1 {
				t.Fatalf("filtered: %+v", f)
			}
			c.ledger.SetReadings("n1", tc.loaded)
			_, err := c.Bind(t.Context(), target("a", "n1"))
			refusal := (*Refusal)(nil)
			if !errors.As(err, &refusal) || refusal.Reason != tc.reason || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("bind: %v, want %s: %s", err, tc.reason, tc.says)
			}
			if _, held := c.ledger.Hold("a"); held {
				t.Error("something is held")
			}
			c.ledger.SetReadings("n1", ledger.Readings{})
			if _, err := c.Bind(t.Context(), target("a", "n1")); err != nil {
				t.Error(err)
			}
		})
	}
}

// Telemetry makes all nodes others at once. Who fits one of them then is woken within
// a second, however many wait whom none of them fits.
func TestWakesAmongManyWhenAllIsMeasured(t *testing.T) {
	c, nodes := pool(100)
	for i := range 2000 {
		r := pod(fmt.Sprint("big", i), whole(9))
		c.Filter(&r, nodes)
	}
	heat := func(degrees int64) {
		for _, id := range nodes {
			n, _ := c.ledger.Snapshot().Node(id)
			r := ledger.Readings{Cards: map[gpu.CardID]gpu.Reading{}}
			for i := range n.Cards {
				r.Cards[n.Cards[i].ID] = gpu.Reading{Temperature: gpu.Measured(degrees)}
			}
			c.ledger.SetReadings(id, r)
		}
	}
	heat(90)
	small := pod("small", whole(1))
	if f := c.Filter(&small, nodes); f.Fit > 0 {
		t.Fatalf("filtered: %+v", f)
	}
	w := newWaker(&c.waiting, func(Target) bool { return true }, c.terms(c.ledger.Snapshot()))
	heat(40)
	for turn := 1; w.claims["small"] == nil; turn++ {
		w.next(c.ledger.Snapshot(), c.terms(c.ledger.Snapshot()), c.cfg.Now())
		if turn > int(time.Second/WakePeriod)-wakeGrace {
			t.Fatalf("not found in %d turns", turn)
		}
	}
}
