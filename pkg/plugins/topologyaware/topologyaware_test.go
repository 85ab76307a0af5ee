package topologyaware

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/topology"
)

// machine is a node of cards d0, d1 and on, with a digit for the NUMA node of each, "?"
// where it is not known; by pairs ("01" is d0 and d1), what lies between two of them.
func machine(t *testing.T, numa string, pairs map[string]string) *ledger.Node {
	t.Helper()
	n := &ledger.Node{Cards: make([]ledger.Card, len(numa))}
	cards := make([]gpu.Card, len(numa))
	for i := range cards {
		cards[i] = gpu.Card{
			ID: gpu.CardID(fmt.Sprintf("d%d", i)), Index: i, Vendor: gpu.Nvidia, Memory: 10, Usable: 10, Cores: 100, UsableCores: 100,
			MaxSlices: 2, Healthy: true, Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft, NUMA: gpu.NoNUMA,
		}
		if numa[i] != '?' {
			cards[i].NUMA = int(numa[i] - '0')
		}
		n.Cards[i].Card = cards[i]
	}
	if pairs == nil {
		return n
	}
	b, err := topology.NewBuilder(cards)
	if err != nil {
		t.Fatal(err)
	}
	b.Told()
	for p, link := range pairs {
		b.Pair(cards[p[0]-'0'].ID, cards[p[1]-'0'].ID, link)
	}
	n.Links = b.Links()
	return n
}

// everywhere has the link between all cards but those named.
func everywhere(cards int, link string, but map[string]string) map[string]string {
	all := map[string]string{}
	for b := range cards {
		for a := range b {
			all[fmt.Sprintf("%d%d", a, b)] = link
		}
	}
	for pair, other := range but {
		all[pair] = other
	}
	return all
}

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

func grant(cards ...gpu.CardID) (g gpu.Grant) {
	for _, c := range cards {
		g.Shares = append(g.Shares, gpu.Share{Card: c})
	}
	return g
}

// The parts of the rule, 50 % for the NUMA node, 30 % for the distance on PCIe, 20 %
// for access to each other's memory; each alone, and together.
func TestScore(t *testing.T) {
	pair, mixed := grant("d0", "d1"), map[string]string{"01": "NV2", "02": "SYS", "12": "SYS"}
	one := func(link string) map[string]string { return map[string]string{"01": link} }
	tests := map[string]struct {
		numa   string
		links  map[string]string
		grants []gpu.Grant
		want   float64
	}{
		"linked, one NUMA node":          {"00", one("NV12"), []gpu.Grant{pair}, 50 + 30 + 20},
		"linked, across NUMA nodes":      {"01", one("NV12"), []gpu.Grant{pair}, 30 + 20},
		"on one board":                   {"00", one("PSB"), []gpu.Grant{pair}, 50 + 30 + 20},
		"one PCIe bridge":                {"00", one("PIX"), []gpu.Grant{pair}, 50 + 30*40.0/45 + 20},
		"several PCIe bridges":           {"00", one("PXB"), []gpu.Grant{pair}, 50 + 30*30.0/45 + 20},
		"one host bridge":                {"00", one("PHB"), []gpu.Grant{pair}, 50 + 30*20.0/45 + 20},
		"host bridges of one NUMA node":  {"00", one("NODE"), []gpu.Grant{pair}, 50 + 30*10.0/45},
		"two sockets":                    {"01", one("SYS"), []gpu.Grant{pair}, 0},
		"nothing is known of the link":   {"00", nil, []gpu.Grant{pair}, 50 + 15 + 10},
		"... across NUMA nodes":          {"01", nil, []gpu.Grant{pair}, 15 + 10},
		"nothing of the NUMA nodes":      {"??", one("SYS"), []gpu.Grant{pair}, 25},
		"... of one of them":             {"0?", one("NV2"), []gpu.Grant{pair}, 25 + 30 + 20},
		"nothing at all":                 {"??", nil, []gpu.Grant{pair}, 50},
		"PCIe, and how far is not said":  {"00", one("PCIE"), []gpu.Grant{pair}, 50 + 0 + 10},
		"the mean over pairs":            {"001", mixed, []gpu.Grant{grant("d0", "d1", "d2")}, 100.0 / 3},
		"the mean over containers":       {"001", mixed, []gpu.Grant{pair, grant("d1", "d2")}, 50},
		"one card beside says nothing":   {"001", mixed, []gpu.Grant{pair, grant("d2")}, 100},
		"one card is neutral":            {"001", mixed, []gpu.Grant{grant("d2")}, pipeline.Neutral},
		"where it does not fit, neutral": {"001", mixed, nil, pipeline.Neutral},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := machine(t, tc.numa, tc.links)
			if got := (Plugin{}).ScoreCards(&pipeline.Cycle{Request: wholes(2)}, n, tc.grants); math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("score %v, want %v", got, tc.want)
			}
		})
	}
}

