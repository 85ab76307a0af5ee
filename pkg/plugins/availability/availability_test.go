package availability

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

func TestFilter(t *testing.T) {
	tests := map[string]struct {
		facts ledger.Facts
		want  pipeline.Verdict
	}{
		"ready":                        {ledger.Facts{}, pipeline.Verdict{}},
		"unavailable":                  {ledger.Facts{Unavailable: true}, pipeline.Verdict{Reason: gpu.NodeUnavailable}},
		"a taint is not looked at":     {ledger.Facts{PreferNoSchedule: true}, pipeline.Verdict{}},
		"a node that counts cards":     {ledger.Facts{CountOnly: true}, pipeline.Verdict{}},
		"unavailable and no inventory": {ledger.Facts{Unavailable: true, CountOnly: true}, pipeline.Verdict{Reason: gpu.NodeUnavailable}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := &pipeline.Candidate{Node: &ledger.Node{Facts: tc.facts}}
			got := Plugin{}.Filter(&pipeline.Cycle{Request: &gpu.Request{}}, n)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}
