package resourcefilter

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Memory that somebody uses who is not in the books is not given to anybody. Of each
// card 100 MiB are kept back, and hide as much of it.
func TestForeignMemory(t *testing.T) {
	short := func(have, want, foreign int64) pipeline.Verdict {
		return pipeline.Verdict{Reason: gpu.InsufficientGPUMemory, Have: have, Want: want, Foreign: foreign}
	}
	tests := map[string]struct {
		held  []gpu.Share
		used  []int64 // of d0 and on
		asks  []gpu.Ask
		where string
		want  pipeline.Verdict
	}{
		"a slice beside it":                    {nil, []int64{500}, []gpu.Ask{{Memory: 500}}, "c0:d0", pipeline.Verdict{}},
		"a slice too large for that":           {nil, []int64{500}, []gpu.Ask{{Memory: 501}}, "", short(500, 501, 400)},
		"what is kept back covers it":          {nil, []int64{100}, []gpu.Ask{{Memory: 900}}, "c0:d0", pipeline.Verdict{}},
		"what a pod holds covers it":           {[]gpu.Share{slice("d0", 400, 0)}, []int64{500}, []gpu.Ask{{Memory: 500}}, "c0:d0", pipeline.Verdict{}},
		"beside a pod that uses less":          {[]gpu.Share{slice("d0", 400, 0)}, []int64{50}, []gpu.Ask{{Memory: 501}}, "", short(500, 501, 0)},
		"beside a pod and more":                {[]gpu.Share{slice("d0", 400, 0)}, []int64{600}, []gpu.Ask{{Memory: 401}}, "", short(400, 401, 100)},
		"another card has room":                {nil, []int64{500, 0}, []gpu.Ask{{Memory: 600}}, "c0:d1", pipeline.Verdict{}},
		"all of the card is used":              {nil, []int64{2000}, []gpu.Ask{{Memory: 1}}, "", short(0, 1, 900)},
		"a whole card, whatever is used":       {nil, []int64{900}, []gpu.Ask{{Whole: true}}, "c0:d0", pipeline.Verdict{}},
		"a whole card with as much as is left": {nil, []int64{500}, []gpu.Ask{{Whole: true, Memory: 600}}, "c0:d0", pipeline.Verdict{}},
		"a whole card with more":               {nil, []int64{500}, []gpu.Ask{{Whole: true, Memory: 601}}, "", short(600, 601, 400)},
		"the other card as a whole":            {nil, []int64{500, 100}, []gpu.Ask{{Whole: true, Memory: 1000}}, "c0:d1", pipeline.Verdict{}},
		"one of two":                           {nil, []int64{500, 100}, []gpu.Ask{{Whole: true, Memory: 1000, Count: 2}}, "", short(600, 1000, 400)},
		"a whole card that is held is not free": {[]gpu.Share{whole("d0")}, []int64{1000}, []gpu.Ask{{Whole: true, Memory: 1000}}, "",
			pipeline.Verdict{Reason: gpu.InsufficientGPUCount, Want: 1}},
		"two containers on cards unlike": {nil, []int64{500, 0}, []gpu.Ask{{Memory: 450}, {Memory: 800}}, "c0:d0 c1:d1", pipeline.Verdict{}},
		"two containers on one":          {nil, []int64{500}, []gpu.Ask{{Memory: 250}, {Memory: 251}}, "", short(249, 250, 400)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := books(cards(len(tc.used)), tc.held)
			r := ledger.Readings{Cards: map[gpu.CardID]gpu.Reading{}}
			for i, used := range tc.used {
				r.Cards[cards(len(tc.used))[i].ID] = gpu.Reading{MemoryUsed: gpu.Measured(used)}
			}
			l.SetReadings("n1", r)
			grants, got := pack(t, request(tc.asks...), l)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.where, where(grants)); diff != "" {
				t.Errorf("grants (-want +got):\n%s", diff)
			}
		})
	}
}