// Of the order 7, 6 ... 0 the favourites are taken where cards are as close.
func TestPlace(t *testing.T) {
	pairs := everywhere(8, "NODE", map[string]string{"01": "PIX", "23": "PIX", "45": "PIX", "67": "PIX"})
	slices := &gpu.Request{NUMA: gpu.NoNUMA, Asks: []gpu.Ask{{Count: 2, Memory: 4}}}
	tests := map[string]struct {
		numa  string
		links map[string]string
		held  []int
		r     *gpu.Request
		first string // of the order, as many as are wanted
	}{
		"a pair under one bridge":              {"00000000", pairs, nil, wholes(2), "0 1"},
		"the pair that is left":                {"00000000", pairs, []int{0, 2, 4}, wholes(2), "6 7"},
		"one NUMA node before PCIe":            {"01010101", everywhere(8, "SYS", map[string]string{"01": "PIX"}), nil, wholes(2), "0 2"},
		"NUMA nodes alone are known":           {"00001110", nil, nil, wholes(3), "0 1 2"},
		"... and a taken card is none":         {"00011110", nil, []int{0}, wholes(4), "3 4 5 6"},
		"two containers, the larger first":     {"00111001", nil, nil, wholes(2, 4), "0 1 5 6 2 3"},
		"one card: of a pair that is broken":   {"00000000", pairs, []int{4}, wholes(1), "5"},
		"one card: of the NUMA node with less": {"00000011", nil, nil, wholes(1), "6"},
		"slices":                               {"00000000", pairs, []int{0, 2, 4}, slices, "6 7"},
		"nothing is known":                     {"????????", nil, nil, wholes(2), "0 1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := &pipeline.Candidate{Node: held(machine(t, tc.numa, tc.links), tc.held...), Open: []int{7, 6, 5, 4, 3, 2, 1, 0}}
			Plugin{}.Place(&pipeline.Cycle{Request: tc.r}, n)
			got := ""
			for _, i := range n.Open {
				if n.Node.Cards[i].Free() && len(got) < len(tc.first) {
					got += fmt.Sprintf(" %d", i)
				}
			}
			if got != " "+tc.first || len(n.Open) != 8 {
				t.Errorf("free cards in the order%s of %v, want %s", got, n.Open, tc.first)
			}
		})
	}
}

// Where links are demanded the cards are of one domain, though others are closer.
func TestPlaceKeepsToADomainWhereLinksAreDemanded(t *testing.T) {
	links := everywhere(4, "PIX", map[string]string{"03": "NV2"})
	for linked, want := range map[bool][]int{false: {1, 2}, true: {0, 3}} {
		n := &pipeline.Candidate{Node: machine(t, "0111", links), Open: []int{0, 1, 2, 3}, Linked: linked}
		Plugin{}.Place(&pipeline.Cycle{Request: wholes(2)}, n)
		if diff := cmp.Diff(want, n.Open[:2]); diff != "" {
			t.Errorf("linked %t (-want +got):\n%s", linked, diff)
		}
	}
}

func TestConcernsAndKnows(t *testing.T) {
	p := Plugin{}
	if p.Concerns(wholes(1, 1)) || !p.Concerns(wholes(1, 2)) || p.Concerns(wholes()) {
		t.Error("it is about pods that want several cards for a container")
	}
	for name, tc := range map[string]struct {
		node *ledger.Node
		want bool
	}{
		"nothing":         {machine(t, "??", nil), false},
		"links":           {machine(t, "??", map[string]string{}), true},
		"one NUMA node":   {machine(t, "?0", nil), true},
		"no cards at all": {machine(t, "", nil), false},
	} {
		if got := p.Knows(tc.node); got != tc.want {
			t.Errorf("%s: knows %t", name, got)
		}
	}
	if diff := cmp.Diff("topology-aware", p.Name()); diff != "" {
		t.Error(diff)
	}
}
