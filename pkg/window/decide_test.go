package window

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Steps of one pass, from every state that there can be.
func TestDecide(t *testing.T) {
	pause, scale, stop := dayRule(t, Pause, 0), dayRule(t, Scale, 2), dayRule(t, Stop, 0)
	day, night := noon(t), night(t)
	paused := Record{Target: "uid", Action: Pause, Image: withHPA(7, 3, 10), Set: withHPA(0, 3, 10), Phase: Acted}
	pinned := Record{Target: "uid", Action: Scale, Image: withHPA(7, 3, 10), Set: withHPA(2, 2, 2), Phase: Acted}
	stopped := Record{Target: "uid", Action: Stop, Image: scaled(7), Set: scaled(0), Phase: Acted}
	at := func(r Record, phase Phase, tries int) Record {
		r.Phase, r.Tries = phase, tries
		return r
	}
	written := func(r Record, tries int, at time.Time) Record {
		r.Tries, r.Written = tries, at
		return r
	}
	rested := Record{Target: "uid", Action: Pause, Image: withKEDA(7, ""), Set: withKEDA(0, "0"), Phase: Restoring}
	ago := func(now time.Time, seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	restoring := func(r Record, goal State) Save {
		r.Phase, r.Image = Restoring, goal
		return Save(r)
	}
	tests := map[string]struct {
		rule   Rule
		record *Record
		seen   Seen
		now    time.Time
		steps  []Step
		says   []Reason
	}{
		"inside, nothing saved": {
			rule: pause, seen: Seen{State: scaled(7)}, now: day, says: []Reason{InWindow},
		},
		"no windows": {
			seen: Seen{State: scaled(7)}, now: day, says: []Reason{AlwaysOpen},
		},
		"no target": {
			rule: pause, record: &paused, seen: Seen{Target: "-"}, now: night, says: []Reason{TargetMissing},
		},
		"pause: saved before the first write": {
			rule: pause, seen: Seen{State: scaled(7)}, now: night, says: []Reason{Paused},
			steps: []Step{
				Save{Target: "uid", Action: Pause, Image: scaled(7), Set: scaled(0), Phase: Acting},
				SetReplicas(0),
				Save{Target: "uid", Action: Pause, Image: scaled(7), Set: scaled(0), Phase: Acting, Tries: 1, Written: night},
			},
		},
		"pause: an HPA is inert at 0 and keeps its bounds": {
			rule: pause, seen: Seen{State: withHPA(7, 3, 10)}, now: night, says: []Reason{Paused},
			steps: []Step{Save(at(paused, Acting, 0)), SetReplicas(0), Save(written(at(paused, Acting, 0), 1, night))},
		},
		"pause: an HPA that may go to 0 is not left at it": {
			rule: pause, seen: Seen{State: withHPA(7, 0, 10)}, now: night, says: []Reason{Paused},
			steps: []Step{
				Save{Target: "uid", Action: Pause, Image: withHPA(7, 0, 10), Set: withHPA(0, 1, 10), Phase: Acting},
				SetReplicas(0), SetHPA{1, 10},
				Save{Target: "uid", Action: Pause, Image: withHPA(7, 0, 10), Set: withHPA(0, 1, 10), Phase: Acting, Tries: 1, Written: night},
			},
		},
		"pause: an HPA that has gone to 0 by itself is left alone": {
			rule: pause, seen: Seen{State: asleep(withHPA(0, 0, 10))}, now: night, says: []Reason{AsleepByItself},
		},
		"pause: one that someone has woken since would take a minimum of 1 for its order": {
			rule: pause, seen: Seen{State: asleep(withHPA(3, 0, 10))}, now: night, says: []Reason{Paused},
			steps: []Step{
				Save{Target: "uid", Action: Pause, Image: asleep(withHPA(3, 0, 10)), Set: asleep(withHPA(0, 0, 10)), Phase: Acting},
				SetReplicas(0),
				Save{Target: "uid", Action: Pause, Image: asleep(withHPA(3, 0, 10)), Set: asleep(withHPA(0, 0, 10)), Phase: Acting, Tries: 1, Written: night},
			},
		},
		"pause: what that HPA woke is paused again, for good": {
			rule:   pause,
			record: &Record{Target: "uid", Action: Pause, Image: asleep(withHPA(3, 0, 10)), Set: asleep(withHPA(0, 0, 10)), Phase: Acted},
			seen:   Seen{State: withHPA(1, 0, 10)}, now: night, says: []Reason{Paused},
			steps: []Step{
				Save{Target: "uid", Action: Pause, Image: asleep(withHPA(3, 0, 10)), Set: withHPA(0, 1, 10), Phase: Acting},
				SetReplicas(0), SetHPA{1, 10},
				Save{Target: "uid", Action: Pause, Image: asleep(withHPA(3, 0, 10)), Set: withHPA(0, 1, 10), Phase: Acting, Tries: 1, Written: night},
			},
		},
		"pause: KEDA is pinned, and the HPA that it made is its own": {
			rule: pause, seen: Seen{State: State{Replicas: 7, HPA: &Bounds{3, 10}, KEDA: new(string)}}, now: night, says: []Reason{Paused},
			steps: []Step{
				Save{Target: "uid", Action: Pause, Image: withKEDA(7, ""), Set: withKEDA(0, "0"), Phase: Acting},
				SetKEDA("0"), SetReplicas(0),
				Save{Target: "uid", Action: Pause, Image: withKEDA(7, ""), Set: withKEDA(0, "0"), Phase: Acting, Tries: 1, Written: night},
			},
		},
		"pause: what has 0 replicas already": {
			rule: pause, seen: Seen{State: scaled(0)}, now: night, says: []Reason{Paused},
			steps: []Step{Save{Target: "uid", Action: Pause, Image: scaled(0), Set: scaled(0), Phase: Acted}},
		},
		"scale: pinned, then scaled": {
			rule: scale, seen: Seen{State: withHPA(7, 3, 10)}, now: night, says: []Reason{Scaled},
			steps: []Step{Save(at(pinned, Acting, 0)), SetHPA{2, 2}, SetReplicas(2), Save(written(at(pinned, Acting, 0), 1, night))},
		},
		"set, and seen so": {
			rule: scale, record: new(at(pinned, Acting, 1)), seen: Seen{State: withHPA(2, 2, 2)}, now: night, says: []Reason{Scaled},
			steps: []Step{Save(at(pinned, Acted, 1))},
		},
		"set, and seen so too soon": {
			rule: scale, record: new(written(at(pinned, Acting, 0), 1, ago(night, 44))), seen: Seen{State: withHPA(2, 2, 2)}, now: night,
			says: []Reason{Scaled},
		},
		"set, and seen so late enough": {
			rule: scale, record: new(written(at(pinned, Acting, 0), 1, ago(night, 45))), seen: Seen{State: withHPA(2, 2, 2)}, now: night,
			says: []Reason{Scaled}, steps: []Step{Save(written(pinned, 1, ago(night, 45)))},
		},
		"set, and the clock was set back since": {
			rule: scale, record: new(written(at(pinned, Acting, 0), 1, ago(night, -60))), seen: Seen{State: withHPA(2, 2, 2)}, now: night,
			says: []Reason{Scaled}, steps: []Step{Save(written(pinned, 1, ago(night, -60)))},
		},
		"set, and an HPA has written over it once more": {
			rule: pause, record: new(at(paused, Acting, 1)), seen: Seen{State: withHPA(8, 3, 10)}, now: night, says: []Reason{Paused},
			steps: []Step{SetReplicas(0), Save(written(at(paused, Acting, 0), 2, night))},
		},
		"set three times, and still not so": {
			rule: pause, record: new(at(paused, Acting, 3)), seen: Seen{State: withHPA(8, 3, 10)}, now: night, says: []Reason{Paused, EditedByHand},
			steps: []Step{Save(at(paused, Acted, 3))},
		},
		"pause: bounds that are edited while it settles are left so": {
			rule: pause, record: new(written(at(paused, Acting, 0), 1, ago(night, 10))), seen: Seen{State: withHPA(0, 3, 20)}, now: night, says: []Reason{Paused, EditedByHand},
		},
		"pause: bounds that were pinned before are first put back": {
			rule: pause, record: new(at(paused, Acting, 0)), seen: Seen{State: withHPA(2, 2, 2)}, now: night, says: []Reason{Paused},
			steps: []Step{SetReplicas(0), SetHPA{3, 10}, Save(written(at(paused, Acting, 0), 1, night))},
		},
		"died before it had written": {
			rule: pause, record: new(at(paused, Acting, 0)), seen: Seen{State: withHPA(7, 3, 10)}, now: night, says: []Reason{Paused},
			steps: []Step{SetReplicas(0), Save(written(at(paused, Acting, 0), 1, night))},
		},
		"all is as it was set": {
			rule: pause, record: &paused, seen: Seen{State: withHPA(0, 3, 10)}, now: night, says: []Reason{Paused},
		},
		"replicas edited by hand": {
			rule: pause, record: &paused, seen: Seen{State: withHPA(5, 3, 10)}, now: night, says: []Reason{Paused, EditedByHand},
		},
		"the HPA edited by hand": {
			rule: scale, record: &pinned, seen: Seen{State: withHPA(4, 4, 6)}, now: night, says: []Reason{Scaled, EditedByHand},
		},
		"the HPA deleted by hand": {
			rule: scale, record: &pinned, seen: Seen{State: scaled(2)}, now: night, says: []Reason{Scaled, EditedByHand},
		},
		"inside again: the HPA first, it would pull the replicas back": {
			rule: scale, record: &pinned, seen: Seen{State: withHPA(2, 2, 2)}, now: day, says: []Reason{Restored},
			steps: []Step{restoring(pinned, withHPA(7, 3, 10)), SetHPA{3, 10}, SetReplicas(7), Forget{}},
		},
		"inside again, with KEDA": {
			rule:   pause,
			record: &Record{Target: "uid", Action: Pause, Image: withKEDA(7, "4"), Set: withKEDA(0, "0"), Phase: Acted},
			seen:   Seen{State: withKEDA(0, "0")}, now: day, says: []Reason{Restored},
			steps: []Step{
				Save{Target: "uid", Action: Pause, Image: withKEDA(7, "4"), Set: withKEDA(0, "0"), Phase: Restoring},
				SetKEDA("4"), SetReplicas(7),
				Save{Target: "uid", Action: Pause, Image: withKEDA(7, "4"), Set: withKEDA(0, "0"), Phase: Restoring, Tries: 1, Written: day},
			},
		},
		"restored, and KEDA has set its old number once more": {
			rule: pause, record: new(written(rested, 1, ago(day, 10))), seen: Seen{State: withKEDA(0, "")}, now: day, says: []Reason{Restored},
			steps: []Step{SetReplicas(7), Save(written(rested, 2, day))},
		},
		"restored, and KEDA may still": {
			rule: pause, record: new(written(rested, 1, ago(day, 10))), seen: Seen{State: withKEDA(7, "")}, now: day, says: []Reason{Restored},
		},
		"restored, and KEDA has made more of it": {
			rule: pause, record: new(written(rested, 1, ago(day, 60))), seen: Seen{State: withKEDA(8, "")}, now: day, says: []Reason{Restored},
			steps: []Step{Forget{}},
		},
		"restored, and someone has put the old number back": {
			rule: pause, record: new(written(rested, 1, ago(day, 10))), seen: Seen{State: withKEDA(7, "0")}, now: day, says: []Reason{Restored},
			steps: []Step{SetKEDA(""), SetReplicas(7), Save(written(rested, 2, day))},
		},
		"restoring counts anew": {
			rule: pause, record: new(written(at(rested, Acted, 0), 3, ago(day, 900))), seen: Seen{State: withKEDA(0, "0")}, now: day, says: []Reason{Restored},
			steps: []Step{Save(rested), SetKEDA(""), SetReplicas(7), Save(written(rested, 1, day))},
		},
		"restored three times, and KEDA will not have it": {
			rule: pause, record: new(written(rested, 3, ago(day, 10))), seen: Seen{State: withKEDA(1, "")}, now: day, says: []Reason{Restored},
			steps: []Step{Forget{}},
		},
		"died while restoring fewer, with KEDA": {
			rule:   scale,
			record: &Record{Target: "uid", Action: Scale, Image: withKEDA(1, ""), Set: withKEDA(2, "2"), Phase: Restoring},
			seen:   Seen{State: withKEDA(2, "")}, now: day, says: []Reason{Restored},
			steps: []Step{
				SetReplicas(1),
				Save{Target: "uid", Action: Scale, Image: withKEDA(1, ""), Set: withKEDA(2, "2"), Phase: Restoring, Tries: 1, Written: day},
			},
		},
		"inside again before anything was written": {
			rule: scale, record: new(at(pinned, Acting, 0)), seen: Seen{State: withHPA(7, 3, 10)}, now: day, says: []Reason{Restored},
			steps: []Step{Forget{}},
		},
		"inside again after half of it was": {
			rule: scale, record: new(at(pinned, Acting, 0)), seen: Seen{State: withHPA(7, 2, 2)}, now: day, says: []Reason{Restored},
			steps: []Step{restoring(at(pinned, Acting, 0), withHPA(7, 3, 10)), SetHPA{3, 10}, SetReplicas(7), Forget{}},
		},
		"died while restoring: what the HPA made of it is no edit": {
			rule: scale, record: new(at(pinned, Restoring, 1)), seen: Seen{State: withHPA(3, 3, 10)}, now: day, says: []Reason{Restored},
			steps: []Step{SetReplicas(7), Forget{}},
		},
		"outside again while restoring": {
			rule: scale, record: new(at(pinned, Restoring, 1)), seen: Seen{State: withHPA(3, 3, 10)}, now: night, says: []Reason{Scaled},
			steps: []Step{Save(at(pinned, Acting, 0)), SetHPA{2, 2}, SetReplicas(2), Save(written(at(pinned, Acting, 0), 1, night))},
		},
		"inside again: what was edited stays, the rest is restored": {
			rule: scale, record: &pinned, seen: Seen{State: withHPA(5, 2, 2)}, now: day, says: []Reason{Restored, EditedByHand},
			steps: []Step{restoring(pinned, withHPA(5, 3, 10)), SetHPA{3, 10}, SetReplicas(5), Forget{}},
		},
		"inside again: edited bounds stay": {
			rule: pause, record: &paused, seen: Seen{State: withHPA(0, 5, 20)}, now: day, says: []Reason{Restored, EditedByHand},
			steps: []Step{restoring(paused, withHPA(7, 5, 20)), SetReplicas(7), Forget{}},
		},
		"inside again: an HPA that has gone is not missed": {
			rule: scale, record: &pinned, seen: Seen{State: scaled(2)}, now: day, says: []Reason{Restored, EditedByHand},
			steps: []Step{restoring(pinned, scaled(7)), SetReplicas(7), Forget{}},
		},
		"inside again: an HPA that had gone to 0 and has scaled since would not come back from 0": {
			rule:   scale,
			record: &Record{Target: "uid", Action: Scale, Image: asleep(withHPA(0, 0, 10)), Set: asleep(withHPA(2, 2, 2)), Phase: Acted},
			seen:   Seen{State: withHPA(2, 2, 2)}, now: day, says: []Reason{Restored},
			steps: []Step{
				Save{Target: "uid", Action: Scale, Image: asleep(withHPA(1, 0, 10)), Set: asleep(withHPA(2, 2, 2)), Phase: Restoring},
				SetHPA{0, 10}, SetReplicas(1), Forget{},
			},
		},
		"stop stays": {
			rule: stop, record: &stopped, seen: Seen{State: scaled(0)}, now: day, says: []Reason{StayedStopped}, steps: []Step{Forget{}},
		},
		"stop stays without its windows": {
			record: &stopped, seen: Seen{State: scaled(0)}, now: night, says: []Reason{StayedStopped}, steps: []Step{Forget{}},
		},
		"what was started by hand is not stopped twice": {
			rule: stop, record: &stopped, seen: Seen{State: scaled(4)}, now: night, says: []Reason{Stopped, EditedByHand},
		},
		"windows deleted at night": {
			record: &paused, seen: Seen{State: withHPA(0, 3, 10)}, now: night, says: []Reason{Restored},
			steps: []Step{restoring(paused, withHPA(7, 3, 10)), SetReplicas(7), Forget{}},
		},
		"pause turned into scale at night: the image stays": {
			rule: scale, record: &paused, seen: Seen{State: withHPA(0, 3, 10)}, now: night, says: []Reason{Scaled},
			steps: []Step{Save(at(pinned, Acting, 0)), SetHPA{2, 2}, SetReplicas(2), Save(written(at(pinned, Acting, 0), 1, night))},
		},
		"pause turned into stop at night: nothing to write": {
			rule: stop, record: &paused, seen: Seen{State: withHPA(0, 3, 10)}, now: night, says: []Reason{Stopped},
			steps: []Step{Save{Target: "uid", Action: Stop, Image: withHPA(7, 3, 10), Set: withHPA(0, 3, 10), Phase: Acted}},
		},
		"a rule edited after a hand": {
			rule: scale, record: &paused, seen: Seen{State: withHPA(5, 4, 10)}, now: night, says: []Reason{Scaled},
			steps: []Step{
				Save{Target: "uid", Action: Scale, Image: withHPA(5, 4, 10), Set: withHPA(2, 2, 2), Phase: Acting},
				SetHPA{2, 2}, SetReplicas(2),
				Save{Target: "uid", Action: Scale, Image: withHPA(5, 4, 10), Set: withHPA(2, 2, 2), Phase: Acting, Tries: 1, Written: night},
			},
		},
		"inactive: pause still pauses": {
			rule: pause, seen: Seen{State: withHPA(7, 3, 10), TenantInactive: true}, now: night, says: []Reason{Paused},
			steps: []Step{Save(at(paused, Acting, 0)), SetReplicas(0), Save(written(at(paused, Acting, 0), 1, night))},
		},
		"inactive: a minimum of 1 adds nothing to 0": {
			rule: pause, seen: Seen{State: withHPA(0, 0, 10), TenantInactive: true}, now: night, says: []Reason{Paused},
			steps: []Step{
				Save{Target: "uid", Action: Pause, Image: withHPA(0, 0, 10), Set: withHPA(0, 1, 10), Phase: Acting},
				SetReplicas(0), SetHPA{1, 10},
				Save{Target: "uid", Action: Pause, Image: withHPA(0, 0, 10), Set: withHPA(0, 1, 10), Phase: Acting, Tries: 1, Written: night},
			},
		},
		"inactive: not scaled up": {
			rule: scale, seen: Seen{State: scaled(1), TenantInactive: true}, now: night, says: []Reason{TenantInactive},
		},
		"inactive: not scaled up halfway": {
			rule: scale, record: new(at(pinned, Acting, 1)), seen: Seen{State: withHPA(1, 2, 2), TenantInactive: true}, now: night,
			says: []Reason{TenantInactive},
		},
		"inactive: not from pause to scale": {
			rule: scale, record: &paused, seen: Seen{State: withHPA(0, 3, 10), TenantInactive: true}, now: night, says: []Reason{TenantInactive},
		},
		"inactive: not woken": {
			rule: pause, record: &paused, seen: Seen{State: withHPA(0, 3, 10), TenantInactive: true}, now: day, says: []Reason{TenantInactive},
		},
		"inactive: no minimum that wakes": {
			rule: scale, record: &pinned, seen: Seen{State: withHPA(1, 2, 2), TenantInactive: true}, now: day, says: []Reason{TenantInactive},
		},
		"inactive: a minimum that is there already wakes nothing": {
			rule: scale, record: new(at(pinned, Acting, 0)), seen: Seen{State: withHPA(7, 2, 2), TenantInactive: true}, now: day, says: []Reason{Restored},
			steps: []Step{restoring(at(pinned, Acting, 0), withHPA(7, 3, 10)), SetHPA{3, 10}, SetReplicas(7), Forget{}},
		},
		"inactive: what takes replicas away is restored": {
			rule:   scale,
			record: &Record{Target: "uid", Action: Scale, Image: scaled(1), Set: scaled(2), Phase: Acted},
			seen:   Seen{State: scaled(2), TenantInactive: true}, now: day, says: []Reason{Restored},
			steps: []Step{
				Save{Target: "uid", Action: Scale, Image: scaled(1), Set: scaled(2), Phase: Restoring},
				SetReplicas(1), Forget{},
			},
		},
		"made anew, inside": {
			rule: pause, record: &paused, seen: Seen{Target: "another", State: scaled(2)}, now: day, says: []Reason{InWindow, TargetRemade},
			steps: []Step{Forget{}},
		},
		"made anew, outside": {
			rule: pause, record: &paused, seen: Seen{Target: "another", State: scaled(0)}, now: night, says: []Reason{Paused, TargetRemade},
			steps: []Step{Forget{}, Save{Target: "another", Action: Pause, Image: scaled(0), Set: scaled(0), Phase: Acted}},
		},
		"an older group rules": {
			rule: pause, seen: Seen{State: scaled(7), Contest: Contest{Older: "a/b"}}, now: night, says: []Reason{TargetTaken},
		},
		"an older group has come: let go": {
			rule: pause, record: &paused, seen: Seen{State: withHPA(0, 3, 10), Contest: Contest{Older: "a/b"}}, now: night,
			says:  []Reason{TargetTaken, Restored},
			steps: []Step{restoring(paused, withHPA(7, 3, 10)), SetReplicas(7), Forget{}},
		},
		"a younger group holds what this one has begun": {
			rule: pause, record: &paused, seen: Seen{State: withHPA(0, 3, 10), Contest: Contest{Holder: "a/b"}}, now: night, says: []Reason{Paused},
		},
		"a younger group has not let go": {
			rule: pause, seen: Seen{State: scaled(0), Contest: Contest{Holder: "a/b"}}, now: night, says: []Reason{TargetBusy},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			switch tc.seen.Target {
			case "":
				tc.seen.Target = "uid"
			case "-":
				tc.seen.Target = ""
			}
			p := Decide(tc.rule, tc.record, tc.seen, tc.now)
			if diff := cmp.Diff(tc.steps, p.Steps); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			var says []Reason
			for _, c := range p.Conditions {
				says = append(says, c.Reason)
			}
			if diff := cmp.Diff(tc.says, says); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
		})
	}
}

