package tenant

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// town has the tenants red, rose and blue: rose is in a group with each of the
// other two, which are in none together. The unknown share with nobody.
type town struct{}

func (town) MayShare(a, b gpu.TenantID) bool {
	return a != "" && b != "" && (a == b || a == "rose" || b == "rose")
}

func (t town) Boundary() ledger.Boundary { return t }

func (town) Equal(ledger.Boundary) bool { return true }

func (town) Owner(namespace string) (gpu.TenantID, gpu.Reason) { return gpu.TenantID(namespace), "" }

// Dedicated knows Tenants by their names, and takes others for namespaces.
func (town) Dedicated(label string) gpu.TenantID {
	if label == "?" {
		return "" // which is no tenant's
	}
	if label == "red" || label == "rose" || label == "blue" {
		return gpu.TenantID(label)
	}
	return gpu.TenantID("namespace/" + label)
}

func (town) Accounts(string) []gpu.Account { return nil }

func (town) Limits(gpu.Account) []gpu.Limit { return nil }

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

func divided(holders ...ledger.Holder) ledger.Card {
	return ledger.Card{Holders: holders, Divided: true}
}

// toCome is a card to which somebody is to come, when those have gone who are there.
func toCome(t gpu.TenantID, holders ...ledger.Holder) ledger.Card {
	return ledger.Card{Holders: holders, Claims: []ledger.Holder{slice(t)}}
}

func TestCards(t *testing.T) {
	refused := func(have, want, closed int64) pipeline.Verdict {
		return pipeline.Verdict{Reason: gpu.NoTenantEligibleGPU, Have: have, Want: want, Closed: closed}
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
		"beside another":                     {"red", []gpu.Ask{one}, []ledger.Card{card(slice("blue"))}, refused(0, 1, 1), []int{}},
		"beside one of its group":            {"red", []gpu.Ask{one}, []ledger.Card{card(slice("rose"))}, pipeline.Verdict{}, []int{0}},
		"every holder is looked at":          {"red", []gpu.Ask{one}, []ledger.Card{card(slice("red"), slice("red"), slice("blue"))}, refused(0, 1, 1), []int{}},
		"a third in a group with only one":   {"blue", []gpu.Ask{one}, []ledger.Card{card(slice("rose"), slice("red"))}, refused(0, 1, 1), []int{}},
		"whichever was there first":          {"blue", []gpu.Ask{one}, []ledger.Card{card(slice("red"), slice("rose"))}, refused(0, 1, 1), []int{}},
		"a third in a group with both":       {"rose", []gpu.Ask{one}, []ledger.Card{card(slice("rose"), slice("blue"))}, pipeline.Verdict{}, []int{0}},
		"another card will do":               {"red", []gpu.Ask{one}, []ledger.Card{card(slice("blue")), card(slice("red"))}, pipeline.Verdict{}, []int{1}},
		"one card too few":                   {"red", []gpu.Ask{two}, []ledger.Card{card(slice("blue")), card(), card(slice("blue"))}, refused(1, 2, 2), []int{1}},
		"a free card of another model":       {"red", []gpu.Ask{{Count: 1, Model: "x"}}, []ledger.Card{{}, ofModel("x", slice("blue"))}, refused(0, 1, 1), []int{0}},
		"an unknown tenant takes free cards": {"", []gpu.Ask{one}, []ledger.Card{card()}, pipeline.Verdict{}, []int{0}},
		"an unknown tenant beside another":   {"", []gpu.Ask{one}, []ledger.Card{card(slice("blue"))}, refused(0, 1, 1), []int{}},
		"unknown beside unknown":             {"", []gpu.Ask{one}, []ledger.Card{card(slice(""))}, refused(0, 1, 1), []int{}},
		"beside an unknown":                  {"red", []gpu.Ask{one}, []ledger.Card{card(slice(""))}, refused(0, 1, 1), []int{}},

		// Two are on it that may not be together any more: nobody joins them.
		"a divided card takes nobody": {"rose", []gpu.Ask{one}, []ledger.Card{divided(slice("red"), slice("blue"))}, refused(0, 1, 1), []int{}},
		"nor one that is on it":       {"red", []gpu.Ask{one}, []ledger.Card{divided(slice("red"), slice("blue"))}, refused(0, 1, 1), []int{}},

		// Who is to come counts, and divides nothing from who is there.
		"beside another who is to come":  {"red", []gpu.Ask{one}, []ledger.Card{toCome("blue")}, refused(0, 1, 1), []int{}},
		"beside its own and one to come": {"rose", []gpu.Ask{one}, []ledger.Card{toCome("blue", slice("red"))}, pipeline.Verdict{}, []int{0}},

		// Full is another matter than forbidden, and resource-filter's to say.
		"held whole by another is full, not forbidden": {"red", []gpu.Ask{one}, []ledger.Card{card(whole("blue"))}, pipeline.Verdict{}, []int{0}},
		"too few cards to begin with":                  {"red", []gpu.Ask{two}, []ledger.Card{card(slice("blue"))}, pipeline.Verdict{}, []int{}},
		"whole cards wait for free ones":               {"red", []gpu.Ask{all}, []ledger.Card{card(slice("blue"))}, pipeline.Verdict{}, []int{}},
		"a slice beside whole cards":                   {"red", []gpu.Ask{all, one}, []ledger.Card{card(slice("blue"))}, refused(0, 1, 1), []int{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := &pipeline.Candidate{Node: &ledger.Node{Cards: tc.cards, Boundary: town{}}}
			for i := range tc.cards {
				n.Open = append(n.Open, i)
			}
			got := Cards{}.Filter(&pipeline.Cycle{Request: &gpu.Request{Tenant: tc.tenant, Asks: tc.asks}}, n)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.open, n.Open); diff != "" {
				t.Errorf("open (-want +got):\n%s", diff)
			}
		})
	}
}

// A node with the label is for one tenant, and no group opens it to another.
func TestNodes(t *testing.T) {
	tests := map[string]struct {
		label  string
		tenant gpu.TenantID
		fits   bool
	}{
		"for all":                          {"", "red", true},
		"for all, even the unknown":        {"", "", true},
		"its tenant":                       {"red", "red", true},
		"another":                          {"red", "blue", false},
		"one of its group":                 {"red", "rose", false},
		"the unknown":                      {"red", "", false},
		"nobody known":                     {"?", "red", false},
		"nobody known is not the unknown":  {"?", "", false},
		"a namespace that is in no Tenant": {"lab", "namespace/lab", true},
		"a Tenant called like a namespace": {"lab", "lab", false},
		"a namespace called like a Tenant": {"red", "namespace/red", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := &pipeline.Candidate{Node: &ledger.Node{Facts: ledger.Facts{Dedicated: tc.label}, Boundary: town{}}}
			got := Nodes{}.Filter(&pipeline.Cycle{Request: &gpu.Request{Tenant: tc.tenant, Asks: []gpu.Ask{{Count: 1}}}}, n)
			want := pipeline.Verdict{}
			if !tc.fits {
				want.Reason = gpu.TenantNodeMismatch
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}
