package window

import (
	"fmt"
	"time"
)

// mostTries is how often all of what is set is written. An autoscaler that writes
// once more what it had worked out before does so once; who still differs after the
// third time means it.
const mostTries = 3

// settling is how long it takes until what was written counts: an HPA looks every 15 s
// and KEDA every 30 s, and either may still do what it had worked out before.
const settling = 45 * time.Second

// Seen is what there is now. It is read from the API server and not from a cache that may
// lag behind what the last pass wrote: an image of before must not be one of a target
// that sleeps already.
type Seen struct {
	Target         string // UID of the target; "": there is none
	State                 // without the HPA that a ScaledObject has made
	TenantInactive bool
	Contest        Contest
}

// Decide returns what is to be done now. record is what an earlier Plan had saved, nil if
// nothing or if it has been forgotten since. For a group that is deleted, or that has
// turned to another target, it is called with the zero Rule for the one it has a record of
// until there is none.
func Decide(rule Rule, record *Record, seen Seen, now time.Time) Plan {
	if seen.KEDA != nil {
		seen.HPA = nil
	}
	d := decision{rule: rule, seen: seen, now: now, plan: Plan{Open: rule.Schedule.Open(now)}}
	remade := record != nil && seen.Target != "" && record.Target != seen.Target
	if remade {
		record = nil
		d.do(Forget{})
	}
	switch c := seen.Contest; {
	case seen.Target == "":
		d.say(TargetMissing, "there is no target with a scale")
	case c.Older != "":
		d.refuse(record)
	case d.plan.Open:
		d.inside(record)
	case c.Holder != "" && record == nil:
		d.say(TargetBusy, fmt.Sprintf("waits until the younger TaskGroup %s has restored the target", c.Holder))
	default:
		d.outside(record)
	}
	if remade {
		d.say(TargetRemade, "the target was deleted and made anew: what was saved of the old one is forgotten")
	}
	return d.plan
}

// decision is a plan that is being made, and what it goes by.
type decision struct {
	rule Rule
	seen Seen
	now  time.Time
	plan Plan
}

func (d *decision) do(steps ...Step) { d.plan.Steps = append(d.plan.Steps, steps...) }

func (d *decision) say(reason Reason, message string) {
	d.plan.Conditions = append(d.plan.Conditions, Condition{reason, message})
}

// refuse lets go of a target that an older group rules.
func (d *decision) refuse(record *Record) {
	d.say(TargetTaken, fmt.Sprintf("the older TaskGroup %s rules the target", d.seen.Contest.Older))
	if record != nil {
		d.release(*record)
	}
}

// inside is for a schedule that is open.
func (d *decision) inside(record *Record) {
	switch {
	case record != nil:
		d.release(*record)
	case d.rule.Schedule.Always():
		d.say(AlwaysOpen, "nothing closes its windows")
	default:
		d.say(InWindow, "inside its windows")
	}
}

// release ends an action: what it set is restored, unless it was to stay.
func (d *decision) release(r Record) {
	if r.Action == Stop {
		d.do(Forget{})
		d.say(StayedStopped, fmt.Sprintf("left as it is: it was stopped from %d replicas, and only a hand starts it again", r.Image.Replicas))
		return
	}
	goal := r.goal(d.seen.State)
	if d.held(goal) {
		return
	}
	d.say(Restored, "restored to "+goal.describe())
	if r.Phase == Acted {
		d.sayEdited(r)
	}
	steps := writes(d.seen.State, goal)
	if r.Phase == Restoring && r.Tries > 0 && d.seen.KEDA != nil {
		d.confirm(r, goal, steps)
		return
	}
	if len(steps) > 0 && r.Phase != Restoring {
		r.Phase, r.Image, r.Tries, r.Written = Restoring, goal, 0, time.Time{}
		d.do(Save(r))
	}
	d.do(steps...)
	if len(steps) > 0 && d.seen.KEDA != nil {
		d.count(r)
		return
	}
	d.do(Forget{})
}

// confirm is for what was written back where there is KEDA, which may set the number once
// more that it was pinned to. More replicas than were restored are its work, and right.
func (d *decision) confirm(r Record, goal State, steps []Step) {
	undone := d.seen.Replicas < goal.Replicas || d.seen.paused() != goal.paused()
	switch {
	case undone && r.Tries < mostTries:
		d.do(steps...)
		d.count(r)
	case undone || r.settled(d.now):
		d.do(Forget{})
	}
}

