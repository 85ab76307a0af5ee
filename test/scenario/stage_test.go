package scenario

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestEachAtItsTime: work that takes long makes no other late.
func TestEachAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{tasks: []Task{{Name: "a"}, {Name: "b", At: time.Second}, {Name: "c", At: time.Second}, {Name: "d", At: time.Minute}}}
		begin := time.Now().Add(10 * time.Second)
		var mu sync.Mutex
		at := map[string]time.Duration{}
		err := s.each(t.Context(), begin, func(_ context.Context, task *Task) error {
			mu.Lock()
			at[task.Name] = time.Since(begin)
			mu.Unlock()
			time.Sleep(5 * time.Second)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]time.Duration{"a": 0, "b": time.Second, "c": time.Second, "d": time.Minute}, at); diff != "" {
			t.Errorf("when (-want +got):\n%s", diff)
		}
	})
}

func TestEachEndsWithTheFirstFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{tasks: []Task{{Name: "a"}, {Name: "b", At: time.Hour}}}
		fault := errors.New("no room for a")
		err := s.each(t.Context(), time.Now(), func(context.Context, *Task) error { return fault })
		if !errors.Is(err, fault) {
			t.Errorf("each = %v, want %v", err, fault)
		}
	})
}

// TestClimate: a node that was hot while the cluster filled does not count; what
// comes after does, for as long as it lasts.
func TestClimate(t *testing.T) {
	s := &stage{plan: small, heat: NewHeat(row), tally: newTally(row)}
	c := climate{stage: s, gauges: &Gauges{floor: row}, begin: begin, last: begin}
	s.tally.Ask(&Task{Name: "a", Busy: 1}, begin)
	s.tally.See(bound("a", perRack, 100, 0, 1, 2, 3, 4, 5, 6, 7), begin)
	// 44 of a hot rack, and 34 of what runs: 78 in the end.
	for c.last.Sub(begin) < small.Fill-time.Second {
		c.step(c.last.Add(time.Second))
	}
	if diff := cmp.Diff(Outcome{}, c.outcome()); diff != "" {
		t.Errorf("while it fills (-want +got):\n%s", diff)
	}
	s.heat.cards[perRack][0] = 90
	c.step(begin.Add(small.Fill))
	o := c.outcome()
	// A minute on, each card is e^-0.2 as far from where it tends to.
	near(t, "the card", o.Card, 78+12*0.8187)
	if o.Throttled != 1 {
		t.Errorf("%.2f card-minutes above, want the one", o.Throttled)
	}
	if want := 8.0 / float64(row.Cards()); o.Held != want {
		t.Errorf("%.4f of the cards held, want %.4f", o.Held, want)
	}
	if o.Node < 75 || o.Node > o.Card {
		t.Errorf("the hottest node is at %.1f", o.Node)
	}
}
