package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

func candidate(vendors ...gpu.Vendor) *Candidate {
	n := &Candidate{Node: node(len(vendors))}
	for i, v := range vendors {
		n.Node.Cards[i].Vendor = v
		n.Open = append(n.Open, i)
	}
	return n
}

func TestShortage(t *testing.T) {
	ask := func(v gpu.Vendor, count int) gpu.Ask { return gpu.Ask{Vendor: v, Count: count} }
	type result struct {
		Have, Want int64
		Short      bool
	}
	tests := map[string]struct {
		cards []gpu.Vendor
		asks  []gpu.Ask
		want  result
	}{
		"enough":                      {[]gpu.Vendor{"a", "a"}, []gpu.Ask{ask("", 2)}, result{}},
		"one too few":                 {[]gpu.Vendor{"a", "a"}, []gpu.Ask{ask("", 3)}, result{2, 3, true}},
		"none at all":                 {nil, []gpu.Ask{ask("", 1)}, result{0, 1, true}},
		"of one vendor":               {[]gpu.Vendor{"a", "b", "a"}, []gpu.Ask{ask("a", 3)}, result{2, 3, true}},
		"any: of the one with most":   {[]gpu.Vendor{"a", "b", "a", "b", "b"}, []gpu.Ask{ask("", 4)}, result{3, 4, true}},
		"any: the one with most does": {[]gpu.Vendor{"a", "b", "a", "b", "b"}, []gpu.Ask{ask("", 3)}, result{}},
		"the one that lacks most":     {[]gpu.Vendor{"a", "a"}, []gpu.Ask{ask("", 1), ask("b", 4), ask("", 9), ask("a", 3)}, result{2, 9, true}},
		"the larger of two that lack": {[]gpu.Vendor{"a"}, []gpu.Ask{ask("b", 2), ask("a", 3)}, result{1, 3, true}},
		"asks are not added up":       {[]gpu.Vendor{"a", "a"}, []gpu.Ask{ask("", 2), ask("", 2)}, result{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &Cycle{Request: &gpu.Request{Asks: tc.asks}}
			var got result
			got.Have, got.Want, got.Short = c.Shortage(candidate(tc.cards...), nil, (*gpu.Ask).Suits)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("shortage (-want +got):\n%s", diff)
			}
		})
	}
}

func TestShortageOfSomeAsks(t *testing.T) {
	c := &Cycle{Request: &gpu.Request{Asks: []gpu.Ask{{Count: 9, Whole: true}, {Count: 2}}}}
	have, want, short := c.Shortage(candidate("a"), func(a *gpu.Ask) bool { return !a.Whole }, (*gpu.Ask).Suits)
	if have != 1 || want != 2 || !short {
		t.Errorf("shortage %d of %d, %v, want 1 of 2", have, want, short)
	}
}

// A model counts where it is asked to, and cards of it are of one vendor too.
func TestShortageOfAModel(t *testing.T) {
	n := candidate("a", "a", "b", "a")
	for i, model := range []string{"x1", "x2", "x1", "x1"} {
		n.Node.Cards[i].Model = model
	}
	c := &Cycle{Request: &gpu.Request{Asks: []gpu.Ask{{Count: 3, Model: "x1"}}}}
	if have, want, short := c.Shortage(n, nil, (*gpu.Ask).Suits); have != 2 || want != 3 || !short {
		t.Errorf("shortage %d of %d, %v, want 2 of 3", have, want, short)
	}
	if have, _, short := c.Shortage(n, nil, (*gpu.Ask).SuitsVendor); short {
		t.Errorf("short of cards of any model: %d", have)
	}
}

func TestKeepAndAny(t *testing.T) {
	n := candidate("a", "b", "a", "b")
	b := func(c *ledger.Card) bool { return c.Vendor == "b" }
	if !n.Any(b) {
		t.Error("no open card is of b")
	}
	if taken := n.Keep(func(c *ledger.Card) bool { return !b(c) }); taken != 2 {
		t.Errorf("%d taken out, want 2", taken)
	}
	if diff := cmp.Diff([]int{0, 2}, n.Open); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
	if n.Any(b) {
		t.Error("a card of b is open still")
	}
}
