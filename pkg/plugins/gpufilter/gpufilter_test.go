package gpufilter

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// of returns a candidate with these cards, all of them open.
func of(vendors ...gpu.Vendor) *pipeline.Candidate {
	n := &pipeline.Candidate{Node: &ledger.Node{}}
	for i, v := range vendors {
		n.Node.Cards = append(n.Node.Cards, ledger.Card{Card: gpu.Card{Vendor: v}})
		n.Open = append(n.Open, i)
	}
	return n
}

func ask(v gpu.Vendor, count int) gpu.Ask { return gpu.Ask{Vendor: v, Count: count} }

func TestFilter(t *testing.T) {
	mismatch := func(have, want int64) pipeline.Verdict {
		return pipeline.Verdict{Reason: gpu.DeviceTypeMismatch, Have: have, Want: want}
	}
	tests := map[string]struct {
		vendor gpu.Vendor // gpu-type
		asks   []gpu.Ask
		cards  []gpu.Vendor
		want   pipeline.Verdict
		open   []int
	}{
		"any vendor": {asks: []gpu.Ask{ask("", 2)}, cards: []gpu.Vendor{"nvidia", "ascend"}, open: []int{0, 1}},
		"its vendor by resource name": {
			asks: []gpu.Ask{ask("ascend", 1)}, cards: []gpu.Vendor{"nvidia", "ascend"}, open: []int{1},
		},
		"its vendor by gpu-type": {
			vendor: "ascend", asks: []gpu.Ask{ask("", 1)}, cards: []gpu.Vendor{"nvidia", "ascend"}, open: []int{1},
		},
		"another vendor": {
			asks: []gpu.Ask{ask("ascend", 1)}, cards: []gpu.Vendor{"nvidia", "nvidia"}, want: mismatch(0, 1), open: []int{},
		},
		"another vendor by gpu-type": {
			vendor: "ascend", asks: []gpu.Ask{ask("", 2)}, cards: []gpu.Vendor{"nvidia"}, want: mismatch(0, 2), open: []int{},
		},
		"enough cards, too few of the vendor": {
			asks: []gpu.Ask{ask("ascend", 2)}, cards: []gpu.Vendor{"nvidia", "ascend"}, want: mismatch(1, 2), open: []int{1},
		},
		"too few of the vendor, and too few in all": {
			asks: []gpu.Ask{ask("ascend", 3)}, cards: []gpu.Vendor{"nvidia", "ascend"}, open: []int{1},
		},
		"too few cards, all of the vendor": {
			asks: []gpu.Ask{ask("ascend", 2)}, cards: []gpu.Vendor{"ascend"}, open: []int{0},
		},
		"too few of either vendor, which is a matter of number": {
			asks: []gpu.Ask{ask("", 2)}, cards: []gpu.Vendor{"nvidia", "ascend"}, open: []int{0, 1},
		},
		"two containers, two vendors": {
			asks: []gpu.Ask{ask("nvidia", 1), ask("ascend", 1)}, cards: []gpu.Vendor{"musa", "ascend", "nvidia"}, open: []int{1, 2},
		},
		"two containers, one vendor is missing": {
			asks: []gpu.Ask{ask("nvidia", 1), ask("ascend", 1)}, cards: []gpu.Vendor{"nvidia", "nvidia"}, want: mismatch(0, 1), open: []int{0, 1},
		},
		"one container takes any vendor": {
			asks: []gpu.Ask{ask("", 1), ask("ascend", 1)}, cards: []gpu.Vendor{"musa", "ascend"}, open: []int{0, 1},
		},
		"gpu-type contradicts the resource name": {
			vendor: "ascend", asks: []gpu.Ask{ask("nvidia", 1)}, cards: []gpu.Vendor{"ascend", "nvidia"}, want: mismatch(0, 1), open: []int{},
		},
		"two containers, too few of either vendor": {
			asks: []gpu.Ask{ask("", 2), ask("", 1)}, cards: []gpu.Vendor{"nvidia", "ascend"}, open: []int{0, 1},
		},
		"a node without cards passes, whatever is asked": {asks: []gpu.Ask{ask("ascend", 1), ask("nvidia", 1)}},
		"a node without cards passes":                    {asks: []gpu.Ask{ask("ascend", 1)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := of(tc.cards...)
			got := Plugin{}.Filter(&pipeline.Cycle{Request: &gpu.Request{Vendor: tc.vendor, Asks: tc.asks}}, n)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.open, n.Open); diff != "" {
				t.Errorf("open (-want +got):\n%s", diff)
			}
		})
	}
}

