package preempt

import (
	"strings"
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/preempt"
)

func TestRuleNamesNodesThatWereRejectedAlikeTogether(t *testing.T) {
	const hopeless, dearer = "it would not fit even if all were ended who may be", "more would have to be ended"
	begin := "of lower priority and preemptible, the fewest that make room on node n1"
	tests := map[string]struct {
		rejected []preempt.Rejection
		want     string
	}{
		"none": {nil, begin},
		"one":  {[]preempt.Rejection{{Node: "n2", Why: hopeless}}, begin + "; not n2: " + hopeless},
		"two kinds, mixed": {
			[]preempt.Rejection{{Node: "n2", Why: hopeless}, {Node: "n3", Why: dearer}, {Node: "n4", Why: hopeless}},
			begin + "; not n2, n4: " + hopeless + "; not n3: " + dearer,
		},
		"longer than its field": {
			[]preempt.Rejection{{Node: "n2", Why: strings.Repeat("x", 3000)}},
			(begin + "; not n2: " + strings.Repeat("x", 3000))[:2041] + " ...",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ruleOf(&preempt.Plan{Placement: gpu.Placement{Node: "n1"}, Rejected: tc.rejected})
			if got != tc.want || len(got) > 2048 {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
