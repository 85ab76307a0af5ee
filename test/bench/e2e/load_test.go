package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/policy"
)

func TestFits(t *testing.T) {
	tests := map[string]struct {
		nodes, pods int
		want        bool
	}{
		"by default":           {1000, 3000, true},
		"a large cluster":      {5000, 1500, true},
		"a short run":          {300, 600, true},
		"exactly four fifths":  {10, 96, true}, // 48 whole cards and 16 of slices, of 80
		"one card too many":    {10, 98, false},
		"no nodes":             {0, 100, false},
		"one pod has no speed": {1, 1, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := fits(tc.nodes, tc.pods); (err == nil) != tc.want {
				t.Errorf("fits(%d, %d) = %v, want it to: %t", tc.nodes, tc.pods, err, tc.want)
			}
			if err := (Config{Nodes: tc.nodes, Pods: tc.pods, Rounds: 1}).Validate(); (err == nil) != tc.want {
				t.Errorf("the configuration: %v, want it valid: %t", err, tc.want)
			}
		})
	}
	if err := (Config{Nodes: 1000, Pods: 3000}).Validate(); err == nil {
		t.Error("no rounds are enough")
	}
}

// TestPodsAreHalfAndHalf reads them as the scheduler does.
func TestPodsAreHalfAndHalf(t *testing.T) {
	type kind struct {
		cards, memory, cores int
		whole                bool
	}
	got := map[kind]int{}
	for i := range 10 {
		r, err := codec.Request(pod(i), policy.Default())
		if err != nil || len(r.Asks) != 1 {
			t.Fatalf("pod %d: %+v, %v", i, r, err)
		}
		ask := r.Asks[0]
		got[kind{ask.Count, int(ask.Memory), int(ask.Cores), ask.Whole}]++
	}
	if diff := cmp.Diff(map[kind]int{{1, 10000, 30, false}: 5, {1, 0, 0, true}: 5}, got); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}
