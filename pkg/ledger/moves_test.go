package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// TestMoves walks the whole table of states and events through the exported
// methods. "=" means that the state is as before.
func TestMoves(t *testing.T) {
	p := pod("p", slice("a", 60, 0))
	reach := map[string]func(l *ledger.Ledger){
		"none":     func(*ledger.Ledger) {},
		"held":     func(l *ledger.Ledger) { _ = l.Reserve(p) },
		"bound":    func(l *ledger.Ledger) { l.Confirm(p) },
		"draining": func(l *ledger.Ledger) { l.Confirm(p); _ = l.Drain("p") },
		"lingering": func(l *ledger.Ledger) {
			l.Confirm(p)
			l.Linger("p", start.Add(time.Minute))
		},
		"claimed": func(l *ledger.Ledger) { _ = l.Claim(p, nil) },
	}
	events := map[string]func(l *ledger.Ledger) error{
		"reserve":      func(l *ledger.Ledger) error { return l.Reserve(p) },
		"reserve else": func(l *ledger.Ledger) error { return l.Reserve(pod("p", slice("b", 60, 0))) },
		"unreserve":    func(l *ledger.Ledger) error { l.Unreserve("p"); return nil },
		"confirm":      func(l *ledger.Ledger) error { l.Confirm(p); return nil },
		"drain":        func(l *ledger.Ledger) error { return l.Drain("p") },
		"linger":       func(l *ledger.Ledger) error { l.Linger("p", start.Add(time.Minute)); return nil },
		"release":      func(l *ledger.Ledger) error { l.Release("p"); return nil },
		"expire early": func(l *ledger.Ledger) error { l.Expire(start.Add(time.Minute - 1)); return nil },
		"expire":       func(l *ledger.Ledger) error { l.Expire(start.Add(time.Minute)); return nil },
		"claim":        func(l *ledger.Ledger) error { return l.Claim(p, nil) },
		"unclaim":      func(l *ledger.Ledger) error { l.Unclaim("p"); return nil },
	}
	type to struct {
		state string
		err   error
	}
	same, illegal, elsewhere := to{state: "="}, to{"=", ledger.ErrIllegal}, to{"=", ledger.ErrHeldElsewhere}
	tests := map[string]map[string]to{
		"none": {
			"reserve": {state: "held"}, "reserve else": {state: "held"}, "unreserve": same, "confirm": {state: "bound"}, "drain": illegal,
			"linger": same, "release": same, "expire early": same, "expire": same,
			"claim": {state: "claimed"}, "unclaim": same,
		},
		"held": {
			"reserve": same, "reserve else": elsewhere, "unreserve": {state: "none"}, "confirm": {state: "bound"}, "drain": illegal,
			"linger": {state: "lingering"}, "release": {state: "none"}, "expire early": same, "expire": same,
			"claim": {state: "held"}, "unclaim": same,
		},
		"claimed": {
			"reserve": {state: "held"}, "reserve else": {state: "held"}, "unreserve": same, "confirm": {state: "bound"}, "drain": illegal,
			"linger": {state: "none"}, "release": {state: "none"}, "expire early": same, "expire": same,
			"claim": same, "unclaim": {state: "none"},
		},
		"bound": {
			"reserve": same, "reserve else": elsewhere, "unreserve": same, "confirm": same, "drain": {state: "draining"},
			"linger": {state: "lingering"}, "release": {state: "none"}, "expire early": same, "expire": same,
			"claim": illegal, "unclaim": same,
		},
		"draining": {
			"reserve": same, "reserve else": elsewhere, "unreserve": same, "confirm": same, "drain": same,
			"linger": {state: "lingering"}, "release": {state: "none"}, "expire early": same, "expire": same,
			"claim": illegal, "unclaim": same,
		},
		"lingering": {
			"reserve": illegal, "reserve else": illegal, "unreserve": same, "confirm": {state: "bound"}, "drain": illegal,
			"linger": same, "release": {state: "none"}, "expire early": same, "expire": {state: "none"},
			"claim": illegal, "unclaim": same,
		},
	}
	for from, row := range tests {
		if len(row) != len(events) {
			t.Errorf("%s: %d events in the table, want %d", from, len(row), len(events))
		}
		for event, want := range row {
			t.Run(from+"/"+event, func(t *testing.T) {
				l := world(t)
				reach[from](l)
				before := l.Snapshot()
				if got := state(l, "p"); got != from {
					t.Fatalf("state before = %s", got)
				}
				if err := events[event](l); !errors.Is(err, want.err) {
					t.Errorf("error = %v, want %v", err, want.err)
				}
				if want.state == "=" {
					want.state = from
					if diff := cmp.Diff(freeze(before), freeze(l.Snapshot())); diff != "" {
						t.Errorf("a move that is none has changed the books:\n%s", diff)
					}
				}
				if got := state(l, "p"); got != want.state {
					t.Errorf("state = %s, want %s", got, want.state)
				}
				if _, counts := held(l.Snapshot())["a"]; counts != (want.state != "none") && event != "reserve else" {
					t.Errorf("counts on its card: %t in state %s", counts, want.state)
				}
			})
		}
	}
}

