package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// WindowStep is what a window has written.
type WindowStep string

// The steps.
const (
	WindowSave     WindowStep = "save"     // what was before, into the status of the TaskGroup
	WindowForget   WindowStep = "forget"   // that it was saved
	WindowHPA      WindowStep = "hpa"      // bounds
	WindowKEDA     WindowStep = "keda"     // pause
	WindowReplicas WindowStep = "replicas" // scale
)

func windowSteps() []WindowStep {
	return []WindowStep{WindowSave, WindowForget, WindowHPA, WindowKEDA, WindowReplicas}
}

// WindowOutcome is how a step of a window ended.
type WindowOutcome string

// The outcomes.
const (
	WindowDone     WindowOutcome = "done"
	WindowConflict WindowOutcome = "conflict" // it has changed meanwhile: decided anew
	WindowFailed   WindowOutcome = "failed"
)

func windowOutcomes() []WindowOutcome {
	return []WindowOutcome{WindowDone, WindowConflict, WindowFailed}
}

// windows are the figures of what puts services to sleep and wakes them.
type windows struct {
	steps *prometheus.CounterVec
	lag   prometheus.Histogram
}

func newWindows() *windows {
	w := &windows{steps: counters(nameWindowSteps), lag: histogram(nameWindowLag, prometheus.ExponentialBuckets(0.25, 2, 15))} // to an hour
	for _, step := range windowSteps() {
		for _, outcome := range windowOutcomes() {
			w.steps.WithLabelValues(string(step), string(outcome))
		}
	}
	return w
}

func (w *windows) collectors() []prometheus.Collector {
	return []prometheus.Collector{w.steps, w.lag}
}

// WindowStep counts one step and how it ended.
func (m *Metrics) WindowStep(step WindowStep, outcome WindowOutcome) {
	m.windows.steps.WithLabelValues(string(step), string(outcome)).Inc()
}

// WindowLag counts how long after a window has opened or closed that began to be seen to.
func (m *Metrics) WindowLag(lag time.Duration) { m.windows.lag.Observe(max(lag, 0).Seconds()) }

// The names.
const (
	nameWindowSteps = "heteroflow_window_steps_total"
	nameWindowLag   = "heteroflow_window_transition_lag_seconds"
)

// windowFamilies are those of this file.
func windowFamilies() []Family {
	return []Family{
		{nameWindowSteps, Counter, "What was written since the windows of a TaskGroup have opened or closed: what was before, into its status; that it is forgotten; bounds of a HorizontalPodAutoscaler; " +
			"KEDA's pause; the scale. Conflict: it had changed meanwhile, and was decided anew.",
			[]Label{{Name: "step", Values: texts(windowSteps())}, {Name: "outcome", Values: texts(windowOutcomes())}}},
		{nameWindowLag, Histogram, "Time from the opening or closing of a TaskGroup's windows until the first step for it was done.", nil},
	}
}
