package window

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/window"
)

// night is a service, and what it is like while its windows are closed and when they have
// opened again.
type night struct {
	rule              func(*v1alpha1.TaskGroup)
	is, during, after window.State
}

func nights() map[string]night {
	pause, stop := dayNight(v1alpha1.TaskGroupPause), dayNight(v1alpha1.TaskGroupStop)
	return map[string]night{
		"pause":                 {pause, scaled(7), scaled(0), scaled(7)},
		"pause, HPA":            {pause, withHPA(7, 3, 10), withHPA(0, 3, 10), withHPA(7, 3, 10)},
		"pause, HPA from 0":     {pause, withHPA(7, 0, 10), withHPA(0, 1, 10), withHPA(7, 0, 10)},
		"pause, KEDA":           {pause, withKEDA(7, ""), withKEDA(0, "0"), withKEDA(7, "")},
		"pause, KEDA held at 7": {pause, withKEDA(7, "7"), withKEDA(0, "0"), withKEDA(7, "7")},
		"scale":                 {scaledTo(2), scaled(7), scaled(2), scaled(7)},
		"scale, HPA":            {scaledTo(2), withHPA(7, 3, 10), withHPA(2, 2, 2), withHPA(7, 3, 10)},
		"scale, KEDA":           {scaledTo(2), withKEDA(7, ""), withKEDA(2, "2"), withKEDA(7, "")},
		"scale up":              {scaledTo(9), withHPA(7, 3, 8), withHPA(9, 9, 9), withHPA(7, 3, 8)},
		"stop":                  {stop, scaled(7), scaled(0), scaled(0)},
		"stop, HPA":             {stop, withHPA(7, 3, 10), withHPA(0, 3, 10), withHPA(0, 3, 10)},
		"stop, KEDA":            {stop, withKEDA(7, ""), withKEDA(0, "0"), withKEDA(0, "0")},
	}
}

// begin is a world with the service awake.
func (n *night) begin() *world {
	w := newWorld()
	w.feeds["chat"] = "chat"
	w.target("chat", n.is)
	w.group("chat", of("chat"), n.rule)
	return w
}

// A service goes to sleep when its windows close, and is as it was when they open.
func TestNight(t *testing.T) {
	for name, tc := range nights() {
		t.Run(name, func(t *testing.T) {
			w := tc.begin()
			c := w.leader()
			live := func(d time.Duration) {
				for until := w.now().Add(d); w.now().Before(until); {
					w.run(c, 15*time.Second)
					w.autoscale()
				}
			}
			check := func(when string, want window.State) {
				t.Helper()
				if diff := cmp.Diff(want, w.is("chat")); diff != "" {
					t.Errorf("%s (-want +got):\n%s", when, diff)
				}
			}
			live(time.Minute)
			check("by day", tc.is)
			if len(w.writes) != 1 { // the status
				t.Errorf("by day it writes %v", w.writes)
			}
			w.at(c, closed().Add(-time.Second))
			check("a second before", tc.is)
			w.at(c, closed())
			check("when it closes", tc.during)
			live(5 * time.Minute)
			check("by night", tc.during)
			if s := w.status("chat"); s.Action == nil || s.Action.Phase != "Acted" {
				t.Errorf("action = %+v", s.Action)
			}
			w.at(c, opened().Add(-time.Second))
			check("a second before it opens", tc.during)
			w.at(c, opened())
			check("when it opens", tc.after)
			live(5 * time.Minute)
			check("by day again", tc.after)
			state := "InWindow"
			if tc.after.Replicas == 0 {
				state = "StayedStopped"
			}
			if s := w.status("chat"); s.Action != nil || s.Kept != nil || s.State != state {
				t.Errorf("status = %+v, want %s", s, state)
			}
			if g := w.groups["chat"]; len(g.Finalizers) != 0 {
				t.Errorf("finalizers = %v", g.Finalizers)
			}
			writes := len(w.writes)
			live(10 * time.Minute)
			if len(w.writes) != writes {
				t.Errorf("it goes on writing: %v", w.writes[writes:])
			}
		})
	}
}

