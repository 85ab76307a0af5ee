package tenant

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// separate keeps every tenant apart from every other, and the unknown from all.
type separate struct{}

func (separate) MayShare(a, b gpu.TenantID) bool { return a != "" && a == b }

func card(holders ...ledger.Holder) ledger.Card { return ledger.Card{Holders: holders} }

func ofModel(model string, holders ...ledger.Holder) ledger.Card {
	return ledger.Card{Card: gpu.Card{Model: model}, Holders: holders}
}

func slice(t gpu.TenantID) ledger.Holder {
	return ledger.Holder{Tenant: t, Use: gpu.Use{Memory: 1, Slots: 1}}
}

func whole(t gpu.TenantID) ledger.Holder {
	return ledger.Holder{Tenant: t, Use: gpu.Use{Memory: 9, Slots: 1, Exclusive: true}}
}

func TestFilter(t *testing.T) {
	refused := func(have, want int64) pipeline.Verdict {
		return pipeline.Verdict{Reason: gpu.NoTenantEligibleGPU, Have: have, Want: want}
	}
	one, two := gpu.Ask{Count: 1}, gpu.Ask{Count: 2}
	all := gpu.Ask{Count: 1, Whole: true}
	tests := map[string]struct {
		tenant gpu.TenantID
		asks   []gpu.Ask
		cards  []ledger.Card
		want   pipeline.Verdict
		open   []int
	}{
		"free cards":                         {"red", []gpu.Ask{two}, []ledger.Card{card(), card()}, pipeline.Verdict{}, []int{0, 1}},
		"beside its own":                     {"red", []gpu.Ask{one}, []ledger.Card{card(slice("red"))}, pipeline.Verdict{}, []int{0}},
		"beside another":                     {"red", []gpu.Ask{one}, []ledger.Card{card(slice("blue"))}, refused(0, 1), []int{}},
		"every holder is looked at":          {"red", []gpu.Ask{one}, []ledger.Card{card(slice("red"), slice("red"), slice("blue"))}, refused(0, 1), []int{}},
		"another card will do":               {"red", []gpu.Ask{one}, []ledger.Card{card(slice("blue")), card(slice("red"))}, pipeline.Verdict{}, []int{1}},
		"one card too few":                   {"red", []gpu.Ask{two}, []ledger.Card{card(slice("blue")), card()}, refused(1, 2), []int{1}},
		"a free card of another model":       {"red", []gpu.Ask{{Count: 1, Model: "x"}}, []ledger.Card{{}, ofModel("x", slice("blue"))}, refused(0, 1), []int{0}},
		"an unknown tenant takes free cards": {"", []gpu.Ask{one}, []ledger.Card{card()}, pipeline.Verdict{}, []int{0}},
		"an unknown tenant beside another":   {"", []gpu.Ask{one}, []ledger.Card{card(slice("blue"))}, refused(0, 1), []int{}},
		"unknown beside unknown":             {"", []gpu.Ask{one}, []ledger.Card{card(slice(""))}, refused(0, 1), []int{}},

		// Full is another matter than forbidden, and resource-filter's to say.
		"held whole by another is full, not forbidden": {"red", []gpu.Ask{one}, []ledger.Card{card(whole("blue"))}, pipeline.Verdict{}, []int{0}},
		"too few cards to begin with":                  {"red", []gpu.Ask{two}, []ledger.Card{card(slice("blue"))}, pipeline.Verdict{}, []int{}},
		"whole cards wait for free ones":               {"red", []gpu.Ask{all}, []ledger.Card{card(slice("blue"))}, pipeline.Verdict{}, []int{}},
		"a slice beside whole cards":                   {"red", []gpu.Ask{all, one}, []ledger.Card{card(slice("blue"))}, refused(0, 1), []int{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := &pipeline.Candidate{Node: &ledger.Node{Cards: tc.cards}}
			for i := range tc.cards {
				n.Open = append(n.Open, i)
			}
			got := Plugin{Boundary: separate{}}.Filter(&pipeline.Cycle{Request: &gpu.Request{Tenant: tc.tenant, Asks: tc.asks}}, n)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.open, n.Open); diff != "" {
				t.Errorf("open (-want +got):\n%s", diff)
			}
		})
	}
}

// groups lets tenants share that have the same first letter.
type groups struct{}

func (groups) MayShare(a, b gpu.TenantID) bool { return a[:1] == b[:1] }

func TestFilterAsksTheBoundary(t *testing.T) {
	for holder, fits := range map[gpu.TenantID]bool{"rose": true, "blue": false} {
		n := &pipeline.Candidate{Node: &ledger.Node{Cards: []ledger.Card{card(slice(holder))}}, Open: []int{0}}
		got := Plugin{Boundary: groups{}}.Filter(&pipeline.Cycle{Request: &gpu.Request{Tenant: "red", Asks: []gpu.Ask{{Count: 1}}}}, n)
		if got.OK() != fits {
			t.Errorf("beside %s: %v, want a yes %v", holder, got, fits)
		}
	}
}
