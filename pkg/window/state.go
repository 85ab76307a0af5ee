package window

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// State is all of a target that a window may change.
type State struct {
	Replicas int32
	HPA      *Bounds // of the HorizontalPodAutoscaler; nil: none
	// KEDA is the annotation autoscaling.keda.sh/paused-replicas of the ScaledObject; ""
	// where it has none; nil: no ScaledObject.
	KEDA *string
	// Asleep is the HPA's condition ScaledToZero: it has scaled to 0 by itself, and it may
	// wake what has 0 replicas.
	Asleep bool
}

// Bounds are an HPA's minReplicas and maxReplicas.
type Bounds struct{ Min, Max int32 }

func (b Bounds) String() string { return fmt.Sprintf("%d..%d", b.Min, b.Max) }

// Phase is how far an action has come.
type Phase string

// The phases of a Record.
const (
	Acting    Phase = "Acting"    // being set, or set and not yet seen so
	Acted     Phase = "Acted"     // was seen as set: whatever differs now was changed by others
	Restoring Phase = "Restoring" // being written back: Image is what it becomes
)

// Record is what is remembered of an action, in the status of its group, from before
// its first step until the last of the restoring.
type Record struct {
	Target string // UID of the object that it is about
	Action Action
	Image  State // before
	Set    State // what was, or is being, set; Asleep: as it was then
	Phase  Phase
	Tries  int // how often all of it was written in this phase
	// Written is when that was last; zero: never.
	Written time.Time
}

// settled says whether whoever had worked something out before the last write has had
// the time to do it. A clock that was set back is not waited for.
func (r Record) settled(now time.Time) bool {
	return now.Before(r.Written) || now.Sub(r.Written) >= settling
}

// want returns what the rule makes of a target that was as in image.
func (r Rule) want(image State, asleep bool) State {
	want := State{Replicas: r.Replicas, Asleep: asleep}
	switch {
	case image.KEDA != nil:
		paused := strconv.Itoa(int(r.Replicas))
		want.KEDA = &paused
	case image.HPA == nil:
	case r.Replicas > 0:
		want.HPA = &Bounds{r.Replicas, r.Replicas}
	case image.HPA.Min < 1 && !asleep:
		want.HPA = &Bounds{1, max(image.HPA.Max, 1)}
	default:
		want.HPA = image.HPA
	}
	return want
}

// writes returns the steps that make seen be like want. Who would pull the replicas back
// comes before them; only where they become 0 the HPA comes after, since it does nothing
// then, while its bounds might add some before. With any of them the replicas are written
// too: it may have changed them since they were seen. One that is not there has nothing to
// be set.
func writes(seen, want State) []Step {
	var steps, hpa, replicas []Step
	if seen.KEDA != nil && want.KEDA != nil && *seen.KEDA != *want.KEDA {
		steps = append(steps, SetKEDA(*want.KEDA))
	}
	if seen.HPA != nil && want.HPA != nil && *seen.HPA != *want.HPA {
		hpa = append(hpa, SetHPA(*want.HPA))
	}
	if seen.Replicas != want.Replicas || len(steps)+len(hpa) > 0 {
		replicas = append(replicas, SetReplicas(want.Replicas))
	}
	if want.Replicas == 0 {
		return slices.Concat(steps, replicas, hpa)
	}
	return slices.Concat(steps, hpa, replicas)
}

// edits says what of seen others have changed since it was as set; "" if nothing.
func edits(set, seen State) string {
	var all []string
	note := func(what, was, is string) {
		if was != is {
			all = append(all, fmt.Sprintf("%s is %s and was set to %s", what, is, was))
		}
	}
	note("replicas", strconv.Itoa(int(set.Replicas)), strconv.Itoa(int(seen.Replicas)))
	note("HorizontalPodAutoscaler", set.bounds(), seen.bounds())
	note("paused-replicas of KEDA", set.paused(), seen.paused())
	return strings.Join(all, ", ")
}

// describe is for people.
func (s State) describe() string {
	text := fmt.Sprintf("%d replicas", s.Replicas)
	if s.HPA != nil {
		text += ", HorizontalPodAutoscaler " + s.HPA.String()
	}
	if s.KEDA != nil && *s.KEDA != "" {
		text += ", paused-replicas of KEDA " + strconv.Quote(*s.KEDA)
	}
	return text
}

func (s State) bounds() string {
	if s.HPA == nil {
		return "none"
	}
	return s.HPA.String()
}

func (s State) paused() string {
	if s.KEDA == nil {
		return "none"
	}
	return strconv.Quote(*s.KEDA)
}

// goal returns what restoring makes of seen: what is as it was set becomes as it was
// before, what others have changed since stays.
func (r Record) goal(seen State) State {
	goal := r.Image.alive(seen)
	if r.Phase != Acted {
		return goal
	}
	if seen.Replicas != r.Set.Replicas {
		goal.Replicas = seen.Replicas
	}
	if seen.bounds() != r.Set.bounds() {
		goal.HPA = seen.HPA
	}
	if seen.paused() != r.Set.paused() {
		goal.KEDA = seen.KEDA
	}
	return goal
}

// alive is goal, unless that is 0 replicas with an HPA that had gone there by itself and
// would not come back, since it has scaled since: then it is 1, and the HPA goes on from
// there.
func (goal State) alive(seen State) State {
	if goal.Asleep && !seen.Asleep && goal.Replicas == 0 && goal.HPA != nil && goal.HPA.Min == 0 {
		goal.Replicas = 1
	}
	return goal
}

// adds says whether making seen like want adds replicas: itself, or by a minimum that
// the HPA sees to then.
func adds(seen, want State) bool {
	if want.Replicas > seen.Replicas {
		return true
	}
	raised := want.HPA != nil && seen.HPA != nil && want.HPA.Min > seen.HPA.Min
	return raised && want.Replicas > 0 && want.HPA.Min > seen.Replicas
}