// count notes that all of it was written. It comes after the writes, so that what the API
// server refuses is tried for as long as it does.
func (d *decision) count(r Record) {
	r.Tries++
	r.Written = d.now
	d.do(Save(r))
}

// held says whether the tenant is inactive and want would add replicas.
func (d *decision) held(want State) bool {
	held := d.seen.TenantInactive && adds(d.seen.State, want)
	if held {
		d.say(TenantInactive, fmt.Sprintf("the tenant is inactive: %s once it is active", want.describe()))
	}
	return held
}

// outside is for a schedule that is closed.
func (d *decision) outside(record *Record) {
	switch {
	case record == nil && d.seen.Asleep && d.seen.Replicas == 0 && d.rule.Replicas == 0:
		d.say(AsleepByItself, "its HorizontalPodAutoscaler has scaled it to 0; once it has woken it, it is set to 0 again")
	case record == nil:
		d.act(Record{Target: d.seen.Target, Image: d.seen.State})
	case record.woken(d.seen):
		d.act(*record)
	case record.changed(d.rule), record.Phase == Restoring:
		next := *record
		next.Image = record.goal(d.seen.State) // what was edited by hand is not overwritten later either
		d.act(next)
	default:
		d.keep(*record)
	}
}

// changed says whether the rule asks for something else than was set.
func (r Record) changed(rule Rule) bool {
	return r.Action != rule.Action || edits(r.Set, rule.want(r.Image, r.Set.Asleep)) != ""
}

// woken says whether the HPA has woken what it had put to sleep before it was set to 0.
func (r Record) woken(seen Seen) bool {
	return r.Phase == Acted && r.Set.Asleep && !seen.Asleep && r.Set.Replicas == 0 && seen.Replicas > 0
}

// act begins what the rule asks for; r has the image.
func (d *decision) act(r Record) {
	r.Action, r.Phase, r.Tries, r.Written = d.rule.Action, Acting, 0, time.Time{}
	r.Set = d.rule.want(r.Image, d.seen.Asleep)
	if d.held(r.Set) {
		return
	}
	d.sayOutside(r)
	steps := writes(d.seen.State, r.Set)
	if len(steps) == 0 {
		r.Phase = Acted
		d.do(Save(r))
		return
	}
	d.do(Save(r)) // before the first write: afterwards nobody knows what was there
	d.do(steps...)
	d.count(r)
}

// keep is for what was begun by the rule as it is.
func (d *decision) keep(r Record) {
	steps := writes(d.seen.State, r.left())
	switch {
	case r.Phase == Acting && len(steps) > 0 && r.Tries < mostTries:
		if d.held(r.Set) {
			return
		}
		d.sayOutside(r)
		d.do(steps...)
		d.count(r)
		return
	case r.Phase == Acting && (len(steps) > 0 || r.settled(d.now)):
		r.Phase = Acted
		d.do(Save(r))
	}
	d.sayOutside(r)
	d.sayEdited(r)
}

// left is what is still to be set. Bounds that are left as they were are nobody's to write
// once more, whatever somebody makes of them in the meantime.
func (r Record) left() State {
	set := r.Set
	if r.Tries > 0 && set.HPA != nil && r.Image.HPA != nil && *set.HPA == *r.Image.HPA {
		set.HPA = nil
	}
	return set
}

func (d *decision) sayOutside(r Record) {
	switch r.Action {
	case Pause:
		d.say(Paused, fmt.Sprintf("outside its windows: paused from %d replicas", r.Image.Replicas))
	case Scale:
		d.say(Scaled, fmt.Sprintf("outside its windows: scaled to %d replicas from %d", r.Set.Replicas, r.Image.Replicas))
	case Stop:
		d.say(Stopped, fmt.Sprintf("outside its windows: stopped from %d replicas, and not started again by the next window", r.Image.Replicas))
	}
}

func (d *decision) sayEdited(r Record) {
	if edits := edits(r.Set, d.seen.State); edits != "" {
		d.say(EditedByHand, "changed by others since, so it is left alone and not restored: "+edits)
	}
}
