package metrics

import "github.com/prometheus/client_golang/prometheus"

// RuntimeAction is what was done about a pod whose time to run ends.
type RuntimeAction string

// The actions.
const (
	RuntimeWarned    RuntimeAction = "warned"        // its time ends soon
	RuntimeReported  RuntimeAction = "reported"      // longer than the default, which nothing enforces
	RuntimeSuspended RuntimeAction = "job_suspended" // once a Job
	RuntimeStopped   RuntimeAction = "pod_stopped"   // by a deadline that the kubelet ends it by
	RuntimeHastened  RuntimeAction = "pod_hastened"  // it is being deleted, with a longer grace than its own
	RuntimeEvicted   RuntimeAction = "pod_evicted"   // where such a deadline is refused
	RuntimeBlocked   RuntimeAction = "blocked"       // it may not be evicted either
	RuntimeFailed    RuntimeAction = "failed"        // the API server did not do it
)

func runtimeActions() []RuntimeAction {
	return []RuntimeAction{RuntimeWarned, RuntimeReported, RuntimeSuspended, RuntimeStopped, RuntimeHastened, RuntimeEvicted, RuntimeBlocked, RuntimeFailed}
}

func newRuntimes() *prometheus.CounterVec {
	c := counters(nameRuntimes)
	for _, a := range runtimeActions() {
		c.WithLabelValues(string(a))
	}
	return c
}

// RuntimeExceeded counts what was done about a pod whose time to run ends.
func (m *Metrics) RuntimeExceeded(a RuntimeAction) { m.runtimes.WithLabelValues(string(a)).Inc() }

// The names.
const nameRuntimes = "heteroflow_runtime_exceeded_total"

// runtimeFamilies are those of this file.
func runtimeFamilies() []Family {
	return []Family{
		{nameRuntimes, Counter, "What was done about pods whose time to run ends: warned, reported to be longer than a default that nothing enforces, their Job suspended (once a Job), stopped by a deadline that the kubelet goes by, deleted with their own grace where somebody has deleted them with a longer one, evicted where that is refused, kept by a PodDisruptionBudget, or failed, and tried again.",
			[]Label{{Name: "action", Values: texts(runtimeActions())}}},
	}
}
