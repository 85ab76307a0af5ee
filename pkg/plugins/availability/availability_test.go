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
		unmet gpu.Reason
		want  pipeline.Verdict
	}{
		"ready":                           {ledger.Facts{}, "", pipeline.Verdict{}},
		"unavailable":                     {ledger.Facts{Unavailable: true}, "", pipeline.Verdict{Reason: gpu.NodeUnavailable}},
		"a taint is not looked at":        {ledger.Facts{PreferNoSchedule: true}, "", pipeline.Verdict{}},
		"nobody vouches for a wish":       {ledger.Facts{}, gpu.RDMAUnsupported, pipeline.Verdict{Reason: gpu.RDMAUnsupported}},
		"unavailable comes before a wish": {ledger.Facts{Unavailable: true}, gpu.RDMAUnsupported, pipeline.Verdict{Reason: gpu.NodeUnavailable}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := &pipeline.Candidate{Node: &ledger.Node{Facts: tc.facts}}
			got := Plugin{}.Filter(&pipeline.Cycle{Request: &gpu.Request{Unmet: tc.unmet}}, n)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}
