package window

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	kindlisters "heteroflow.io/heteroflow/pkg/generated/listers/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// budget is what an administrator has written. The zero value has no limits.
type budget struct {
	accounts map[string][]gpu.Account // namespace -> what it is charged to
	limits   map[gpu.Account][]gpu.Limit
}

var _ ledger.Budget = (*budget)(nil)

func (b *budget) Accounts(namespace string) []gpu.Account { return b.accounts[namespace] }
func (b *budget) Limits(a gpu.Account) []gpu.Limit        { return b.limits[a] }

// atMost is a limit of cards.
func atMost(n int64) []gpu.Limit {
	return []gpu.Limit{{Quota: "Tenant blue", Name: "cards", Measure: gpu.Devices, Most: n}}
}

// blue has the namespaces ns and more, and so many cards.
func blue(n int64) budget {
	return budget{
		accounts: map[string][]gpu.Account{"ns": {"blue"}, "more": {"blue"}, "else": {"red"}},
		limits:   map[gpu.Account][]gpu.Limit{"blue": atMost(n)},
	}
}

func TestFit(t *testing.T) {
	memory := func(most int64) []gpu.Limit {
		return []gpu.Limit{{Quota: "ResourceQuota ns/q", Name: "limits.nvidia.com/gpumem", Measure: gpu.Memory, Most: most}}
	}
	hygon := hold("h", "n1", "1")
	hygon.placement.Grants[0].Shares[0].Vendor = gpu.Hygon
	some := []holding{hold("a", "n0", "1", "2"), hold("b", "n0", "3", "4"), hold("c", "n0", "5")}
	two := map[string][]gpu.Account{"ns": {"ns", "blue"}, "more": {"blue"}, "side": {"ns"}, "else": {"red"}}
	tests := map[string]struct {
		budget budget
		others map[string]int // namespace -> how many cards of 1000 MiB are kept there
		all    []holding
		want   []string
		limit  string // the first that is in the way
	}{
		"no accounts":                       {budget{}, nil, some, []string{"a", "b", "c"}, ""},
		"no limits":                         {budget{accounts: two}, map[string]int{"more": 99}, some, []string{"a", "b", "c"}, ""},
		"all of it":                         {blue(5), nil, some, []string{"a", "b", "c"}, ""},
		"all but the last":                  {blue(4), nil, some, []string{"a", "b"}, "cards"},
		"what is small comes in the place":  {blue(3), nil, some, []string{"a", "c"}, "cards"},
		"nothing":                           {blue(0), nil, some, []string{}, "cards"},
		"beside others of the namespace":    {blue(8), map[string]int{"ns": 4}, some, []string{"a", "b"}, "cards"},
		"beside others of the tenant":       {blue(8), map[string]int{"ns": 2, "more": 4}, some, []string{"a"}, "cards"},
		"others keep all":                   {blue(8), map[string]int{"more": 8}, some, []string{}, "cards"},
		"others keep more, it was lowered":  {blue(8), map[string]int{"more": 80}, some, []string{}, "cards"},
		"other tenants":                     {blue(5), map[string]int{"else": 80, "nowhere": 80}, some, []string{"a", "b", "c"}, ""},
		"nothing was held":                  {blue(0), nil, nil, []string{}, ""},
		"the first account of two":          {budget{two, map[gpu.Account][]gpu.Limit{"ns": atMost(4)}}, map[string]int{"more": 80}, some, []string{"a", "b"}, "cards"},
		"the second account of two":         {budget{two, map[gpu.Account][]gpu.Limit{"blue": atMost(4)}}, map[string]int{"side": 80}, some, []string{"a", "b"}, "cards"},
		"each account with its own others":  {budget{two, map[gpu.Account][]gpu.Limit{"ns": atMost(9), "blue": atMost(9)}}, map[string]int{"side": 4, "more": 4}, some, []string{"a", "b", "c"}, ""},
		"both accounts, and one is short":   {budget{two, map[gpu.Account][]gpu.Limit{"ns": atMost(9), "blue": atMost(9)}}, map[string]int{"ns": 1, "more": 4}, some, []string{"a", "b"}, "cards"},
		"what one refuses costs no other":   {budget{two, map[gpu.Account][]gpu.Limit{"ns": memory(3000), "blue": atMost(3)}}, nil, some, []string{"a", "c"}, "limits.nvidia.com/gpumem"},
		"by memory":                         {budget{two, map[gpu.Account][]gpu.Limit{"ns": memory(2999)}}, nil, some, []string{"a"}, "limits.nvidia.com/gpumem"},
		"of one vendor alone":               {budget{two, map[gpu.Account][]gpu.Limit{"ns": {{Name: "nvidia", Measure: gpu.Devices, Vendor: gpu.Nvidia, Most: 2}}}}, nil, append(slices.Clone(some), hygon), []string{"a", "h"}, "nvidia"},
		"the second line of a quota counts": {budget{two, map[gpu.Account][]gpu.Limit{"ns": append(atMost(9), memory(4000)...)}}, nil, some, []string{"a", "b"}, "limits.nvidia.com/gpumem"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := fundsOf(&tc.budget, "ns")
			for namespace, n := range tc.others {
				f.charge(tc.budget.Accounts(namespace), gpu.Spending{{Vendor: gpu.Nvidia, Devices: int64(n), Memory: gpu.MiB(1000 * n)}})
			}
			paid, over := f.fit(tc.all)
			limit := ""
			if over != nil {
				limit = over.Name
			}
			if diff := cmp.Diff(tc.want, names(paid)); diff != "" || limit != tc.limit {
				t.Errorf("%q is in the way, want %q; kept (-want +got):\n%s", limit, tc.limit, diff)
			}
		})
	}
}

