package window

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/window"
)

// A target as it may be when nobody has touched it: an autoscaler is content with it.
var awake = rapid.Custom(func(t *rapid.T) window.State {
	n := rapid.Int32Range(0, 9).Draw(t, "replicas")
	switch rapid.IntRange(0, 2).Draw(t, "autoscaler") {
	case 0:
		return scaled(n)
	case 1:
		least := rapid.Int32Range(0, min(n, 4)).Draw(t, "least")
		return withHPA(n, least, max(n, 1)+rapid.Int32Range(0, 3).Draw(t, "more"))
	}
	return withKEDA(n, "")
})

// An edit of a group: all but stop, which restores nothing.
var edits = rapid.Custom(func(t *rapid.T) func(*v1alpha1.TaskGroup) {
	target := of(rapid.SampledFrom([]string{"chat", "talk"}).Draw(t, "target"))
	rule := rapid.SampledFrom([]func(*v1alpha1.TaskGroup){
		dayNight(v1alpha1.TaskGroupPause), dayNight(v1alpha1.TaskGroupPause), scaledTo(2), scaledTo(12), always,
		func(g *v1alpha1.TaskGroup) {
			dayNight(v1alpha1.TaskGroupPause)(g)
			g.Spec.Windows[0].TimeZone = "Mars/Base"
		},
		func(g *v1alpha1.TaskGroup) { dayNight(v1alpha1.TaskGroupPause)(g); g.Spec.Windows[0].From = "23:00" },
	}).Draw(t, "rule")
	return func(g *v1alpha1.TaskGroup) {
		target(g)
		rule(g)
	}
})

// life is a world with two targets and up to two groups, in which anything happens but
// edits of the targets by hand.
type life struct {
	*world
	before map[string]window.State
	leader *Controller
	doom   int // how many writes the leader outlives; negative: all
	upset  int // before how many writes somebody changes what is written
	deaf   bool
}

func newLife(t *rapid.T) *life {
	l := &life{world: newWorld(), before: map[string]window.State{}, doom: -1, upset: -1}
	for _, name := range []string{"chat", "talk"} {
		l.before[name] = awake.Draw(t, name)
		l.feeds[name] = "one"
		l.target(name, l.before[name])
	}
	l.strike = func(at string) {
		if l.doom == 0 {
			panic(struck{at})
		}
		l.doom--
	}
	l.meddle = func(string) string {
		l.upset--
		return map[int]string{0: "chat", 1: "one", 2: "talk", 3: "two"}[l.upset]
	}
	l.refuse = func(string) error {
		if l.deaf {
			return fmt.Errorf("no answer")
		}
		return nil
	}
	l.leader = l.world.leader()
	return l
}

// round has the leader look, and another take over where it dies.
func (l *life) round() {
	if !l.lead(l.leader) {
		l.leader, l.doom = l.world.leader(), -1
	}
}

// pullBack is an HPA or KEDA that does once more what it had worked out before.
func (l *life) pullBack(t *rapid.T) {
	for name, g := range l.groups {
		r := g.Status.Action
		if r == nil || r.Phase == "Acted" || r.Tries < 1 || r.Tries > 2 || r.Written == nil {
			continue
		}
		o, age := l.targets[r.Target.Name], l.clock.Sub(r.Written.Time)
		if o == nil || o.uid != r.TargetUID || age < 0 || age > 40*time.Second || o.state.HPA == nil && o.state.KEDA == nil {
			continue
		}
		if r.Phase == "Restoring" && o.state.KEDA == nil {
			continue
		}
		o.state.Replicas, o.version = rapid.Int32Range(0, l.before[r.Target.Name].Replicas).Draw(t, name+" replicas"), l.next()
	}
}

// unknown returns a target that differs from what it was while no group has a record of
// it; "" if there is none.
func (l *life) unknown() string {
	for name, o := range l.targets {
		held := false
		for _, g := range l.groups {
			held = held || g.Status.Action != nil && g.Status.Action.TargetUID == o.uid
		}
		if !held && cmp.Diff(l.before[name], o.state) != "" {
			return name
		}
	}
	return ""
}

// Whatever happens but edits of a target by hand, whenever leaders die and wherever the
// clock is set: a target that differs from what it was is on record, and in the end each
// is exactly as it was.
func TestRandomLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLife(t)
		name := func() string { return rapid.SampledFrom([]string{"one", "two"}).Draw(t, "group") }
		pass := func(d time.Duration) {
			l.clock = l.clock.Add(d)
			l.round()
		}
		t.Repeat(map[string]func(*rapid.T){
			"a moment":              func(t *rapid.T) { pass(time.Duration(rapid.IntRange(0, 30).Draw(t, "seconds")) * time.Second) },
			"a minute":              func(*rapid.T) { pass(time.Minute) },
			"some hours":            func(t *rapid.T) { pass(time.Duration(rapid.IntRange(1, 24).Draw(t, "hours")) * time.Hour) },
			"the clock is set back": func(t *rapid.T) { pass(-time.Duration(rapid.IntRange(1, 24*60).Draw(t, "minutes")) * time.Minute) },
			"an edit":               func(t *rapid.T) { l.group(name(), edits.Draw(t, "edit")); l.round() },
			"an edit, not seen yet": func(t *rapid.T) {
				seen := l.seen.List()
				l.group(name(), edits.Draw(t, "edit"))
				if err := l.seen.Replace(seen, ""); err != nil {
					t.Fatal(err)
				}
				l.round()
			},
			"a deletion": func(*rapid.T) {
				if g := l.groups[name()]; g != nil && g.DeletionTimestamp == nil {
					l.remove(g.Name)
				}
			},
			"the cache learns":   func(*rapid.T) { l.see() },
			"the tenant changes": func(*rapid.T) { l.inactive = !l.inactive },
			"a target is made anew": func(t *rapid.T) {
				target := rapid.SampledFrom([]string{"chat", "talk"}).Draw(t, "target")
				l.before[target] = awake.Draw(t, "state")
				l.target(target, l.before[target])
			},
			"autoscalers act":    func(*rapid.T) { l.autoscale() },
			"one acts once more": l.pullBack,
			"doom":               func(t *rapid.T) { l.doom = rapid.IntRange(0, 12).Draw(t, "writes") },
			"others write too":   func(t *rapid.T) { l.upset = rapid.IntRange(0, 8).Draw(t, "writes") },
			"the API server":     func(*rapid.T) { l.deaf = !l.deaf },
			"another leads":      func(*rapid.T) { l.leader = l.world.leader() },
			"": func(t *rapid.T) {
				if target := l.unknown(); target != "" {
					t.Fatalf("%s is %+v, was %+v, and nobody knows", target, l.targets[target].state, l.before[target])
				}
			},
		})
		l.inactive, l.deaf, l.doom, l.upset = false, false, -1, -1
		for _, group := range []string{"one", "two"} {
			if g := l.groups[group]; g != nil && g.DeletionTimestamp == nil {
				l.remove(group)
			}
		}
		for range 20 {
			l.see()
			pass(time.Minute)
			l.autoscale()
		}
		for _, target := range []string{"chat", "talk"} {
			if diff := cmp.Diff(l.before[target], l.is(target)); diff != "" {
				t.Fatalf("%s in the end (-want +got):\n%s", target, diff)
			}
		}
		if len(l.groups) > 0 {
			t.Fatalf("left behind: %+v", l.groups)
		}
	})
}
