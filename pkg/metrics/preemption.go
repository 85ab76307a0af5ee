package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// PreemptionOutcome is how a preemption ended.
type PreemptionOutcome string

// The outcomes.
const (
	PreemptionBound      PreemptionOutcome = "bound"       // the preemptor has its node
	PreemptionRolledBack PreemptionOutcome = "rolled-back" // given up
	PreemptionExpired    PreemptionOutcome = "expired"     // the preemptor did not come
)

func preemptionOutcomes() []PreemptionOutcome {
	return []PreemptionOutcome{PreemptionBound, PreemptionRolledBack, PreemptionExpired}
}

// preemptions are the figures of pods that are ended so that others can run.
type preemptions struct {
	ended      *prometheus.CounterVec
	victims    prometheus.Histogram
	lasted     prometheus.Histogram
	disruption prometheus.Counter
	planning   prometheus.Histogram
}

func newPreemptions() *preemptions {
	p := &preemptions{
		ended:      counters(namePreemptions),
		victims:    histogram(namePreemptionVictims, prometheus.ExponentialBuckets(1, 2, 9)), // 256 are the most
		lasted:     histogram(namePreemptionTime, prometheus.ExponentialBuckets(0.5, 2, 13)), // to half an hour
		disruption: counter(namePreemptionDisruption),
		planning:   histogram(namePreemptionPlanning, prometheus.ExponentialBuckets(0.0001, 2, 15)),
	}
	for _, o := range preemptionOutcomes() {
		p.ended.WithLabelValues(string(o))
	}
	return p
}

func histogram(name string, buckets []float64) prometheus.Histogram {
	f := family(name)
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: f.Name, Help: f.Help, Buckets: buckets})
}

func (p *preemptions) collectors() []prometheus.Collector {
	return []prometheus.Collector{p.ended, p.victims, p.lasted, p.disruption, p.planning}
}

// PreemptionPlanned counts a preemption that begins, with so many victims.
func (m *Metrics) PreemptionPlanned(victims int) { m.preemptions.victims.Observe(float64(victims)) }

// PreemptionEnded counts how a preemption ended, and for one whose preemptor has its
// node how long after its plan.
func (m *Metrics) PreemptionEnded(o PreemptionOutcome, took time.Duration) {
	m.preemptions.ended.WithLabelValues(string(o)).Inc()
	if o == PreemptionBound {
		m.preemptions.lasted.Observe(took.Seconds())
	}
}

// Disrupted counts the time for which a pod that was ended has not run: from when it
// was asked to go until there was another in its place.
func (m *Metrics) Disrupted(lasted time.Duration) {
	m.preemptions.disruption.Add(max(lasted, 0).Seconds())
}

// PreemptionPlanning counts the time that was spent on who is to be ended for one pod,
// whatever came of it.
func (m *Metrics) PreemptionPlanning(took time.Duration) {
	m.preemptions.planning.Observe(took.Seconds())
}

// The names.
const (
	namePreemptions          = "heteroflow_preemptions_total"
	namePreemptionVictims    = "heteroflow_preemption_victims"
	namePreemptionTime       = "heteroflow_preemption_seconds"
	namePreemptionDisruption = "heteroflow_preemption_disruption_seconds_total"
	namePreemptionPlanning   = "heteroflow_preemption_planning_seconds"
)

// preemptionFamilies are those of this file.
func preemptionFamilies() []Family {
	return []Family{
		{namePreemptions, Counter, "Preemptions that have ended: the preemptor has its node, it was given up, or the preemptor did not come.",
			[]Label{{Name: "outcome", Values: texts(preemptionOutcomes())}}},
		{namePreemptionVictims, Histogram, "Pods to be ended by a plan.", nil},
		{namePreemptionTime, Histogram, "Time from the plan until the preemptor had its node.", nil},
		{namePreemptionDisruption, Counter, "Time for which pods that were ended for others have not run, all of them together: from when each was asked to go until there was another in its place.", nil},
		{namePreemptionPlanning, Histogram, "Time spent on who is to be ended for one pod, whatever came of it.", nil},
	}
}