// opens has the windows be open from then to then in Berlin.
func opens(from, to string) func(*v1alpha1.TaskGroup) {
	return func(g *v1alpha1.TaskGroup) {
		dayNight(v1alpha1.TaskGroupPause)(g)
		g.Spec.Windows[0].From, g.Spec.Windows[0].To = from, to
	}
}

// in has the group be in another namespace.
func in(namespace string) func(*v1alpha1.TaskGroup) {
	return func(g *v1alpha1.TaskGroup) { g.Namespace = namespace }
}

// serve makes a service with so many members, a card each.
func (w *world) serve(name string, members int32, change ...func(*v1alpha1.TaskGroup)) {
	w.feeds[name] = name
	w.target(name, scaled(members))
	w.group(name, append([]func(*v1alpha1.TaskGroup){of(name)}, change...)...)
}

// keeping is for how many members each group keeps something.
func (w *world) keeping() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]int{}
	for name, g := range w.groups {
		if g.Status.Kept != nil {
			all[name] = len(g.Status.Kept.Members)
		}
	}
	return all
}

func (w *world) expectKept(t *testing.T, when string, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, w.keeping()); diff != "" {
		t.Errorf("%s: kept for members of (-want +got):\n%s", when, diff)
	}
}

// warned returns what was told for that reason.
func (w *world) warned(reason string) (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, told := range w.told {
		if strings.Contains(told, "Warning "+reason+": ") {
			all = append(all, told)
		}
	}
	return all
}

// berlin is an hour of the first day, and of the next from 24 on.
func berlin(hour int) time.Time {
	return time.Date(2026, 11, 30, hour-1, 0, 0, 0, time.UTC)
}

