package affinity

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// four returns a node of four healthy cards, changed as the test wants.
func four(change func(cards []ledger.Card)) *pipeline.Candidate {
	n := &pipeline.Candidate{Node: &ledger.Node{}, Open: []int{0, 1, 2, 3}}
	for _, c := range []gpu.Card{
		{ID: "d0", Model: "NVIDIA A100-SXM4-80GB", NUMA: 0},
		{ID: "d1", Model: "NVIDIA A100-SXM4-80GB", NUMA: 0},
		{ID: "d2", Model: "NVIDIA A100-PCIE-40GB", NUMA: 1},
		{ID: "d3", Model: "NVIDIA H20", NUMA: gpu.NoNUMA},
	} {
		c.Vendor, c.Healthy = gpu.Nvidia, true
		n.Node.Cards = append(n.Node.Cards, ledger.Card{Card: c})
	}
	if change != nil {
		change(n.Node.Cards)
	}
	return n
}

func TestFilter(t *testing.T) {
	refused := func(r gpu.Reason, have, want int64) pipeline.Verdict {
		return pipeline.Verdict{Reason: r, Have: have, Want: want}
	}
	tests := map[string]struct {
		count   int
		request gpu.Request
		cards   func([]ledger.Card)
		want    pipeline.Verdict
		open    []int // after a yes
	}{
		"no wishes": {count: 4, request: gpu.Request{NUMA: gpu.NoNUMA}, open: []int{0, 1, 2, 3}},

		"model, as a part and in any case": {count: 3, request: gpu.Request{Models: []string{"a100"}, NUMA: gpu.NoNUMA}, open: []int{0, 1, 2}},
		"one of two models":                {count: 2, request: gpu.Request{Models: []string{"H20", "pcie"}, NUMA: gpu.NoNUMA}, open: []int{2, 3}},
		"one card of the model too few":    {count: 4, request: gpu.Request{Models: []string{"A100"}, NUMA: gpu.NoNUMA}, want: refused(gpu.DeviceModelMismatch, 3, 4)},
		"no card of the model":             {count: 1, request: gpu.Request{Models: []string{"V100"}, NUMA: gpu.NoNUMA}, want: refused(gpu.DeviceModelMismatch, 0, 1)},
		"not this model":                   {count: 1, request: gpu.Request{NotModels: []string{"A100"}, NUMA: gpu.NoNUMA}, open: []int{3}},
		"this model, but not that one":     {count: 2, request: gpu.Request{Models: []string{"A100"}, NotModels: []string{"pcie"}, NUMA: gpu.NoNUMA}, open: []int{0, 1}},
		"a model both wanted and not":      {count: 1, request: gpu.Request{Models: []string{"H20"}, NotModels: []string{"h20"}, NUMA: gpu.NoNUMA}, want: refused(gpu.DeviceModelMismatch, 0, 1)},

		"these cards alone":          {count: 2, request: gpu.Request{Cards: []gpu.CardID{"d3", "d0", "gone"}, NUMA: gpu.NoNUMA}, open: []int{0, 3}},
		"UUIDs are exact":            {count: 1, request: gpu.Request{Cards: []gpu.CardID{"D3", "d"}, NUMA: gpu.NoNUMA}, want: refused(gpu.UUIDFiltered, 0, 1)},
		"not these cards":            {count: 2, request: gpu.Request{NotCards: []gpu.CardID{"d0", "d2"}, NUMA: gpu.NoNUMA}, open: []int{1, 3}},
		"both lists name the card":   {count: 1, request: gpu.Request{Cards: []gpu.CardID{"d0"}, NotCards: []gpu.CardID{"d0"}, NUMA: gpu.NoNUMA}, want: refused(gpu.UUIDFiltered, 0, 1)},
		"not these, one too few":     {count: 3, request: gpu.Request{NotCards: []gpu.CardID{"d0", "d2"}, NUMA: gpu.NoNUMA}, want: refused(gpu.UUIDFiltered, 2, 3)},
		"NUMA node 0":                {count: 2, request: gpu.Request{NUMA: 0}, open: []int{0, 1}},
		"NUMA node 0, one too few":   {count: 3, request: gpu.Request{NUMA: 0}, want: refused(gpu.NUMAUnsatisfied, 2, 3)},
		"NUMA node that nobody has":  {count: 1, request: gpu.Request{NUMA: 7}, want: refused(gpu.NUMAUnsatisfied, 0, 1)},
		"an unknown NUMA is no node": {count: 2, request: gpu.Request{NUMA: 1}, want: refused(gpu.NUMAUnsatisfied, 1, 2)},

		"a cordoned card can be spared":         {count: 3, request: gpu.Request{NUMA: gpu.NoNUMA}, cards: func(c []ledger.Card) { c[1].Cordoned = true }, open: []int{0, 2, 3}},
		"a cordoned card is the last needed":    {count: 4, request: gpu.Request{NUMA: gpu.NoNUMA}, cards: func(c []ledger.Card) { c[1].Cordoned = true }, want: refused(gpu.DeviceCordoned, 3, 4)},
		"an unhealthy card can be spared":       {count: 3, request: gpu.Request{NUMA: gpu.NoNUMA}, cards: func(c []ledger.Card) { c[1].Healthy = false }, open: []int{0, 2, 3}},
		"an unhealthy card is the last":         {count: 4, request: gpu.Request{NUMA: gpu.NoNUMA}, cards: func(c []ledger.Card) { c[1].Healthy = false }, want: refused(gpu.DeviceUnhealthy, 3, 4)},
		"a fenced card can be spared":           {count: 3, request: gpu.Request{NUMA: gpu.NoNUMA}, cards: func(c []ledger.Card) { c[1].Fenced = true }, open: []int{0, 2, 3}},
		"a fenced card is the last":             {count: 4, request: gpu.Request{NUMA: gpu.NoNUMA}, cards: func(c []ledger.Card) { c[1].Fenced = true }, want: refused(gpu.LedgerMismatch, 3, 4)},
		"cordoned comes before unhealthy":       {count: 4, request: gpu.Request{NUMA: gpu.NoNUMA}, cards: func(c []ledger.Card) { c[1].Healthy, c[1].Cordoned = false, true }, want: refused(gpu.DeviceCordoned, 3, 4)},
		"a cordoned one, then an unhealthy one": {count: 3, request: gpu.Request{NUMA: gpu.NoNUMA}, cards: func(c []ledger.Card) { c[2].Healthy, c[1].Cordoned = false, true }, want: refused(gpu.DeviceUnhealthy, 2, 3)},
		"the step that took the last needed":    {count: 2, request: gpu.Request{Models: []string{"A100"}, NUMA: 0}, cards: func(c []ledger.Card) { c[0].Healthy = false }, want: refused(gpu.DeviceUnhealthy, 1, 2)},
		"an earlier step took one, not it":      {count: 3, request: gpu.Request{Models: []string{"A100"}, NUMA: 0}, want: refused(gpu.NUMAUnsatisfied, 2, 3)},
		"too few to begin with: not for this":   {count: 5, request: gpu.Request{NUMA: gpu.NoNUMA}, cards: func(c []ledger.Card) { c[1].Cordoned = true }, open: []int{0, 2, 3}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := four(tc.cards)
			tc.request.Asks = []gpu.Ask{{Count: tc.count}}
			got := Plugin{}.Filter(&pipeline.Cycle{Request: &tc.request}, n)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.open, n.Open); got.OK() && diff != "" {
				t.Errorf("open (-want +got):\n%s", diff)
			}
		})
	}
}