func TestStateNames(t *testing.T) {
	got := []string{ledger.Held.String(), ledger.Bound.String(), ledger.Draining.String(), ledger.Lingering.String(), ledger.Claimed.String(), ledger.State(9).String()}
	if diff := cmp.Diff([]string{"held", "bound", "draining", "lingering", "claimed", "State(9)"}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestConfirm(t *testing.T) {
	tests := map[string]struct {
		before []gpu.Placement
		so     []gpu.Placement
		want   books
	}{
		"adopts a pod never heard of": {so: []gpu.Placement{pod("p", whole("a"))}, want: books{"a": "p 100/100/1!"}},
		"replaces what was believed": {
			before: []gpu.Placement{pod("p", slice("a", 60, 0), slice("b", 60, 0))}, so: []gpu.Placement{pod("p", slice("b", 10, 0))},
			want: books{"b": "p 10/0/1"},
		},
		"frees the node it was believed to be on": {
			before: []gpu.Placement{pod("p", slice("a", 60, 0))}, so: []gpu.Placement{on("n2", pod("p", slice("e", 60, 0)))},
			want: books{"e": "p 60/0/1"},
		},
		"counts past what the card has": {
			before: []gpu.Placement{pod("o", slice("a", 60, 0))}, so: []gpu.Placement{pod("p", slice("a", 60, 0))},
			want: books{"a": "o 60/0/1, p 60/0/1"},
		},
		"counts beside an exclusive holder, and across tenants": {
			before: []gpu.Placement{pod("o", whole("a"))}, so: []gpu.Placement{of("u", pod("p", whole("a")))},
			want: books{"a": "o 100/100/1!, p 100/100/1!"},
		},
		"counts on the cards that are there, and takes one for that which is not": {
			so:   []gpu.Placement{pod("p", slice("a", 60, 0), slice("x", 60, 0))},
			want: books{"a": "p 60/0/1", "d": "closed"},
		},
		"counts once however often": {
			so:   []gpu.Placement{pod("p", slice("a", 60, 0)), pod("p", slice("a", 60, 0)), pod("p", slice("a", 60, 0))},
			want: books{"a": "p 60/0/1"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := world(t, tc.before...)
			for _, p := range tc.so {
				l.Confirm(p)
			}
			if diff := cmp.Diff(tc.want, held(l.Snapshot())); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			if got := state(l, "p"); got != "bound" {
				t.Errorf("state = %s, want bound", got)
			}
		})
	}
}

// A card that holds more than it has offers nothing, in no dimension, and what
// fits again once it has drained fits again.
func TestOverfullCardTakesNothing(t *testing.T) {
	l := world(t)
	for _, id := range []gpu.PodID{"o", "p", "q", "r"} {
		l.Confirm(pod(id, slice("a", 60, 60)))
	}
	c := &node(t, l.Snapshot(), "n1").Cards[0]
	if c.FreeMemory() != 0 || c.FreeCores() != 0 || c.FreeSlots() != 0 || c.Free() {
		t.Errorf("free: %d MiB, %d percent, %d slots, %t, want nothing", c.FreeMemory(), c.FreeCores(), c.FreeSlots(), c.Free())
	}
	for name, p := range map[string]gpu.Placement{
		"a slice": pod("s", slice("a", 1, 0)), "a slice without memory": pod("s", slice("a", 0, 0)), "a card": pod("s", whole("a")),
	} {
		if err := l.Reserve(p); !errors.Is(err, ledger.ErrNoRoom) {
			t.Errorf("%s: %v, want %v", name, err, ledger.ErrNoRoom)
		}
	}
	for _, id := range []gpu.PodID{"o", "p", "q"} {
		l.Release(id)
	}
	if err := l.Reserve(pod("s", slice("a", 30, 40))); err != nil {
		t.Errorf("after three have ended: %v", err)
	}
}

func TestFree(t *testing.T) {
	l := world(t, pod("o", slice("a", 60, 70)), pod("p", gpu.Share{Card: "b", Memory: 1, Exclusive: true}))
	l.Confirm(foreign("q", gpu.Foreign{Vendor: gpu.Ascend, Cards: 1}))
	type free struct {
		Memory gpu.MiB
		Cores  gpu.Cores
		Slots  int
		Free   bool
	}
	got := map[gpu.CardID]free{}
	for i := range node(t, l.Snapshot(), "n1").Cards {
		c := &node(t, l.Snapshot(), "n1").Cards[i]
		got[c.ID] = free{c.FreeMemory(), c.FreeCores(), c.FreeSlots(), c.Free()}
	}
	want := map[gpu.CardID]free{"a": {30, 30, 2, false}, "b": {}, "c": {90, 100, 3, true}, "d": {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("free (-want +got):\n%s", diff)
	}
}

func TestLinger(t *testing.T) {
	l := world(t, pod("o", slice("a", 1, 0)), pod("p", slice("b", 1, 0)), pod("q", slice("c", 1, 0)))
	l.Confirm(pod("p", slice("b", 1, 0)))
	l.Linger("q", start.Add(time.Minute))
	l.Linger("p", start)
	l.Linger("p", start.Add(time.Minute)) // the last call decides
	l.Linger("nobody", start)

	if got := l.Expire(start.Add(time.Minute - 1)); len(got) != 0 {
		t.Errorf("ended early: %v", got)
	}
	if diff := cmp.Diff([]gpu.PodID{"p", "q"}, l.Expire(start.Add(time.Minute))); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]gpu.PodID{"o"}, l.Pods()); diff != "" {
		t.Errorf("pods left (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(books{"a": "o 1/0/1"}, held(l.Snapshot())); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
}

func TestPods(t *testing.T) {
	l := world(t)
	want := []gpu.PodID{}
	for i := range 20 {
		id := gpu.PodID('a' + rune(i))
		want = append(want, id)
		l.Confirm(on([]gpu.NodeID{"n1", "n2", "n3"}[i%3], pod(id)))
	}
	if diff := cmp.Diff(want, l.Pods()); diff != "" {
		t.Errorf("pods, those on nodes not known included (-want +got):\n%s", diff)
	}
}

func TestHold(t *testing.T) {
	p := pod("p", slice("a", 60, 0))
	l := world(t, p)
	l.Linger("p", start)
	h, ok := l.Hold("p")
	if !ok || h.State != ledger.Lingering || !h.Until.Equal(start) {
		t.Errorf("Hold = %s until %s, %t", h.State, h.Until, ok)
	}
	if diff := cmp.Diff(p, h.Placement); diff != "" {
		t.Errorf("placement (-want +got):\n%s", diff)
	}
	l.Confirm(p)
	if h, _ := l.Hold("p"); !h.Until.IsZero() {
		t.Errorf("a bound pod ends at %s", h.Until)
	}
	if _, ok := l.Hold("nobody"); ok {
		t.Error("nobody holds something")
	}
}