// A tenant that wakes one service after the other has no more kept than its quota, in all
// of its namespaces, and is told of what is not. What another tenant keeps is not its own.
func TestKeptWithinTheQuota(t *testing.T) {
	w := newWorld()
	w.budget = blue(8)
	w.serve("one", 6, opens("08:00", "14:00"))
	w.serve("two", 6, opens("08:00", "15:00"), in("more"))
	w.serve("three", 6, opens("08:00", "16:00"))
	w.serve("alien", 6, opens("08:00", "14:00"), in("else"))
	c := w.leader()
	w.at(c, start())
	w.at(c, berlin(14))
	w.expectKept(t, "at 14:00", map[string]int{"one": 6, "alien": 6})
	w.at(c, berlin(15))
	w.expectKept(t, "at 15:00", map[string]int{"one": 6, "two": 2, "alien": 6})
	w.at(c, berlin(16))
	want := map[string]int{"one": 6, "two": 2, "alien": 6}
	w.expectKept(t, "at 16:00", want)
	w.run(c, 10*time.Minute)
	w.at(w.leader(), w.now().Add(time.Minute))
	w.expectKept(t, "by night", want)
	if diff := cmp.Diff([]string{
		"two Warning KeptInPart: 2 of 6 cards are kept: what services keep while they sleep stays within cards of Tenant blue (8)",
		"three Warning KeptInPart: 0 of 6 cards are kept: what services keep while they sleep stays within cards of Tenant blue (8)",
	}, w.warned(ReasonKeptInPart)); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	for name, text := range map[string]string{
		"one": "opens Tue 1 Dec 08:00 CET, takes back 6 cards", "two": "opens Tue 1 Dec 08:00 CET, takes back 2 cards", "three": "opens Tue 1 Dec 08:00 CET",
	} {
		if next := w.status(name).Next; next == nil || next.Text != text {
			t.Errorf("%s: next %+v, want %q", name, next, text)
		}
	}
	w.at(c, berlin(24+8))
	for _, name := range []string{"one", "two", "three"} {
		w.expect(t, name, scaled(6))
	}
}

// Two services of one tenant that sleep by turns keep all that they have at each
// hand-over, whichever has its turn first: the one that wakes does not count.
func TestKeptByTurns(t *testing.T) {
	for _, day := range []string{"a", "z"} { // groups are looked at in the order of their names
		night := map[string]string{"a": "z", "z": "a"}[day]
		w := newWorld()
		w.budget = blue(8)
		w.serve(day, 8, opens("08:00", "22:00"))
		w.serve(night, 8, opens("22:00", "08:00"))
		c := w.leader()
		w.at(c, start())
		w.expectKept(t, "by day", map[string]int{night: 8})
		for i := range 4 {
			w.members[night], w.members[day] = nil, nil
			at, sleeper := berlin(24*(i/2)+22), day
			if i%2 == 1 {
				at, sleeper = berlin(24*(i/2)+32), night
			}
			w.follow()
			w.at(c, at.Add(-time.Second))
			w.at(c, at)
			if got := w.keeping()[sleeper]; got != 8 {
				t.Fatalf("%s: %s keeps %d, all: %v", at, sleeper, got, w.keeping())
			}
			w.run(c, 2*time.Minute)
			w.expectKept(t, at.String(), map[string]int{sleeper: 8})
		}
		if told := w.warned(ReasonKeptInPart); len(told) > 0 {
			t.Errorf("told %v", told)
		}
	}
}

// What is kept stays as it is while the service sleeps, whatever else is kept or allowed
// then. What has not counted since its opening is judged like what others keep anew: who
// moves its windows once they are open does not have twice as much.
func TestKeptIsJudgedOnce(t *testing.T) {
	t.Run("while it sleeps", func(t *testing.T) {
		w := newWorld()
		w.budget = blue(8)
		w.serve("one", 6, opens("08:00", "14:00"))
		c := w.leader()
		w.at(c, start())
		w.at(c, berlin(14))
		w.budget = blue(3)
		w.at(c, w.now().Add(time.Hour))
		w.group("one", opens("09:00", "14:00"))
		w.at(c, w.now().Add(time.Second))
		w.expectKept(t, "with a lower quota", map[string]int{"one": 6})
	})
	t.Run("since nobody knew whether it was to open", func(t *testing.T) {
		w := newWorld()
		w.budget = blue(8)
		w.serve("one", 8, opens("22:00", "08:00"))
		w.serve("two", 8, opens("08:00", "22:00"))
		c := w.leader()
		w.at(c, start())
		w.group("one", func(g *v1alpha1.TaskGroup) { g.Spec.Windows[0].TimeZone = "Mars/Base" })
		w.at(c, closed())
		w.expectKept(t, "at the hand-over", map[string]int{"one": 8, "two": 8})
		w.group("one", opens("23:00", "08:00"))
		w.at(c, w.now().Add(time.Second))
		w.expectKept(t, "once it is to open later", map[string]int{"two": 8})
		if told := w.warned(ReasonKeptInPart); len(told) != 1 || !strings.HasPrefix(told[0], "one Warning KeptInPart: 0 of 8 cards are kept") {
			t.Errorf("told %v", told)
		}
	})
}

