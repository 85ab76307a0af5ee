package metrics

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/ledger"
)

func TestWindows(t *testing.T) {
	m := New(View{Ledger: func() ledger.Snapshot { return ledger.Snapshot{} }, Ready: func() bool { return true }})
	want := map[string][2]float64{"heteroflow_window_transition_lag_seconds": {}}
	for _, step := range []string{"save", "forget", "hpa", "keda", "replicas"} {
		for _, outcome := range []string{"done", "conflict", "failed"} {
			want["heteroflow_window_steps_total "+outcome+" "+step] = [2]float64{}
		}
	}
	if diff := cmp.Diff(want, figures(t, m, windowFamilies())); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	m.WindowStep(WindowSave, WindowDone)
	m.WindowStep(WindowSave, WindowDone)
	m.WindowStep(WindowReplicas, WindowConflict)
	m.WindowStep(WindowHPA, WindowFailed)
	m.WindowLag(3 * time.Second)
	m.WindowLag(-time.Second) // a clock was set back
	want["heteroflow_window_steps_total done save"] = [2]float64{2}
	want["heteroflow_window_steps_total conflict replicas"] = [2]float64{1}
	want["heteroflow_window_steps_total failed hpa"] = [2]float64{1}
	want["heteroflow_window_transition_lag_seconds"] = [2]float64{2, 3}
	if diff := cmp.Diff(want, figures(t, m, windowFamilies())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
