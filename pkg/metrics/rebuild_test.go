package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"heteroflow.io/heteroflow/pkg/ledger"
)

// What is counted of services that are rebuilt, and of pods whose time is over; each
// series is there from the first.
func TestRebuildsAndRuntimes(t *testing.T) {
	m := New(View{Ledger: func() ledger.Snapshot { return ledger.Snapshot{} }, Ready: func() bool { return true }})
	for range 2 {
		m.Rebuilt(RebuildEvicted)
	}
	m.Rebuilt(RebuildBlocked)
	m.RebuildHalted(3)
	m.RuntimeExceeded(RuntimeSuspended)
	m.RuntimeExceeded(RuntimeWarned)
	want := `
# HELP heteroflow_rebuild_halted_groups Inference TaskGroups of which nothing is rebuilt because more than half of all nodes, or of their own, are not ready at once.
# TYPE heteroflow_rebuild_halted_groups gauge
heteroflow_rebuild_halted_groups 3
# HELP heteroflow_rebuilds_total ` + family(nameRebuilds).Help + `
# TYPE heteroflow_rebuilds_total counter
heteroflow_rebuilds_total{outcome="blocked"} 1
heteroflow_rebuilds_total{outcome="evicted"} 2
heteroflow_rebuilds_total{outcome="failed"} 0
heteroflow_rebuilds_total{outcome="overtaken"} 0
heteroflow_rebuilds_total{outcome="serves"} 0
heteroflow_rebuilds_total{outcome="unowned"} 0
# HELP heteroflow_runtime_exceeded_total ` + family(nameRuntimes).Help + `
# TYPE heteroflow_runtime_exceeded_total counter
heteroflow_runtime_exceeded_total{action="blocked"} 0
heteroflow_runtime_exceeded_total{action="failed"} 0
heteroflow_runtime_exceeded_total{action="job_suspended"} 1
heteroflow_runtime_exceeded_total{action="pod_evicted"} 0
heteroflow_runtime_exceeded_total{action="pod_hastened"} 0
heteroflow_runtime_exceeded_total{action="pod_stopped"} 0
heteroflow_runtime_exceeded_total{action="reported"} 0
heteroflow_runtime_exceeded_total{action="warned"} 1
`
	if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), nameRebuilds, nameRebuildHalted, nameRuntimes); err != nil {
		t.Error(err)
	}
}