// What a plan changes never reaches what it was made from.
func TestDecideChangesNothing(t *testing.T) {
	record := Record{Target: "uid", Action: Scale, Image: withHPA(7, 3, 10), Set: withHPA(2, 2, 2), Phase: Acted}
	seen := Seen{Target: "uid", State: withHPA(2, 2, 2)}
	Decide(dayRule(t, Scale, 2), &record, seen, noon(t))
	want := Record{Target: "uid", Action: Scale, Image: withHPA(7, 3, 10), Set: withHPA(2, 2, 2), Phase: Acted}
	if diff := cmp.Diff(want, record); diff != "" {
		t.Errorf("the record was changed:\n%s", diff)
	}
}

func TestDecideSaysWhetherItIsOpen(t *testing.T) {
	rule := dayRule(t, Pause, 0)
	if p := Decide(rule, nil, Seen{Target: "uid"}, noon(t)); !p.Open {
		t.Error("not open by day")
	}
	if p := Decide(rule, nil, Seen{}, night(t)); p.Open {
		t.Error("open by night, without a target")
	}
	if p := Decide(Rule{}, nil, Seen{Target: "uid"}, noon(t)); !p.Open {
		t.Error("not open without windows")
	}
}

// What its owner reads about an edit has what was set, what is, and what was restored.
func TestDecideTellsOfEdits(t *testing.T) {
	record := Record{Target: "uid", Action: Scale, Image: withHPA(7, 3, 10), Set: withHPA(2, 2, 2), Phase: Acted}
	seen := Seen{Target: "uid", State: withHPA(5, 2, 2)}
	p := Decide(dayRule(t, Scale, 2), &record, seen, noon(t))
	want := []Condition{
		{Restored, "restored to 5 replicas, HorizontalPodAutoscaler 3..10"},
		{EditedByHand, "changed by others since, so it is left alone and not restored: replicas is 5 and was set to 2"},
	}
	if diff := cmp.Diff(want, p.Conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	record.Image, record.Set, seen.State = withKEDA(7, ""), withKEDA(2, "2"), withKEDA(2, "")
	p = Decide(dayRule(t, Scale, 2), &record, seen, night(t))
	if text := p.Conditions[1].Message; !strings.Contains(text, `paused-replicas of KEDA is "" and was set to "2"`) {
		t.Errorf("of KEDA it is said: %s", text)
	}
}

func TestContend(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 6, 5, 12, minute, 0, 0, time.UTC) }
	old, young, twin := Claim{Name: "n/old", Created: at(0)}, Claim{Name: "n/young", Created: at(1)}, Claim{Name: "n/twin", Created: at(0)}
	holding := func(c Claim) Claim {
		c.Holds = true
		return c
	}
	tests := map[string]struct {
		claims []Claim
		want   map[string]Contest
	}{
		"alone": {[]Claim{young}, map[string]Contest{"n/young": {}}},
		"the older rules": {
			[]Claim{young, old}, map[string]Contest{"n/old": {}, "n/young": {Older: "n/old"}},
		},
		"of one moment the name decides": {
			[]Claim{twin, old}, map[string]Contest{"n/old": {}, "n/twin": {Older: "n/old"}},
		},
		"the older waits for the younger": {
			[]Claim{old, holding(young)}, map[string]Contest{"n/old": {Holder: "n/young"}, "n/young": {Older: "n/old"}},
		},
		"its own record is no reason to wait": {
			[]Claim{holding(old), young}, map[string]Contest{"n/old": {}, "n/young": {Older: "n/old"}},
		},
		"the oldest is named": {
			[]Claim{young, twin, old}, map[string]Contest{"n/young": {Older: "n/old"}, "n/twin": {Older: "n/old"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for group, want := range tc.want {
				if diff := cmp.Diff(want, Contend(group, tc.claims)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", group, diff)
				}
			}
		})
	}
}