// A model is affinity's to judge: the vendor is right.
func TestFilterLeavesModels(t *testing.T) {
	n := of("ascend", "nvidia")
	r := &gpu.Request{Asks: []gpu.Ask{{Vendor: "ascend", Model: "910B3", Count: 1}}}
	if got := (Plugin{}).Filter(&pipeline.Cycle{Request: r}, n); !got.OK() || len(n.Open) != 1 {
		t.Errorf("verdict %+v, open %v", got, n.Open)
	}
}

// A card that a device plugin hands out is only for who asks by its name.
func TestFilterOfPlugins(t *testing.T) {
	const whole, shares = "metax-tech.com/gpu", "metax-tech.com/sgpu"
	by := func(plugin string, count int) gpu.Ask {
		return gpu.Ask{Vendor: gpu.Metax, Plugin: plugin, Count: count}
	}
	mismatch := func(have, want int64) pipeline.Verdict {
		return pipeline.Verdict{Reason: gpu.DeviceTypeMismatch, Have: have, Want: want}
	}
	tests := map[string]struct {
		vendor  gpu.Vendor
		asks    []gpu.Ask
		plugins []string // of the node's cards
		want    pipeline.Verdict
		open    []int
	}{
		"by its name":                    {asks: []gpu.Ask{by(whole, 2)}, plugins: []string{whole, whole}, open: []int{0, 1}},
		"by another's name":              {asks: []gpu.Ask{by(shares, 2)}, plugins: []string{whole, whole}, want: mismatch(0, 2), open: []int{}},
		"by another vendor's":            {asks: []gpu.Ask{{Vendor: gpu.Ascend, Plugin: whole, Count: 1}}, plugins: []string{whole}, want: mismatch(0, 1), open: []int{}},
		"without a count":                {asks: []gpu.Ask{by("", 1)}, plugins: []string{whole}, want: mismatch(0, 1), open: []int{}},
		"by no vendor's":                 {asks: []gpu.Ask{ask("", 2)}, plugins: []string{whole, whole}, want: mismatch(0, 2), open: []int{}},
		"by gpu-type alone":              {vendor: gpu.Metax, asks: []gpu.Ask{ask("", 1)}, plugins: []string{whole}, want: mismatch(0, 1), open: []int{}},
		"two plugins":                    {asks: []gpu.Ask{by(shares, 1)}, plugins: []string{whole, shares, whole}, open: []int{1}},
		"two plugins, too few of one":    {asks: []gpu.Ask{by(shares, 2)}, plugins: []string{whole, shares, whole}, want: mismatch(1, 2), open: []int{1}},
		"a container for either":         {asks: []gpu.Ask{by(shares, 1), by(whole, 1)}, plugins: []string{whole, shares}, open: []int{0, 1}},
		"too few in all":                 {asks: []gpu.Ask{by(whole, 3)}, plugins: []string{whole, whole}, open: []int{0, 1}},
		"one container by name, two not": {asks: []gpu.Ask{by(whole, 2), ask("", 1), ask("", 2)}, plugins: []string{whole, whole}, want: mismatch(0, 2), open: []int{0, 1}},
		"what no plugin gives out":       {asks: []gpu.Ask{by(whole, 1), ask("", 1)}, plugins: []string{"", ""}, open: []int{0, 1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := of(slices.Repeat([]gpu.Vendor{gpu.Metax}, len(tc.plugins))...)
			for i, p := range tc.plugins {
				n.Node.Cards[i].Plugin = p
			}
			got := Plugin{}.Filter(&pipeline.Cycle{Request: &gpu.Request{Vendor: tc.vendor, Asks: tc.asks}}, n)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.open, n.Open); diff != "" {
				t.Errorf("open (-want +got):\n%s", diff)
			}
		})
	}
}
