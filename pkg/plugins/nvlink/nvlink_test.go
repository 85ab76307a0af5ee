package nvlink

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/topology"
)

// machine is a node of cards d0, d1 and on, joined as the pairs say ("01" is d0 and
// d1), with a digit for the NUMA node of each; nil pairs: it does not tell.
func machine(t *testing.T, numa string, pairs []string) *ledger.Node {
	t.Helper()
	n := &ledger.Node{Cards: make([]ledger.Card, len(numa))}
	cards := make([]gpu.Card, len(numa))
	for i := range cards {
		cards[i] = gpu.Card{
			ID: gpu.CardID(fmt.Sprintf("d%d", i)), Index: i, Vendor: gpu.Nvidia, Memory: 10, Usable: 10, Cores: 100, UsableCores: 100,
			MaxSlices: 2, Healthy: true, Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft, NUMA: int(numa[i] - '0'),
		}
		n.Cards[i].Card = cards[i]
	}
	b, err := topology.NewBuilder(cards)
	if err != nil {
		t.Fatal(err)
	}
	if pairs != nil {
		b.Told()
	}
	for _, p := range pairs {
		b.Pair(cards[p[0]-'0'].ID, cards[p[1]-'0'].ID, "NV2")
	}
	n.Links = b.Links()
	return n
}

// held puts somebody on these cards.
func held(n *ledger.Node, cards ...int) *ledger.Node {
	for _, i := range cards {
		u := gpu.Use{Memory: 10, Cores: 100, Slots: 1, Exclusive: true}
		n.Cards[i].Used, n.Cards[i].Holders = u, []ledger.Holder{{Pod: "p", Use: u}}
	}
	return n
}

func wholes(counts ...int) *gpu.Request {
	r := &gpu.Request{NUMA: gpu.NoNUMA}
	for i, count := range counts {
		r.Asks = append(r.Asks, gpu.Ask{Container: fmt.Sprintf("c%d", i), Number: i, Count: count, Whole: true})
	}
	return r
}

func granted(r *gpu.Request, cards ...string) []gpu.Grant {
	var all []gpu.Grant
	for i, of := range cards {
		g := gpu.Grant{Container: r.Asks[i].Container}
		for _, c := range strings.Fields(of) {
			g.Shares = append(g.Shares, gpu.Share{Card: gpu.CardID(c)})
		}
		all = append(all, g)
	}
	return all
}

var (
	none     = []string{}
	pairs    = []string{"01", "23"}
	fours    = []string{"01", "12", "23", "45", "56", "67"}
	switched = []string{"01", "12", "23", "34", "45", "56", "67"}
)

// The numbers of the rule: 50, +50, +30, +40, -20, +15, -10; and what is left of
// 50..185 on a scale of 50..100.
func TestScore(t *testing.T) {
	tests := map[string]struct {
		numa  string
		links []string
		held  []int
		cards []string
		raw   float64
	}{
		"one domain, used up, all free, one NUMA node": {"0011", pairs, nil, []string{"d0 d1"}, 185},
		"... across NUMA nodes":                        {"0101", pairs, nil, []string{"d0 d1"}, 160},
		"a part of a domain that is free":              {"00001111", fours, nil, []string{"d0 d1"}, 155},
		"a part of one that is in use":                 {"00001111", fours, []int{3}, []string{"d0 d1"}, 115},
		"all of a machine with a switch":               {"00001111", switched, nil, []string{"d0 d1 d2 d3 d4 d5 d6 d7"}, 160},
		"across domains":                               {"0000", pairs, nil, []string{"d0 d2"}, 45},
		"across domains and NUMA nodes":                {"0011", pairs, nil, []string{"d1 d2"}, 20},
		"no links, one NUMA node":                      {"0000", none, nil, []string{"d0 d1"}, 45},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := held(machine(t, tc.numa, tc.links), tc.held...)
			r := wholes(len(strings.Fields(tc.cards[0])))
			want := tc.raw
			if tc.raw > 50 {
				want = 50 + (tc.raw-50)*50/135
			}
			got := Plugin{}.ScoreCards(&pipeline.Cycle{Request: r}, n, granted(r, tc.cards...))
			if d := got - want; d > 1e-9 || d < -1e-9 {
				t.Errorf("score %v, want %v", got, want)
			}
		})
	}
}