// The image and what is kept are written in one update, before anything else is; with a
// finalizer before it.
func TestImageComesFirst(t *testing.T) {
	n := nights()["pause, HPA from 0"]
	w := n.begin()
	c := w.leader()
	w.run(c, time.Second)
	w.writes = nil
	w.strike = func(at string) {
		if s := w.status("chat"); at == "before replicas" && (s.Action == nil || s.Action.Before.Replicas != 7 || len(s.Kept.Members) != 7) {
			t.Errorf("%s the status is %+v", at, s)
		}
	}
	w.at(c, closed())
	if diff := cmp.Diff([]string{"finalizers", "status", "replicas", "hpa", "status"}, w.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// Whoever leads may die before or after any write, and another takes over: the service
// sleeps in the end, and is exactly as it was when it wakes.
func TestLeaderDiesAtEachStep(t *testing.T) {
	for name, tc := range nights() {
		t.Run(name, func(t *testing.T) {
			for death := 1; ; death++ {
				w := tc.begin()
				c := w.leader()
				steps, at := 0, ""
				w.strike = func(where string) {
					if steps++; steps == death {
						at = where
						panic(struck{where})
					}
				}
				through := func(to time.Time) {
					w.at(c, to)
					for range 12 { // a minute and a half, in which others act
						if at != "" {
							c = w.leader()
						}
						w.at(c, w.now().Add(10*time.Second))
						w.autoscale()
					}
				}
				through(start())
				through(closed())
				if diff := cmp.Diff(tc.during, w.is("chat")); diff != "" {
					t.Fatalf("by night, death %d %s (-want +got):\n%s", death, at, diff)
				}
				through(opened())
				if diff := cmp.Diff(tc.after, w.is("chat")); diff != "" {
					t.Fatalf("by day, death %d %s (-want +got):\n%s", death, at, diff)
				}
				if s := w.status("chat"); s.Action != nil || len(w.groups["chat"].Finalizers) > 0 {
					t.Fatalf("death %d %s: left behind: %+v", death, at, s.Action)
				}
				if at == "" {
					if death < 15 {
						t.Errorf("%d steps only", death)
					}
					return
				}
			}
		})
	}
}

// Whatever changes between what is read and what is written is not overwritten: the pass
// begins anew, and the end is the same.
func TestConflictAtEachWrite(t *testing.T) {
	for name, tc := range nights() {
		t.Run(name, func(t *testing.T) {
			for turn := 1; ; turn++ {
				w := tc.begin()
				c := w.leader()
				writes, met := 0, false
				w.meddle = func(string) string {
					if writes++; writes == turn {
						met = true
						return "chat"
					}
					return ""
				}
				w.at(c, start())
				w.at(c, closed())
				if diff := cmp.Diff(tc.during, w.is("chat")); diff != "" {
					t.Fatalf("by night, turn %d (-want +got):\n%s", turn, diff)
				}
				w.at(c, closed().Add(2*time.Minute))
				w.at(c, opened())
				w.at(c, opened().Add(time.Minute))
				if diff := cmp.Diff(tc.after, w.is("chat")); diff != "" {
					t.Fatalf("by day, turn %d (-want +got):\n%s", turn, diff)
				}
				if failed := strings.Contains(strings.Join(w.told, "\n"), ReasonStepFailed); failed {
					t.Fatalf("turn %d: told %v", turn, w.told)
				}
				if !met {
					return
				}
			}
		})
	}
}

// What the status says, from the day to the next.
func TestStatusOfANight(t *testing.T) {
	n := nights()["pause, HPA"]
	w := n.begin()
	c := w.leader()
	got := []string{}
	say := func(at time.Time) {
		w.at(c, at)
		s := w.status("chat")
		next, kept := "", ""
		if s.Next != nil {
			next = fmt.Sprintf("%s [%d cards, until %v, %s]", s.Next.Text, s.Next.Cards, s.Next.Until != nil, s.Next.TimeZone)
		}
		if s.Kept != nil {
			kept = fmt.Sprintf("; kept: %d from %s", len(s.Kept.Members), s.Kept.From.UTC().Format("15:04"))
		}
		got = append(got, fmt.Sprintf("%s %s, %d members, %d cards, %s%s", at.Format("15:04"), s.State, s.Members, s.Cards, next, kept))
	}
	say(start())
	say(closed())
	say(closed().Add(time.Minute))
	say(opened())
	say(opened().Add(time.Minute))
	want := []string{
		"12:00 InWindow, 7 members, 7 cards, closes Mon 30 Nov 22:00 CET, frees 7 cards [7 cards, until true, Europe/Berlin]",
		"21:00 Paused, 0 members, 0 cards, opens Tue 1 Dec 08:00 CET, takes back 7 cards [7 cards, until false, Europe/Berlin]; kept: 7 from 07:00",
		"21:01 Paused, 0 members, 0 cards, opens Tue 1 Dec 08:00 CET, takes back 7 cards [7 cards, until false, Europe/Berlin]; kept: 7 from 07:00",
		"07:00 Restored, 7 members, 7 cards, closes Tue 1 Dec 22:00 CET, frees 7 cards [7 cards, until true, Europe/Berlin]",
		"07:01 InWindow, 7 members, 7 cards, closes Tue 1 Dec 22:00 CET, frees 7 cards [7 cards, until true, Europe/Berlin]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	told := []string{
		"chat Normal Paused: outside its windows: paused from 7 replicas",
		"chat Normal Restored: restored to 7 replicas, HorizontalPodAutoscaler 3..10",
	}
	if diff := cmp.Diff(told, w.told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{0, 0}, w.lags); diff != "" {
		t.Errorf("lags (-want +got):\n%s", diff)
	}
}
