package scenario

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func plan() Plan {
	return Plan{Floor: Floor{Nodes: 128}, Load: 0.9, Fill: 30 * time.Second, Length: 20 * time.Minute, Wait: 15 * time.Second}
}

func TestDrawIsByTheSeed(t *testing.T) {
	p := plan()
	p.Length = time.Minute
	if diff := cmp.Diff(Draw(p, 7), Draw(p, 7)); diff != "" {
		t.Errorf("the same seed, other tasks:\n%s", diff)
	}
	if cmp.Equal(Draw(p, 7), Draw(p, 8)) {
		t.Error("two seeds have the same tasks")
	}
}

// TestDrawOffersTheLoad: what would run at any time, if nothing waited, is the
// load and its shares, within what chance explains of some hours.
func TestDrawOffersTheLoad(t *testing.T) {
	p := plan()
	// From after a few of the mean durations on, to before the last tasks come.
	from, to := 5*time.Minute, p.Length-p.Wait
	held := map[string]float64{}
	for _, task := range Draw(p, 1) {
		amount := float64(task.Cards)
		if !task.Whole() {
			amount = float64(task.Cores) / 100
		}
		if runs := min(task.At+task.Takes, to) - max(task.At, from); runs > 0 {
			held[task.Kind] += amount * runs.Seconds() / (to - from).Seconds()
		}
	}
	all := 0.0
	for _, k := range kinds() {
		want := p.Load * k.share * float64(p.Floor.Cards())
		if got := held[k.name]; math.Abs(got-want) > 0.2*want {
			t.Errorf("%s hold %.0f cards, want some %.0f", k.name, got, want)
		}
		all += held[k.name]
	}
	if want := p.Load * float64(p.Floor.Cards()); math.Abs(all-want) > 0.1*want {
		t.Errorf("all hold %.0f cards, want some %.0f", all, want)
	}
}

func TestDrawn(t *testing.T) {
	p := plan()
	tasks := Draw(p, 3)
	if !slices.IsSortedFunc(tasks, func(a, b Task) int { return int(a.At - b.At) }) {
		t.Error("the tasks are not in the order in which they come")
	}
	names, groups := map[string]bool{}, map[string][]Task{}
	for _, task := range tasks {
		if names[task.Name] {
			t.Errorf("%s comes twice", task.Name)
		}
		names[task.Name] = true
		if task.At < 0 || task.At >= p.Length-p.Wait {
			t.Errorf("%s comes at %v: who waits for it to be late?", task.Name, task.At)
		}
		if task.Takes < shortest || task.Busy < 0.6 || task.Busy > 1 {
			t.Errorf("%s takes %v and is %.2f busy", task.Name, task.Takes, task.Busy)
		}
		if task.Whole() == (task.Memory > 0) || task.Cards > cardsPerNode {
			t.Errorf("%s asks for %d cards and %d MiB", task.Name, task.Cards, task.Memory)
		}
		if task.Group != "" {
			groups[task.Group] = append(groups[task.Group], task)
		}
	}
	for name, members := range groups {
		if len(members) != 8 || members[0].At != members[7].At || members[0].Cards != members[7].Cards {
			t.Errorf("group %s: %+v", name, members)
		}
	}
	if len(groups) == 0 {
		t.Error("there are no groups")
	}
}

func TestKindsOfferEverything(t *testing.T) {
	shares := 0.0
	for _, k := range kinds() {
		shares += k.share
		percent := 0
		for _, a := range k.asks {
			percent += a.percent
		}
		if percent != 100 {
			t.Errorf("%s: its pods are %d of a hundred", k.name, percent)
		}
	}
	if math.Abs(shares-1) > 1e-9 {
		t.Errorf("the kinds share %.3f of the load", shares)
	}
}

func TestPlanValidate(t *testing.T) {
	tests := map[string]struct {
		change func(*Plan)
		want   string
	}{
		"as it is":          {func(*Plan) {}, ""},
		"no load":           {func(p *Plan) { p.Load = 0 }, "load: 0 is outside 0..2"},
		"no wait":           {func(p *Plan) { p.Wait = 0 }, "wait: 0s is less than a second"},
		"nothing to count":  {func(p *Plan) { p.Length = 45 * time.Second }, "length: of 45s nothing is left after 30s to fill and 15s to wait"},
		"no rack":           {func(p *Plan) { p.Floor.Nodes = 7 }, "7 nodes: want at least 8, which is one rack"},
		"a part of a rack":  {func(p *Plan) { p.Floor.Nodes = 12 }, "nodes: want whole racks, of 8 each"},
		"a rack by itself":  {func(p *Plan) { p.Floor.Nodes = 8 }, ""},
		"load beyond twice": {func(p *Plan) { p.Load = 2.5 }, "load: 2.5 is outside 0..2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := plan()
			tc.change(&p)
			got := ""
			if err := p.Validate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("Validate = %q, want %q", got, tc.want)
			}
		})
	}
}