// Several containers count alike, and those that want one card or slices do not.
func TestScoreOfSeveralContainers(t *testing.T) {
	n := machine(t, "00001111", []string{"01", "45"})
	r := wholes(2, 1, 2)
	r.Asks = append(r.Asks, gpu.Ask{Container: "c3", Count: 2, Memory: 1})
	got := Plugin{}.ScoreCards(&pipeline.Cycle{Request: r}, n, granted(r, "d0 d1", "d2", "d6 d7", "d4 d5"))
	if want := (100.0 + 45) / 2; got != want {
		t.Errorf("score %v, want %v", got, want)
	}
	if got := (Plugin{}).ScoreCards(&pipeline.Cycle{Request: r}, n, nil); got != pipeline.Neutral {
		t.Errorf("score %v where it does not fit", got)
	}
}

func TestConcerns(t *testing.T) {
	slices := &gpu.Request{Asks: []gpu.Ask{{Count: 4, Memory: 1}}}
	for want, requests := range map[bool][]*gpu.Request{true: {wholes(2), wholes(1, 8)}, false: {wholes(), wholes(1), wholes(1, 1), slices}} {
		for _, r := range requests {
			if (Plugin{}).Concerns(r) != want {
				t.Errorf("concerns %+v: %t", r.Asks, !want)
			}
		}
	}
	if (Plugin{}).Knows(machine(t, "00", nil)) || !(Plugin{}).Knows(machine(t, "00", none)) {
		t.Error("a node that names no links knows that there are none, and only that")
	}
}