// lag has the leader have a round at that time of the clock, with a cache that has not
// learned anything since.
func (w *world) lag(c *Controller, at time.Time) {
	w.mu.Lock()
	w.clock = at
	w.mu.Unlock()
	w.lead(c)
}

// Of groups that close in one round the second knows what was written for the first.
func TestKeptInOneRound(t *testing.T) {
	w := newWorld()
	w.budget = blue(8)
	for _, name := range []string{"a", "b", "c"} {
		w.serve(name, 5, dayNight(v1alpha1.TaskGroupPause))
	}
	c := w.leader()
	w.at(c, start())
	w.lag(c, closed())
	w.expectKept(t, "with a cache that lags", map[string]int{"a": 5, "b": 3})
	w.at(c, w.now().Add(time.Second))
	w.at(w.leader(), w.now().Add(time.Second))
	w.expectKept(t, "later", map[string]int{"a": 5, "b": 3})
}

// A new leader, which has read none of them, goes by the cache.
func TestKeptBeforeTheLeader(t *testing.T) {
	w := newWorld()
	w.budget = blue(8)
	w.serve("z", 5, opens("08:00", "20:00"))
	w.serve("a", 5, opens("08:00", "22:00"))
	c := w.leader()
	w.at(c, start())
	w.at(c, berlin(20))
	w.at(w.leader(), closed()) // which looks at a first
	w.expectKept(t, "by the new leader", map[string]int{"z": 5, "a": 3})
}

// deafOnce writes a status once without an answer.
type deafOnce struct {
	groupServer
	done *bool
}

func (s deafOnce) UpdateStatus(ctx context.Context, g *v1alpha1.TaskGroup) (*v1alpha1.TaskGroup, error) {
	out, err := s.groupServer.UpdateStatus(ctx, g)
	if err == nil && !*s.done {
		*s.done = true
		return nil, apierrors.NewTimeoutError("no answer", 1)
	}
	return out, err
}

// What was written, and nobody has said so, counts too.
func TestKeptWithoutAnAnswer(t *testing.T) {
	w := newWorld()
	w.budget = blue(8)
	w.serve("a", 5, dayNight(v1alpha1.TaskGroupPause))
	w.serve("b", 5, dayNight(v1alpha1.TaskGroupPause))
	c := w.leader()
	w.at(c, start())
	c.Client = deafOnce{groupServer{w}, new(bool)}
	w.lag(c, closed())
	w.expectKept(t, "without an answer", map[string]int{"a": 5})
	w.lag(c, w.now().Add(least))
	w.expectKept(t, "in the next round", map[string]int{"a": 5, "b": 3})
	w.run(c, time.Minute)
	w.expectKept(t, "later", map[string]int{"a": 5, "b": 3})
	w.expect(t, "a", scaled(0))
}

// Where nothing is limited nobody looks at what others keep.
func TestNoLimitAsksNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		limits map[gpu.Account][]gpu.Limit
		asks   int // beyond once a round
	}{"no limit": {nil, 0}, "a limit": {blue(99).limits, 2}} {
		w := newWorld()
		w.budget = budget{blue(0).accounts, tc.limits}
		w.serve("a", 5, opens("08:00", "14:00"))
		w.serve("b", 5, dayNight(v1alpha1.TaskGroupPause))
		c := w.leader()
		lists := 0
		c.Groups = listed{c.Groups, &lists}
		for _, at := range []time.Time{start(), berlin(14), closed()} {
			w.at(c, at)
		}
		w.expectKept(t, name, map[string]int{"a": 5, "b": 5})
		if lists != 3+tc.asks {
			t.Errorf("%s: all are listed %d times in 3 rounds", name, lists)
		}
	}
}

// listed counts how often all groups are listed.
type listed struct {
	kindlisters.TaskGroupLister
	n *int
}

func (l listed) List(s labels.Selector) ([]*v1alpha1.TaskGroup, error) {
	*l.n++
	return l.TaskGroupLister.List(s)
}