// What is not known of a card is not met by it.
func TestFilterOfCountedCards(t *testing.T) {
	counted := func(c []ledger.Card) { c[0].Counted, c[3].Counted = true, true }
	nameless := func(c []ledger.Card) { c[0].Model, c[1].Model = "", "" }
	tests := map[string]struct {
		request gpu.Request
		cards   func([]ledger.Card)
		reason  gpu.Reason
		open    []int
	}{
		"no list":                      {gpu.Request{}, counted, "", []int{0, 1, 2, 3}},
		"named in a list":              {gpu.Request{Cards: []gpu.CardID{"d0", "d1"}}, counted, "", []int{1}},
		"named in it, and alone":       {gpu.Request{Cards: []gpu.CardID{"d0"}}, counted, gpu.UUIDFiltered, nil},
		"not in a list of others":      {gpu.Request{NotCards: []gpu.CardID{"d1"}}, counted, "", []int{2}},
		"not in a list of no card":     {gpu.Request{NotCards: []gpu.CardID{"gone"}}, counted, "", []int{1, 2}},
		"no model, of a list":          {gpu.Request{Models: []string{"a100"}}, nameless, "", []int{2}},
		"no model, not in a list":      {gpu.Request{NotModels: []string{"h20"}}, nameless, "", []int{2}},
		"no model, and no list":        {gpu.Request{}, nameless, "", []int{0, 1, 2, 3}},
		"no model on the whole node":   {gpu.Request{NotModels: []string{"h20"}}, func(c []ledger.Card) { nameless(c); c[2].Model, c[3].Model = "", "" }, gpu.DeviceModelMismatch, nil},
		"models in turn":               {gpu.Request{NotModels: []string{"PCIE"}}, func(c []ledger.Card) { c[1].Model = "a pcie" }, "", []int{0, 3}},
		"no card of a model is left":   {gpu.Request{NotModels: []string{"a100", "H20"}}, nameless, gpu.DeviceModelMismatch, nil},
		"a letter of three bytes":      {gpu.Request{Models: []string{"\u212a4"}}, func(c []ledger.Card) { c[2].Model = "K4" }, "", []int{2}},
		"the model counts by its part": {gpu.Request{Models: []string{"h20"}}, counted, "", []int{3}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := four(tc.cards)
			tc.request.Asks, tc.request.NUMA = []gpu.Ask{{Count: 1}}, gpu.NoNUMA
			if got := (Plugin{}).Filter(&pipeline.Cycle{Request: &tc.request}, n); got.Reason != tc.reason {
				t.Errorf("verdict %v, want reason %q", got, tc.reason)
			}
			if diff := cmp.Diff(tc.open, n.Open); tc.reason == "" && diff != "" {
				t.Errorf("open (-want +got):\n%s", diff)
			}
		})
	}
}