// What comes first is what the containers should get; the rest keeps its order.
func TestPlace(t *testing.T) {
	slice := &gpu.Request{Asks: []gpu.Ask{{Count: 2, Memory: 4}}}
	bound := wholes(2)
	bound.NUMABind = true
	init := wholes(2, 2)
	init.Asks[1].Role = gpu.Init
	tests := map[string]struct {
		numa  string
		links []string
		held  []int
		r     *gpu.Request
		want  []int // of the order 7, 6 ... 0
	}{
		"the smallest domain that is big enough": {"00001111", []string{"01", "12", "23", "34", "45", "67"}, nil, wholes(2), []int{7, 6, 5, 4, 3, 2, 1, 0}},
		"the same, at the other end":             {"00001111", []string{"01", "23", "34", "45", "56", "67"}, nil, wholes(2), []int{1, 0, 7, 6, 5, 4, 3, 2}},
		"... which is in use":                    {"00001111", []string{"01", "23", "34", "45", "56", "67"}, []int{1}, wholes(2), []int{7, 6, 5, 4, 3, 2, 1, 0}},
		"one NUMA node within a domain":          {"00111000", switched, nil, wholes(3), []int{7, 6, 5, 4, 3, 2, 1, 0}},
		"... where the order would not do":       {"00001110", switched, nil, wholes(3), []int{6, 5, 4, 7, 3, 2, 1, 0}},
		"the larger container first":             {"00000000", []string{"01", "12", "34"}, nil, wholes(2, 3), []int{2, 1, 0, 4, 3, 7, 6, 5}},
		"init containers go where others are":    {"00000000", []string{"01"}, nil, init, []int{1, 0, 7, 6, 5, 4, 3, 2}},
		"slices too":                             {"00000000", []string{"01"}, []int{7}, slice, []int{1, 0, 7, 6, 5, 4, 3, 2}},
		"numa-bind before domains":               {"01000001", []string{"01"}, nil, bound, []int{7, 1, 6, 5, 4, 3, 2, 0}},
		"one card":                               {"00000000", []string{"01"}, nil, wholes(1), []int{7, 6, 5, 4, 3, 2, 1, 0}},
		"more than there are":                    {"00000000", []string{"01"}, []int{0}, wholes(8), []int{7, 6, 5, 4, 3, 2, 1, 0}},
		"links are not known":                    {"00000000", nil, nil, wholes(2), []int{7, 6, 5, 4, 3, 2, 1, 0}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := &pipeline.Candidate{Node: held(machine(t, tc.numa, tc.links), tc.held...), Open: []int{7, 6, 5, 4, 3, 2, 1, 0}}
			Plugin{}.Place(&pipeline.Cycle{Request: tc.r}, n)
			if diff := cmp.Diff(tc.want, n.Open); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

// Cards of two vendors never go to one container.
func TestPlaceKeepsVendorsApart(t *testing.T) {
	n := &pipeline.Candidate{Node: machine(t, "0000", []string{"12"}), Open: []int{0, 1, 2, 3}}
	n.Node.Cards[1].Vendor, n.Node.Cards[0].Vendor = gpu.Ascend, gpu.Ascend
	n.Node.Cards[3].Used.Exclusive, n.Node.Cards[3].Holders = true, []ledger.Holder{{Pod: "p"}}
	Plugin{}.Place(&pipeline.Cycle{Request: wholes(2)}, n)
	if diff := cmp.Diff([]int{0, 1, 2, 3}, n.Open); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestFilterDemands(t *testing.T) {
	required, strict := wholes(2), Plugin{Args{RequireNVLink: true}}
	required.NVLink = true
	tests := map[string]struct {
		p     Plugin
		r     *gpu.Request
		links []string
		want  bool
	}{
		"nobody asks":                      {Plugin{}, wholes(2), pairs, false},
		"the pod asks":                     {Plugin{}, required, pairs, true},
		"the policy asks":                  {strict, wholes(2), pairs, true},
		"a node without links":             {Plugin{}, required, none, true},
		"a node that does not tell passes": {strict, required, nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := &pipeline.Candidate{Node: machine(t, "0000", tc.links), Open: []int{0, 1, 2, 3}}
			if v := tc.p.Filter(&pipeline.Cycle{Request: tc.r}, n); !v.OK() || n.Linked != tc.want || len(n.Open) != 4 {
				t.Errorf("verdict %+v, linked %t, open %v", v, n.Linked, n.Open)
			}
		})
	}
}

func TestNew(t *testing.T) {
	for text, want := range map[string]bool{"": false, "{}": false, "null": false, `{"requireNVLink":false}`: false, `{"requireNVLink":true}`: true} {
		if p, err := New([]byte(text)); err != nil || p.Args.RequireNVLink != want {
			t.Errorf("%q: %+v, %v", text, p.Args, err)
		}
	}
	for text, want := range map[string]string{
		`{"requireNvlink":true}`:   "requireNvlink: there is no such argument",
		`{"requireNVLink":"true"}`: "requireNVLink: is a string, and not a bool",
		`[true]`:                   "is not an object",
	} {
		if _, err := New([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What a pod requires is no reason to break up a larger domain: the smallest one is
// taken whether or not links are demanded, even one that somebody is on.
func TestPlaceTakesTheSmallestDomainWhereLinksAreDemanded(t *testing.T) {
	for _, linked := range []bool{false, true} {
		n := held(machine(t, "0000000", []string{"01", "12", "23", "45", "56"}), 6)
		c := &pipeline.Candidate{Node: n, Open: []int{0, 1, 2, 3, 4, 5}, Linked: linked}
		Plugin{}.Place(&pipeline.Cycle{Request: wholes(2)}, c)
		if diff := cmp.Diff([]int{4, 5}, c.Open[:2]); diff != "" {
			t.Errorf("linked %t (-want +got):\n%s", linked, diff)
		}
	}
}
