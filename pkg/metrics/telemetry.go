package metrics

import "time"

// TelemetryOutcome is how a reading of telemetry ended.
type TelemetryOutcome string

// The outcomes. A partial reading had queries that were answered and some that were
// not.
const (
	TelemetryComplete TelemetryOutcome = "complete"
	TelemetryPartial  TelemetryOutcome = "partial"
	TelemetryEmpty    TelemetryOutcome = "empty"
	TelemetryFailed   TelemetryOutcome = "failed"
)

func telemetryOutcomes() []TelemetryOutcome {
	return []TelemetryOutcome{TelemetryComplete, TelemetryPartial, TelemetryEmpty, TelemetryFailed}
}

// Telemetry's names.
const (
	nameTelemetryReads   = "heteroflow_telemetry_reads_total"
	nameTelemetryTime    = "heteroflow_telemetry_read_duration_seconds"
	nameTelemetryDropped = "heteroflow_telemetry_samples_dropped_total"
	nameTelemetryFresh   = "heteroflow_telemetry_known"
)

func telemetryFamilies() []Family {
	return []Family{
		{nameTelemetryReads, Counter, "Readings of telemetry: every query answered, a part of them, all of them with nothing, or none.",
			[]Label{{Name: "outcome", Values: texts(telemetryOutcomes())}}},
		{nameTelemetryTime, Histogram, "Time of a reading of telemetry, all its queries together.", nil},
		{nameTelemetryDropped, Counter, "Samples that were not used: of a card or node that is not known, of a value that cannot be, or too old.",
			[]Label{{Name: "why", About: "`unknown`, `absurd` or `stale`"}}},
		{nameTelemetryFresh, Gauge, "Cards, or nodes, of which the figure is known and not too old.",
			[]Label{{Name: "figure", About: "as in the [configuration](telemetry.md)"}}},
	}
}

// TelemetryRead counts a reading.
func (m *Metrics) TelemetryRead(samples int, err error, took time.Duration) {
	outcome := TelemetryComplete
	switch {
	case err != nil && samples == 0:
		outcome = TelemetryFailed
	case err != nil:
		outcome = TelemetryPartial
	case samples == 0:
		outcome = TelemetryEmpty
	}
	m.telemetryReads.WithLabelValues(string(outcome)).Inc()
	m.telemetryTime.WithLabelValues().Observe(took.Seconds())
}

// TelemetryDropped counts samples that are of no use.
func (m *Metrics) TelemetryDropped(why string, samples int) {
	m.telemetryDropped.WithLabelValues(why).Add(float64(samples))
}

// TelemetryFresh notes of how many cards or nodes a figure is known.
func (m *Metrics) TelemetryFresh(figure string, of int) {
	m.telemetryFresh.WithLabelValues(figure).Set(float64(of))
}
