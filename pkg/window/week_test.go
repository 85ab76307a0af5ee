package window

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A week of a service that is awake in office hours, looked at every ten minutes: what it
// had before each night it has after it, and nothing is written but twice a day.
func TestWeek(t *testing.T) {
	office := schedule(t, Window{Days: []string{"Mon", "Tue", "Wed", "Thu", "Fri"}, From: "08:00", To: "20:00", TimeZone: "Europe/Berlin"})
	tests := map[string]struct {
		rule      Rule
		is, night State
	}{
		"pause":           {Rule{Schedule: office, Action: Pause}, scaled(7), scaled(0)},
		"pause, HPA":      {Rule{Schedule: office, Action: Pause}, withHPA(7, 3, 10), withHPA(0, 3, 10)},
		"pause, HPA of 0": {Rule{Schedule: office, Action: Pause}, withHPA(7, 0, 10), withHPA(0, 1, 10)},
		"pause, KEDA":     {Rule{Schedule: office, Action: Pause}, withKEDA(7, ""), withKEDA(0, "0")},
		"scale":           {Rule{Schedule: office, Action: Scale, Replicas: 1}, scaled(7), scaled(1)},
		"scale, HPA":      {Rule{Schedule: office, Action: Scale, Replicas: 1}, withHPA(7, 3, 10), withHPA(1, 1, 1)},
		"scale up":        {Rule{Schedule: office, Action: Scale, Replicas: 12}, withHPA(7, 3, 10), withHPA(12, 12, 12)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := &world{target: "uid", is: tc.is}
			nights := 0
			start := utc(t, "2026-03-25 12:00") // the clocks change on the Sunday
			for now := start; now.Before(start.AddDate(0, 0, 7)); now = now.Add(10 * time.Minute) {
				had := w.record != nil
				p := w.pass(tc.rule, now, allSteps)
				if had && w.record == nil {
					nights++
				}
				want := tc.night
				if local := now.In(zone(t, "Europe/Berlin")); local.Weekday()%6 != 0 && local.Hour() >= 8 && local.Hour() < 20 {
					want = tc.is
				}
				if diff := cmp.Diff(want, w.is); diff != "" {
					t.Fatalf("%s, %v (-want +got):\n%s", now, p.Conditions, diff)
				}
			}
			if nights != 5 { // Wednesday, Thursday, the weekend, Monday, Tuesday
				t.Errorf("restored %d times, want 5", nights)
			}
			if most := nights * (3 + 2 + 2*len(writes(tc.is, tc.night)) + 1); len(w.log) > most {
				t.Errorf("%d steps, want %d at most: %v", len(w.log), most, w.log)
			}
		})
	}
}

// A rule as its author may edit it at any time, between pause and scale.
var rules = rapid.Custom(func(t *rapid.T) Rule {
	rule := Rule{Action: Pause}
	if rapid.Bool().Draw(t, "scale") {
		rule.Action, rule.Replicas = Scale, rapid.Int32Range(1, 12).Draw(t, "replicas")
	}
	var windows []Window
	for range rapid.IntRange(0, 2).Draw(t, "windows") {
		windows = append(windows, rapid.OneOf(rapid.Custom(drawDaily), rapid.Custom(drawCron)).Draw(t, "window").window)
	}
	schedule, err := parseWindows("windows", windows)
	if err != nil {
		t.Fatal(err)
	}
	rule.Schedule = schedule
	return rule
})

var targets = rapid.Custom(func(t *rapid.T) State {
	replicas := rapid.Int32Range(0, 12).Draw(t, "replicas")
	switch rapid.IntRange(0, 2).Draw(t, "autoscaler") {
	case 0:
		return scaled(replicas)
	case 1:
		least := rapid.Int32Range(0, 4).Draw(t, "least")
		if replicas > 0 {
			replicas = max(replicas, least)
		}
		return withHPA(replicas, least, max(replicas, least, 1)+rapid.Int32Range(0, 3).Draw(t, "more"))
	}
	return withKEDA(replicas, "")
})

