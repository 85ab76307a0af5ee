package window

import (
	"testing"
	"time"
)

// world is a target with what is on it, and the status of the group that rules it: all
// that a controller reads before it asks, and writes afterwards.
type world struct {
	target   string
	is       State
	record   *Record
	inactive bool
	contest  Contest
	log      []Step
}

func (w *world) seen() Seen {
	return Seen{Target: w.target, State: w.is, TenantInactive: w.inactive, Contest: w.contest}
}

// pass does one pass of a controller that dies after some of its steps. The HPA acts
// between any two of them.
func (w *world) pass(rule Rule, now time.Time, steps int) Plan {
	p := Decide(rule, w.record, w.seen(), now)
	for i, step := range p.Steps {
		if i == steps {
			break
		}
		w.do(step)
		w.autoscale()
	}
	return p
}

const allSteps = 100

func (w *world) do(step Step) {
	w.log = append(w.log, step)
	switch step := step.(type) {
	case Save:
		r := Record(step)
		w.record = &r
	case Forget:
		w.record = nil
	case SetHPA:
		w.is.HPA = &Bounds{step.Min, step.Max}
	case SetKEDA:
		value := string(step)
		w.is.KEDA = &value
	case SetReplicas:
		w.is.Replicas = int32(step)
	}
}

// autoscale is what an HPA does that has no metrics, and KEDA while it is paused.
func (w *world) autoscale() {
	switch {
	case w.is.KEDA != nil && *w.is.KEDA != "":
		w.is.Replicas = 0
		for _, digit := range *w.is.KEDA {
			w.is.Replicas = w.is.Replicas*10 + digit - '0'
		}
	case w.is.HPA != nil && w.is.Replicas != 0:
		w.is.Replicas = min(max(w.is.Replicas, w.is.HPA.Min), w.is.HPA.Max)
	}
}

// rule is open from 08:00 to 20:00 in UTC.
func dayRule(t testing.TB, action Action, replicas int32) Rule {
	t.Helper()
	return Rule{Schedule: schedule(t, Window{From: "08:00", To: "20:00"}), Action: action, Replicas: replicas}
}

// noon is inside the windows of dayRule, night is not.
func noon(t testing.TB) time.Time  { return utc(t, "2026-06-05 12:00") }
func night(t testing.TB) time.Time { return utc(t, "2026-06-05 23:00") }

// scaled is a target with that many replicas, without autoscalers.
func scaled(replicas int32) State { return State{Replicas: replicas} }

func withHPA(replicas, least, most int32) State {
	return State{Replicas: replicas, HPA: &Bounds{least, most}}
}

func withKEDA(replicas int32, paused string) State {
	return State{Replicas: replicas, KEDA: &paused}
}

func asleep(s State) State {
	s.Asleep = true
	return s
}
