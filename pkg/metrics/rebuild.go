package metrics

import "github.com/prometheus/client_golang/prometheus"

// RebuildOutcome is what came of a pod of a service whose node is lost.
type RebuildOutcome string

// The outcomes.
const (
	RebuildEvicted   RebuildOutcome = "evicted"   // so that its owner makes another
	RebuildServes    RebuildOutcome = "serves"    // it is ready after all
	RebuildOvertaken RebuildOutcome = "overtaken" // its node is back, or it has changed or gone
	RebuildBlocked   RebuildOutcome = "blocked"   // it may not be evicted
	RebuildUnowned   RebuildOutcome = "unowned"   // nobody would make another
	RebuildFailed    RebuildOutcome = "failed"    // the API server did not do it
)

func rebuildOutcomes() []RebuildOutcome {
	return []RebuildOutcome{RebuildEvicted, RebuildServes, RebuildOvertaken, RebuildBlocked, RebuildUnowned, RebuildFailed}
}

func newRebuilds() *prometheus.CounterVec {
	c := counters(nameRebuilds)
	for _, o := range rebuildOutcomes() {
		c.WithLabelValues(string(o))
	}
	return c
}

// Rebuilt counts a look at a pod of a service whose node is lost.
func (m *Metrics) Rebuilt(o RebuildOutcome) { m.rebuilds.WithLabelValues(string(o)).Inc() }

// RebuildHalted tells for how many services nothing is rebuilt, since too many nodes
// are lost at once.
func (m *Metrics) RebuildHalted(groups int) { m.rebuildHalted.Set(float64(groups)) }

// The names.
const (
	nameRebuilds      = "heteroflow_rebuilds_total"
	nameRebuildHalted = "heteroflow_rebuild_halted_groups"
)

// rebuildFamilies are those of this file.
func rebuildFamilies() []Family {
	return []Family{
		{nameRebuilds, Counter, "Looks at pods of inference TaskGroups whose node is gone or not ready: evicted so that their owner makes another, found to serve still, found with their node back or changed themselves, kept by a PodDisruptionBudget or a right that is missing, without an owner that would make another elsewhere (counted once a pod), or failed. All but the first and the fifth are looked at again.",
			[]Label{{Name: "outcome", Values: texts(rebuildOutcomes())}}},
		{nameRebuildHalted, Gauge, "Inference TaskGroups of which nothing is rebuilt because more than half of all nodes, or of their own, are not ready at once.", nil},
	}
}
