package window

import (
	"fmt"
	"time"
)

// mostTries is how often all of what is set is written. An autoscaler that writes
// once more what it had worked out before does so once; who still differs after the
// third time means it.
const mostTries = 3

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
	p := Plan{Open: rule.Schedule.Open(now)}
	if next, ok := rule.Schedule.Next(now); ok {
		p.Next = &next
	}
	if seen.KEDA != nil {
		seen.HPA = nil
	}
	if seen.Target == "" {
		p.say(TargetMissing, "there is no target with a scale")
		return p
	}
	remade := record != nil && record.Target != seen.Target
	if remade {
		record = nil
		p.do(Forget{})
	}
	switch c := seen.Contest; {
	case c.Older != "":
		p.refuse(record, seen)
	case p.Open:
		p.inside(rule, record, seen)
	case c.Holder != "" && record == nil:
		p.say(TargetBusy, fmt.Sprintf("waits until the younger TaskGroup %s has restored the target", c.Holder))
	default:
		p.outside(rule, record, seen)
	}
	if remade {
		p.say(TargetRemade, "the target was deleted and made anew: what was saved of the old one is forgotten")
	}
	return p
}

// refuse lets go of a target that an older group rules.
func (p *Plan) refuse(record *Record, seen Seen) {
	p.say(TargetTaken, fmt.Sprintf("the older TaskGroup %s rules the target", seen.Contest.Older))
	if record != nil {
		p.release(*record, seen)
	}
}

// held says whether the tenant is inactive and want would add replicas.
func (p *Plan) held(want State, seen Seen) bool {
	held := seen.TenantInactive && adds(seen.State, want)
	if held {
		p.say(TenantInactive, fmt.Sprintf("the tenant is inactive: %s once it is active", want.describe()))
	}
	return held
}

// inside is for a schedule that is open.
func (p *Plan) inside(rule Rule, record *Record, seen Seen) {
	switch {
	case record != nil:
		p.release(*record, seen)
	case rule.Schedule.Always():
		p.say(AlwaysOpen, "nothing closes its windows")
	default:
		p.say(InWindow, "inside its windows")
	}
}

// release ends an action: what it set is restored, unless it was to stay.
func (p *Plan) release(r Record, seen Seen) {
	if r.Action == Stop {
		p.do(Forget{})
		p.say(StayedStopped, fmt.Sprintf("inside its windows again, and left as it is: it was stopped from %d replicas", r.Image.Replicas))
		return
	}
	goal := r.goal(seen.State)
	if p.held(goal, seen) {
		return
	}
	edited := ""
	if r.Phase == Acted {
		edited = edits(r.Set, seen.State)
	}
	if steps := writes(seen.State, goal); len(steps) > 0 {
		if r.Phase != Restoring {
			r.Phase, r.Image = Restoring, goal
			p.do(Save(r))
		}
		p.do(steps...)
	}
	p.do(Forget{})
	p.say(Restored, "restored to "+goal.describe())
	p.sayEdited(edited)
}

// outside is for a schedule that is closed.
func (p *Plan) outside(rule Rule, record *Record, seen Seen) {
	switch {
	case record == nil && seen.Asleep && seen.Replicas == 0 && rule.Replicas == 0:
		p.say(AsleepByItself, "its HorizontalPodAutoscaler has scaled it to 0; once it has woken it, it is set to 0 again")
	case record == nil:
		p.act(rule, Record{Target: seen.Target, Image: seen.State}, seen)
	case record.woken(seen):
		p.act(rule, *record, seen)
	case record.changed(rule), record.Phase == Restoring:
		next := *record
		next.Image = record.goal(seen.State) // what was edited by hand is not overwritten later either
		p.act(rule, next, seen)
	default:
		p.keep(rule, *record, seen)
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
func (p *Plan) act(rule Rule, r Record, seen Seen) {
	r.Action, r.Phase, r.Tries = rule.Action, Acting, 0
	r.Set = rule.want(r.Image, seen.Asleep)
	if p.held(r.Set, seen) {
		return
	}
	if len(writes(seen.State, r.Set)) == 0 {
		r.Phase = Acted
		p.do(Save(r))
		p.sayOutside(rule, r)
		return
	}
	p.do(Save(r)) // before the first write: afterwards nobody knows what was there
	p.write(r, seen)
	p.sayOutside(rule, r)
}

// write does all of what is set. That it was done is counted at the end, so that what the
// API server refuses is tried for as long as it does.
func (p *Plan) write(r Record, seen Seen) {
	p.do(writes(seen.State, r.Set)...)
	r.Tries++
	p.do(Save(r))
}

// keep is for what was begun by the rule as it is.
func (p *Plan) keep(rule Rule, r Record, seen Seen) {
	if r.Phase == Acting && r.Tries < mostTries && len(writes(seen.State, r.Set)) > 0 {
		if !p.held(r.Set, seen) {
			p.write(r, seen)
			p.sayOutside(rule, r)
		}
		return
	}
	if r.Phase == Acting {
		r.Phase = Acted
		p.do(Save(r))
	}
	p.sayOutside(rule, r)
	p.sayEdited(edits(r.Set, seen.State))
}

func (p *Plan) sayOutside(rule Rule, r Record) {
	switch rule.Action {
	case Pause:
		p.say(Paused, fmt.Sprintf("outside its windows: paused from %d replicas", r.Image.Replicas))
	case Scale:
		p.say(Scaled, fmt.Sprintf("outside its windows: scaled to %d replicas from %d", rule.Replicas, r.Image.Replicas))
	case Stop:
		p.say(Stopped, fmt.Sprintf("outside its windows: stopped from %d replicas, and not started again by the next window", r.Image.Replicas))
	}
}

func (p *Plan) sayEdited(edits string) {
	if edits != "" {
		p.say(EditedByHand, "changed by others, and left so: "+edits)
	}
}
