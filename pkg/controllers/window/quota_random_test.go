package window

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// Windows of services that sleep by turns, by day and by night, or not at all.
var turns = rapid.Custom(func(t *rapid.T) func(*v1alpha1.TaskGroup) {
	stop := func(g *v1alpha1.TaskGroup) { opens("08:00", "22:00")(g); g.Spec.WindowAction = v1alpha1.TaskGroupStop }
	broken := func(g *v1alpha1.TaskGroup) { opens("08:00", "22:00")(g); g.Spec.Windows[0].TimeZone = "Mars/Base" }
	return rapid.SampledFrom([]func(*v1alpha1.TaskGroup){
		opens("08:00", "22:00"), opens("22:00", "08:00"), opens("08:00", "22:00"), opens("22:00", "08:00"),
		opens("12:00", "16:00"), opens("16:00", "12:00"), opens("09:00", "21:00"), scaledTo(2), always, stop, broken,
	}).Draw(t, "windows")
})

// tenants is a world in which four services of two tenants sleep by turns, and anything
// happens but that a clock is set back or a limit lowered.
type tenants struct {
	*world
	leader *Controller
	doom   int // how many writes the leader outlives; negative: all
	mute   int // after how many statuses one is written without an answer; negative: after none
	upset  int // before how many writes somebody changes what is written
	blind  bool
}

func newTenants(t *rapid.T) *tenants {
	x := &tenants{world: newWorld(), doom: -1, mute: -1, upset: -1}
	x.budget = budget{
		accounts: map[string][]gpu.Account{"ns": {"ns", "blue"}, "more": {"blue"}, "else": {"red"}},
		limits:   map[gpu.Account][]gpu.Limit{"ns": atMost(5), "blue": atMost(8), "red": atMost(4)},
	}
	for i, namespace := range []string{"ns", "ns", "more", "else"} {
		x.serve(fmt.Sprintf("s%d", i), rapid.Int32Range(1, 8).Draw(t, "replicas"), in(namespace), turns.Draw(t, "turn"))
	}
	x.strike = func(at string) {
		if x.doom == 0 {
			panic(struck{at})
		}
		x.doom--
	}
	x.meddle = func(string) string {
		x.upset--
		return map[int]string{0: "s0", 1: "s1", 2: "s2"}[x.upset]
	}
	x.refuse = func(at string) error {
		if x.blind && at == "read" {
			return apierrors.NewInternalError(fmt.Errorf("conversion webhook failed"))
		}
		return nil
	}
	x.elect()
	return x
}

// elect has another lead, who has waited until the cache has learned all.
func (x *tenants) elect() {
	x.see()
	x.leader, x.doom = x.world.leader(), -1
	x.leader.Client = mumbler{groupServer{x.world}, x}
}

// mumbler does not answer when it is mute.
type mumbler struct {
	groupServer
	*tenants
}

func (m mumbler) UpdateStatus(ctx context.Context, g *v1alpha1.TaskGroup) (*v1alpha1.TaskGroup, error) {
	out, err := m.groupServer.UpdateStatus(ctx, g)
	if m.mute--; m.mute == 0 && err == nil {
		return nil, apierrors.NewTimeoutError("no answer", 1)
	}
	return out, err
}

func (m mumbler) Get(ctx context.Context, namespace, name string) (*v1alpha1.TaskGroup, error) {
	return m.groupServer.Get(ctx, namespace, name)
}

func (m mumbler) SetFinalizers(ctx context.Context, g *v1alpha1.TaskGroup, f []string) (*v1alpha1.TaskGroup, error) {
	return m.groupServer.SetFinalizers(ctx, g, f)
}

// pass lets so much time pass, and the leader look; another takes over where it dies.
func (x *tenants) pass(d time.Duration) {
	x.clock = x.clock.Add(d)
	if !x.lead(x.leader) {
		x.elect()
	}
}

// over returns the account for which more is kept than it may have; "" if none is.
func (x *tenants) over() string {
	for _, account := range slices.Sorted(maps.Keys(x.budget.limits)) {
		sum, most := 0, x.budget.limits[account][0].Most
		for _, g := range x.groups {
			if k := g.Status.Kept; k != nil && k.From.After(x.clock) && slices.Contains(x.budget.accounts[g.Namespace], account) {
				sum += len(k.Members)
			}
		}
		if int64(sum) > most {
			return fmt.Sprintf("%s: %d kept of %d", account, sum, most)
		}
	}
	return ""
}

// Whatever happens and whenever leaders die, all that the sleeping services of an account
// keep never passes its limit.
func TestRandomTenants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newTenants(t)
		name := func() string { return rapid.SampledFrom([]string{"s0", "s1", "s2", "s3"}).Draw(t, "service") }
		t.Repeat(map[string]func(*rapid.T){
			"a moment": func(t *rapid.T) { x.pass(time.Duration(rapid.IntRange(0, 30).Draw(t, "seconds")) * time.Second) },
			"a minute": func(*rapid.T) { x.pass(time.Minute) },
			"until the next hour": func(*rapid.T) {
				x.pass(x.clock.Truncate(time.Hour).Add(time.Hour).Sub(x.clock))
			},
			"some hours": func(t *rapid.T) { x.pass(time.Duration(rapid.IntRange(1, 12).Draw(t, "hours")) * time.Hour) },
			"an edit":    func(t *rapid.T) { x.group(name(), turns.Draw(t, "edit")); x.pass(0) },
			"an edit, not seen yet": func(t *rapid.T) {
				seen := x.seen.List()
				x.group(name(), turns.Draw(t, "edit"))
				if err := x.seen.Replace(seen, ""); err != nil {
					t.Fatal(err)
				}
			},
			"a deletion": func(*rapid.T) {
				if g := x.groups[name()]; g != nil && g.DeletionTimestamp == nil {
					x.remove(g.Name)
				}
			},
			"one made anew": func(t *rapid.T) {
				if n := name(); x.groups[n] == nil {
					x.group(n, of(n), turns.Draw(t, "windows"))
				}
			},
			"a hand":             func(t *rapid.T) { x.edit(name(), withReplicas(rapid.Int32Range(0, 8).Draw(t, "replicas"))) },
			"the cache learns":   func(*rapid.T) { x.see() },
			"the tenant changes": func(*rapid.T) { x.inactive = !x.inactive },
			"targets are unread": func(*rapid.T) { x.blind = !x.blind },
			"no answer":          func(t *rapid.T) { x.mute = rapid.IntRange(1, 4).Draw(t, "statuses") },
			"doom":               func(t *rapid.T) { x.doom = rapid.IntRange(0, 12).Draw(t, "writes") },
			"others write too":   func(t *rapid.T) { x.upset = rapid.IntRange(1, 8).Draw(t, "writes") },
			"another leads":      func(*rapid.T) { x.elect() },
			"": func(t *rapid.T) {
				if over := x.over(); over != "" {
					t.Fatal(over)
				}
			},
		})
	})
}
