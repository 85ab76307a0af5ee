package resourcefilter

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/tenancy"
	"heteroflow.io/heteroflow/pkg/topology"
)

// threeDomains are d0 and d3, d1, d4 and d5, and d2 alone; those of the middle one
// lie on two NUMA nodes.
func threeDomains(t *testing.T) ledger.Facts {
	t.Helper()
	all := cards(6)
	for i, n := range []int{0, 0, 0, 0, 1, 1} {
		all[i].NUMA = n
	}
	b, err := topology.NewBuilder(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range [][2]int{{0, 3}, {1, 4}, {4, 5}} {
		b.Pair(all[p[0]].ID, all[p[1]].ID, "NV4")
	}
	return ledger.Facts{ID: "n1", Cards: all, Links: b.Links()}
}

// Where links are demanded each container gets cards of one domain, and who would
// fit but for that learns how many there are in one.
func TestPackOfLinkedCards(t *testing.T) {
	two, three, four := gpu.Ask{Container: "a", Count: 2, Whole: true}, gpu.Ask{Container: "a", Count: 3, Whole: true}, gpu.Ask{Container: "a", Count: 4, Whole: true}
	twoMore, one := gpu.Ask{Container: "b", Number: 1, Count: 2, Whole: true}, gpu.Ask{Container: "b", Number: 1, Count: 1, Whole: true}
	third := gpu.Ask{Container: "c", Number: 2, Count: 2, Whole: true}
	torn := func(have, want int64) pipeline.Verdict {
		return pipeline.Verdict{Reason: gpu.NVLinkUnsatisfied, Have: have, Want: want}
	}
	tests := map[string]struct {
		held []gpu.Share
		asks []gpu.Ask
		bind bool
		want []gpu.CardID
		why  pipeline.Verdict
	}{
		"the domain of the first card":       {asks: []gpu.Ask{two}, want: []gpu.CardID{"d0", "d3"}},
		"one that is large enough":           {asks: []gpu.Ask{three}, want: []gpu.CardID{"d1", "d4", "d5"}},
		"the rest of one":                    {held: []gpu.Share{whole("d0"), whole("d4")}, asks: []gpu.Ask{two}, want: []gpu.CardID{"d1", "d5"}},
		"one for each container":             {asks: []gpu.Ask{two, twoMore}, want: []gpu.CardID{"d0", "d3", "d1", "d4"}},
		"a single card may be any":           {asks: []gpu.Ask{three, one}, want: []gpu.CardID{"d1", "d4", "d5", "d0"}},
		"slices of two containers share":     {asks: []gpu.Ask{{Container: "a", Count: 3, Memory: 400}, {Container: "b", Number: 1, Count: 3, Memory: 400}}, want: []gpu.CardID{"d1", "d4", "d5", "d1", "d4", "d5"}},
		"larger than any":                    {asks: []gpu.Ask{four}, why: torn(3, 4)},
		"in use":                             {held: []gpu.Share{whole("d3"), whole("d4"), whole("d5")}, asks: []gpu.Ask{two}, why: torn(1, 2)},
		"one that is none":                   {held: []gpu.Share{whole("d3"), whole("d4"), whole("d5")}, asks: []gpu.Ask{one}, want: []gpu.CardID{"d0"}},
		"for all together":                   {asks: []gpu.Ask{two, twoMore, third}, why: torn(3, 6)},
		"there are too few anyway":           {held: []gpu.Share{whole("d0"), whole("d1"), whole("d4")}, asks: []gpu.Ask{four}, why: pipeline.Verdict{Reason: gpu.InsufficientGPUCount, Have: 3, Want: 4}},
		"on one NUMA node too":               {bind: true, held: []gpu.Share{whole("d3")}, asks: []gpu.Ask{two}, want: []gpu.CardID{"d4", "d5"}},
		"where one NUMA node is not linked":  {bind: true, held: []gpu.Share{whole("d3"), whole("d4")}, asks: []gpu.Ask{two}, why: pipeline.Verdict{Reason: gpu.NUMAUnsatisfied, Have: 4, Want: 2}},
		"... and on none there are linked":   {bind: true, held: []gpu.Share{whole("d3"), whole("d4"), whole("d5")}, asks: []gpu.Ask{two}, why: torn(1, 2)},
		"nobody is left where there is none": {held: []gpu.Share{whole("d0"), whole("d1"), whole("d2"), whole("d3"), whole("d4"), whole("d5")}, asks: []gpu.Ask{two}, why: pipeline.Verdict{Reason: gpu.InsufficientGPUCount, Have: 0, Want: 2}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := ledger.New(tenancy.Separate{})
			l.SetNode(threeDomains(t))
			for _, s := range tc.held {
				l.Confirm(gpu.Placement{Pod: gpu.PodID(s.Card), Node: "n1", Namespace: "red", Grants: []gpu.Grant{{Shares: []gpu.Share{s}}}})
			}
			n, _ := l.Snapshot().Node("n1")
			for _, judge := range []bool{true, false} {
				cand := pipeline.Candidate{Node: n, Open: []int{0, 1, 2, 3, 4, 5}, JudgeOnly: judge, Linked: true}
				c := &pipeline.Cycle{Request: &gpu.Request{Asks: tc.asks, NUMABind: tc.bind}}
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
				if diff := cmp.Diff(tc.want, got); !judge && diff != "" {
					t.Errorf("cards (-want +got):\n%s", diff)
				}
			}
		})
	}
}