// An annotation has room for much text, and every card of every node is compared
// with all of it: the longest lists that are let in have to stay bearable.
func BenchmarkLongLists(b *testing.B) {
	list := make([]string, 256)
	for i := range list {
		list[i] = strings.Repeat("x", 1+i)
	}
	r := gpu.Request{NotModels: list, NUMA: gpu.NoNUMA, Asks: []gpu.Ask{{Count: 4}}}
	n := four(nil)
	for b.Loop() {
		n.Open = append(n.Open[:0], 0, 1, 2, 3)
		Plugin{}.Filter(&pipeline.Cycle{Request: &r}, n)
	}
}

// The ask that is short is the one whose figures are given.
func TestFilterNamesTheAskThatIsShort(t *testing.T) {
	r := gpu.Request{NUMA: 0, Asks: []gpu.Ask{{Count: 1}, {Count: 4}, {Count: 3}}}
	got := Plugin{}.Filter(&pipeline.Cycle{Request: &r}, four(nil))
	if diff := cmp.Diff(pipeline.Verdict{Reason: gpu.NUMAUnsatisfied, Have: 2, Want: 4}, got); diff != "" {
		t.Errorf("verdict (-want +got):\n%s", diff)
	}
}

// A model in a resource name is its container's alone.
func TestFilterOfModelsByContainer(t *testing.T) {
	ask := func(model string, count int) gpu.Ask { return gpu.Ask{Vendor: gpu.Nvidia, Model: model, Count: count} }
	mismatch := func(have, want int64) pipeline.Verdict {
		return pipeline.Verdict{Reason: gpu.DeviceModelMismatch, Have: have, Want: want}
	}
	tests := map[string]struct {
		asks    []gpu.Ask
		request gpu.Request
		cards   func([]ledger.Card)
		want    pipeline.Verdict
		open    []int // after a yes
	}{
		"its model":                           {asks: []gpu.Ask{ask("a100", 3)}, open: []int{0, 1, 2}},
		"one card of the model too few":       {asks: []gpu.Ask{ask("A100", 4)}, want: mismatch(3, 4)},
		"none of the model":                   {asks: []gpu.Ask{ask("V100", 1)}, want: mismatch(0, 1)},
		"more than there are cards":           {asks: []gpu.Ask{ask("A100", 5)}, open: []int{0, 1, 2}},
		"another container takes any":         {asks: []gpu.Ask{ask("H20", 1), ask("", 2)}, open: []int{0, 1, 2, 3}},
		"two containers, two models":          {asks: []gpu.Ask{ask("H20", 1), ask("A100", 2)}, open: []int{0, 1, 2, 3}},
		"... one of which is not there":       {asks: []gpu.Ask{ask("", 4), ask("V100", 1)}, want: mismatch(0, 1)},
		"and the annotation's model":          {asks: []gpu.Ask{ask("A100", 1)}, request: gpu.Request{Models: []string{"PCIE"}}, open: []int{2}},
		"against the annotation's":            {asks: []gpu.Ask{ask("A100", 1)}, request: gpu.Request{NotModels: []string{"A100"}}, want: mismatch(0, 1)},
		"a cordoned card was of another":      {asks: []gpu.Ask{ask("A100", 3)}, cards: func(c []ledger.Card) { c[3].Cordoned = true }, open: []int{0, 1, 2}},
		"a cordoned card was of the model":    {asks: []gpu.Ask{ask("A100", 3)}, cards: func(c []ledger.Card) { c[1].Cordoned = true }, want: pipeline.Verdict{Reason: gpu.DeviceCordoned, Have: 2, Want: 3}},
		"... and another container needs one": {asks: []gpu.Ask{ask("", 1), ask("A100", 3)}, cards: func(c []ledger.Card) { c[1].Healthy = false }, want: pipeline.Verdict{Reason: gpu.DeviceUnhealthy, Have: 2, Want: 3}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := four(tc.cards)
			tc.request.Asks, tc.request.NUMA = tc.asks, gpu.NoNUMA
			for i := range n.Node.Cards {
				n.Node.Cards[i].Model = [...]string{"A100 80GB", "A100 80GB", "A100 PCIE", "H20"}[i]
			}
			got := Plugin{}.Filter(&pipeline.Cycle{Request: &tc.request}, n)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.open, n.Open); got.OK() && diff != "" {
				t.Errorf("open (-want +got):\n%s", diff)
			}
		})
	}
}
