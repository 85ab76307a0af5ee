package window

import (
	"errors"
	"fmt"
)

// Action is what is done outside the windows.
type Action string

// The actions.
const (
	Pause Action = "pause" // to 0 replicas, and back
	Scale Action = "scale" // to some replicas, and back
	Stop  Action = "stop"  // to 0 replicas; nothing brings them back by itself
)

// Written is a rule as its author writes it.
type Written struct {
	Windows  []Window // none: always open, the action is never done
	Action   string   // pause, scale or stop
	Replicas *int32   // of scale
}

// Rule says when a service is to be awake, and what is done when it is not. The zero
// Rule has it always awake: what an earlier one did is restored.
type Rule struct {
	Schedule Schedule
	Action   Action
	Replicas int32 // outside the windows
}

// Parse reads a rule, or returns all that is wrong with it, by the names of its fields.
// It reads the tz database, so it is called for an edit and not for each pass.
func Parse(w Written) (Rule, error) {
	schedule, windowsErr := parseWindows("windows", w.Windows)
	rule := Rule{Schedule: schedule, Action: Action(w.Action)}
	var actionErr, replicasErr error
	switch {
	case w.Action == "" && len(w.Windows) == 0:
	case rule.Action != Pause && rule.Action != Scale && rule.Action != Stop:
		actionErr = fmt.Errorf("windowAction: %q is not pause, scale or stop", w.Action)
	}
	switch {
	case rule.Action != Scale && w.Replicas != nil:
		replicasErr = fmt.Errorf("replicas: goes with the windowAction scale, not with %q", w.Action)
	case rule.Action != Scale:
	case w.Replicas == nil:
		replicasErr = errors.New("replicas: is missing: the windowAction scale needs it")
	case *w.Replicas < 1:
		replicasErr = fmt.Errorf("replicas: %d is less than 1: for none there are the windowActions pause and stop", *w.Replicas)
	default:
		rule.Replicas = *w.Replicas
	}
	if err := errors.Join(windowsErr, actionErr, replicasErr); err != nil {
		return Rule{}, err
	}
	return rule, nil
}
