package metrics

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/ledger"
)

// preemptionFigures are the series about preemption.
func preemptionFigures(t *testing.T, m *Metrics) map[string][2]float64 {
	t.Helper()
	return figures(t, m, preemptionFamilies())
}

// figures are the series of these metrics: of a histogram, how many and the sum.
func figures(t *testing.T, m *Metrics, of []Family) map[string][2]float64 {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]bool{}
	for _, f := range of {
		ours[f.Name] = true
	}
	figures := map[string][2]float64{}
	for _, f := range families {
		if !ours[f.GetName()] {
			continue
		}
		for _, s := range f.GetMetric() {
			name := f.GetName()
			for _, l := range s.GetLabel() {
				name += " " + l.GetValue()
			}
			if h := s.GetHistogram(); h != nil {
				figures[name] = [2]float64{float64(h.GetSampleCount()), h.GetSampleSum()}
			} else {
				figures[name] = [2]float64{s.GetCounter().GetValue()}
			}
		}
	}
	return figures
}

func TestPreemptions(t *testing.T) {
	m := New(View{Ledger: func() ledger.Snapshot { return ledger.Snapshot{} }, Ready: func() bool { return true }})
	want := map[string][2]float64{
		"heteroflow_preemptions_total bound": {}, "heteroflow_preemptions_total rolled-back": {}, "heteroflow_preemptions_total expired": {},
		"heteroflow_preemption_victims": {}, "heteroflow_preemption_seconds": {}, "heteroflow_preemption_planning_seconds": {},
		"heteroflow_preemption_disruption_seconds_total": {},
	}
	if diff := cmp.Diff(want, preemptionFigures(t, m)); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	m.PreemptionPlanned(3)
	m.PreemptionPlanned(1)
	m.PreemptionEnded(PreemptionBound, 8*time.Second)
	m.PreemptionEnded(PreemptionRolledBack, 60*time.Second)
	m.PreemptionPlanning(500 * time.Millisecond)
	m.Disrupted(4 * time.Second)
	m.Disrupted(-time.Second) // clocks of nodes differ
	want["heteroflow_preemptions_total bound"] = [2]float64{1}
	want["heteroflow_preemptions_total rolled-back"] = [2]float64{1}
	want["heteroflow_preemption_victims"] = [2]float64{2, 4}
	want["heteroflow_preemption_seconds"] = [2]float64{1, 8}
	want["heteroflow_preemption_planning_seconds"] = [2]float64{1, .5}
	want["heteroflow_preemption_disruption_seconds_total"] = [2]float64{4}
	if diff := cmp.Diff(want, preemptionFigures(t, m)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
