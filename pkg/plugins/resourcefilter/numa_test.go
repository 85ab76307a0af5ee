package resourcefilter

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// twoSides are d0 and d1 on NUMA node 0, d2 to d4 on node 1, d5 on none known.
func twoSides() []gpu.Card {
	all := cards(6)
	for i, n := range []int{0, 0, 1, 1, 1, gpu.NoNUMA} {
		all[i].NUMA = n
	}
	return all
}

func TestPackOnOneNUMA(t *testing.T) {
	tests := map[string]struct {
		held []gpu.Share
		asks []gpu.Ask
		want []gpu.CardID
		why  pipeline.Verdict
	}{
		"the first side that has enough": {asks: []gpu.Ask{{Count: 2, Whole: true}}, want: []gpu.CardID{"d0", "d1"}},
		"the other, when it is in use":   {held: []gpu.Share{whole("d1")}, asks: []gpu.Ask{{Count: 2, Whole: true}}, want: []gpu.CardID{"d2", "d3"}},
		"the larger side":                {asks: []gpu.Ask{{Count: 3, Whole: true}}, want: []gpu.CardID{"d2", "d3", "d4"}},
		"two containers on one side": {
			asks: []gpu.Ask{{Container: "a", Count: 2, Whole: true}, {Container: "b", Number: 1, Count: 1, Whole: true}},
			want: []gpu.CardID{"d2", "d3", "d4"},
		},
		"slices":               {asks: []gpu.Ask{{Count: 3, Memory: 100}}, want: []gpu.CardID{"d2", "d3", "d4"}},
		"more than a side has": {asks: []gpu.Ask{{Count: 4, Whole: true}}, why: pipeline.Verdict{Reason: gpu.NUMAUnsatisfied, Have: 3, Want: 4}},
		"more than is free on a side": {
			held: []gpu.Share{whole("d2")}, asks: []gpu.Ask{{Count: 3, Whole: true}},
			why: pipeline.Verdict{Reason: gpu.NUMAUnsatisfied, Have: 3, Want: 3},
		},
		"more than the node has": {asks: []gpu.Ask{{Count: 7, Whole: true}}, why: pipeline.Verdict{Reason: gpu.InsufficientGPUCount, Have: 6, Want: 7}},
		"a card whose side is not known stands alone": {
			held: []gpu.Share{whole("d0"), whole("d1"), whole("d2"), whole("d3"), whole("d4")}, asks: []gpu.Ask{{Count: 1, Whole: true}},
			why: pipeline.Verdict{Reason: gpu.NUMAUnsatisfied, Have: 3, Want: 1},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := books(twoSides(), tc.held)
			n, _ := l.Snapshot().Node("n1")
			for _, judge := range []bool{true, false} {
				cand := pipeline.Candidate{Node: n, Open: []int{0, 1, 2, 3, 4, 5}, JudgeOnly: judge}
				c := &pipeline.Cycle{Request: &gpu.Request{Asks: tc.asks, NUMABind: true}}
				grants, v := Plugin{}.Pack(c, &cand)
				if diff := cmp.Diff(tc.why, v); diff != "" {
					t.Errorf("verdict (-want +got):\n%s", diff)
				}
				var got []gpu.CardID
				for _, g := range grants {
					for _, s := range g.Shares {
						got = append(got, s.Card)
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" && !judge {
					t.Errorf("cards (-want +got):\n%s", diff)
				}
			}
		})
	}
}