// Whatever is edited but the target, whenever the controller dies, however often the
// tenant is made inactive and wherever the clock is set: once the windows are open and the
// tenant is active, the target is exactly as it was, and nothing is left behind.
func TestWindowsRestoreExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := targets.Draw(t, "target")
		w := &world{target: "uid", is: before}
		rule, now := rules.Draw(t, "rule"), time.Date(2026, 3, 25, 12, 0, 0, 0, time.UTC)
		t.Repeat(map[string]func(*rapid.T){
			"time goes by": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 24*60).Draw(t, "minutes")) * time.Minute)
			},
			"the clock is set back": func(t *rapid.T) {
				now = now.Add(-time.Duration(rapid.IntRange(1, 24*60).Draw(t, "minutes")) * time.Minute)
			},
			"the rule is edited": func(t *rapid.T) { rule = rules.Draw(t, "rule") },
			"the tenant changes": func(*rapid.T) { w.inactive = !w.inactive },
			"an older group":     func(*rapid.T) { w.contest.Older = "a/b" },
			"the older has gone": func(*rapid.T) { w.contest.Older = "" },
			"the HPA acts":       func(*rapid.T) { w.autoscale() },
			"an HPA or KEDA does once more what it had worked out": func(t *rapid.T) {
				if r := w.record; r != nil && r.Phase != Acted && 0 < r.Tries && r.Tries < mostTries && !r.settled(now) {
					w.is.Replicas = rapid.Int32Range(0, before.Replicas).Draw(t, "replicas")
				}
			},
			"a pass":             func(*rapid.T) { w.pass(rule, now, allSteps) },
			"a pass that is cut": func(t *rapid.T) { w.pass(rule, now, rapid.IntRange(0, 4).Draw(t, "steps")) },
			"": func(t *rapid.T) {
				if w.record == nil && cmp.Diff(before, w.is) != "" {
					t.Fatalf("the target differs from what it was, and nobody knows: %v", w.is)
				}
			},
		})
		w.inactive = false
		for pass := 0; ; pass++ {
			if w.pass(Rule{}, now, allSteps); w.record == nil {
				break
			}
			if pass > 3 {
				t.Fatalf("not restored after %d passes: %v", pass, w.record)
			}
			now = now.Add(time.Minute)
		}
		if diff := cmp.Diff(before, w.is); diff != "" {
			t.Fatalf("restored (-want +got):\n%s", diff)
		}
		if p := w.pass(Rule{}, now, allSteps); len(p.Steps) > 0 {
			t.Fatalf("goes on with %v", p.Steps)
		}
	})
}

// While a tenant is inactive no pass leaves it with more replicas than it had.
func TestInactiveAddsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{target: "uid", is: targets.Draw(t, "target")}
		rule, now := rules.Draw(t, "rule"), time.Date(2026, 3, 25, 12, 0, 0, 0, time.UTC)
		for range rapid.IntRange(0, 3).Draw(t, "passes before") {
			w.pass(rule, now, rapid.IntRange(0, 5).Draw(t, "steps"))
			now = now.Add(time.Duration(rapid.IntRange(1, 24*60).Draw(t, "minutes")) * time.Minute)
		}
		w.autoscale() // it may be about to
		w.inactive = true
		for range 8 {
			rule = rapid.OneOf(rules, rapid.Just(rule)).Draw(t, "rule")
			had := w.is.Replicas
			p := w.pass(rule, now, rapid.IntRange(0, 5).Draw(t, "steps"))
			w.autoscale()
			if w.is.Replicas > had {
				t.Fatalf("%d replicas were %d: %v", w.is.Replicas, had, p.Steps)
			}
			now = now.Add(time.Duration(rapid.IntRange(1, 24*60).Draw(t, "minutes")) * time.Minute)
		}
	})
}

// Two groups of one target hand it over without either taking what the other has set for
// what was there before.
func TestTwoGroupsOfOneTarget(t *testing.T) {
	rule, night := dayRule(t, Pause, 0), night(t)
	target := scaled(7)
	older := &world{target: "uid", is: target}
	younger := &world{target: "uid", is: target}
	claims := func() []Claim {
		return []Claim{
			{Name: "n/older", Created: night.Add(-2 * time.Hour), Holds: older.record != nil},
			{Name: "n/younger", Created: night.Add(-time.Hour), Holds: younger.record != nil},
		}
	}
	pass := func(name string, w, other *world) Plan {
		w.contest = Contend(name, claims())
		p := w.pass(rule, night, allSteps)
		other.is = w.is
		return p
	}
	younger.pass(rule, night, allSteps) // the older does not have it in view yet
	older.is = younger.is
	if p := pass("n/older", older, younger); p.Conditions[0].Reason != TargetBusy || older.record != nil {
		t.Fatalf("the older does not wait: %v", p)
	}
	if p := pass("n/younger", younger, older); p.Conditions[0].Reason != TargetTaken || younger.record != nil || younger.is.Replicas != 7 {
		t.Fatalf("the younger does not let go: %v", p)
	}
	pass("n/older", older, younger)
	if older.record == nil || older.record.Image.Replicas != 7 || older.is.Replicas != 0 {
		t.Fatalf("the older does not rule: %+v", older.record)
	}
	if p := pass("n/younger", younger, older); len(p.Steps) > 0 {
		t.Fatalf("the younger does %v", p.Steps)
	}
}
