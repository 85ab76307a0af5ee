package pipeline

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// tracer is a plugin for every point: it notes what it sees, and takes out the
// first open card when it filters.
type tracer struct {
	name  string
	no    Verdict
	score float64
	trace *[]string
}

func (p tracer) Name() string { return p.name }

func (p tracer) Filter(_ *Cycle, n *Candidate) Verdict {
	*p.trace = append(*p.trace, p.name)
	n.Open = n.Open[1:]
	return p.no
}

func (p tracer) Place(_ *Cycle, n *Candidate) {
	*p.trace = append(*p.trace, p.name)
	n.Sort(func(c *ledger.Card) float64 { return -float64(c.Index) })
}

func (p tracer) Pack(_ *Cycle, n *Candidate) ([]gpu.Grant, Verdict) {
	*p.trace = append(*p.trace, p.name)
	var g gpu.Grant
	for _, i := range n.Open {
		g.Shares = append(g.Shares, gpu.Share{Index: i})
	}
	return []gpu.Grant{g}, p.no
}

func (p tracer) Score(*Cycle, *ledger.Node) float64 { return p.score }

func node(cards int) *ledger.Node {
	n := &ledger.Node{Facts: ledger.Facts{ID: "n1"}, Cards: make([]ledger.Card, cards)}
	for i := range n.Cards {
		n.Cards[i].Index = i
	}
	return n
}

func asks(n int) *Cycle {
	return &Cycle{Request: &gpu.Request{Pod: "p", Namespace: "ns", Name: "pod", Tenant: "t", CPU: 3, Memory: 4, Asks: make([]gpu.Ask, n)}}
}

func TestRunsInOrder(t *testing.T) {
	refuse := Verdict{Reason: gpu.UUIDFiltered, Have: 1, Want: 2}
	tests := map[string]struct {
		asks     int
		second   Verdict
		pack     Verdict
		judged   []string
		assigned []string
		want     Verdict
		open     []int
	}{
		"all say yes":                      {2, Verdict{}, Verdict{}, []string{"first", "second", "place", "pack"}, []string{"first", "second", "place", "pack"}, Verdict{}, []int{3, 2}},
		"one container: no order":          {1, Verdict{}, Verdict{}, []string{"first", "second", "pack"}, []string{"first", "second", "place", "pack"}, Verdict{}, []int{3, 2}},
		"the first no ends it":             {2, refuse, Verdict{}, []string{"first", "second"}, []string{"first", "second"}, refuse, nil},
		"pack says no":                     {2, Verdict{}, refuse, []string{"first", "second", "place", "pack"}, []string{"first", "second", "place", "pack"}, refuse, nil},
		"no cards asked, nothing to judge": {0, refuse, refuse, nil, nil, Verdict{}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var trace []string
			p := New(Config{
				Filters:    []Filter{tracer{name: "first", trace: &trace}, tracer{name: "second", no: tc.second, trace: &trace}},
				Pack:       tracer{name: "pack", no: tc.pack, trace: &trace},
				Places:     map[gpu.Policy]Place{gpu.Binpack: tracer{name: "place", trace: &trace}},
				CardLayout: gpu.Binpack,
			})
			if diff := cmp.Diff(tc.want, p.Judge(asks(tc.asks), node(4), &Scratch{})); diff != "" {
				t.Errorf("judged (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.judged, trace); diff != "" {
				t.Errorf("to judge (-want +got):\n%s", diff)
			}
			trace = nil
			got, v := p.Assign(asks(tc.asks), node(4))
			if diff := cmp.Diff(tc.want, v); diff != "" {
				t.Errorf("assigned (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.assigned, trace); diff != "" {
				t.Errorf("to assign (-want +got):\n%s", diff)
			}
			var open []int
			for _, g := range got.Grants {
				for _, s := range g.Shares {
					open = append(open, s.Index)
				}
			}
			if diff := cmp.Diff(tc.open, open); diff != "" {
				t.Errorf("what pack had left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAssignFillsThePlacement(t *testing.T) {
	p := New(Config{Pack: tracer{trace: new([]string)}})
	got, _ := p.Assign(asks(1), node(1))
	want := gpu.Placement{
		Pod: "p", Namespace: "ns", Name: "pod", Node: "n1", Tenant: "t", CPU: 3, Memory: 4,
		Grants: []gpu.Grant{{Shares: []gpu.Share{{Index: 0}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("placement (-want +got):\n%s", diff)
	}
}

// A refusal leaves nothing behind for whoever uses the memory next.
func TestScratchIsCleared(t *testing.T) {
	var trace []string
	p := New(Config{Filters: []Filter{tracer{trace: &trace}}, Pack: packCount{}})
	var s Scratch
	for _, cards := range []int{8, 2, 5, 1} {
		if v := p.Judge(asks(1), node(cards), &s); v.Have != int64(cards-1) {
			t.Errorf("%d cards: %d are open after one is taken out", cards, v.Have)
		}
	}
}

type packCount struct{}

func (packCount) Name() string { return "count" }

func (packCount) Pack(_ *Cycle, n *Candidate) ([]gpu.Grant, Verdict) {
	return nil, Verdict{Reason: gpu.InsufficientGPUCount, Have: int64(len(n.Open))}
}

func TestPlaceIsChosen(t *testing.T) {
	tests := map[string]struct {
		standing, asked gpu.Policy
		want            []string
	}{
		"the policy's":          {gpu.Spread, "", []string{"spread", "pack"}},
		"the pod's":             {gpu.Spread, gpu.Binpack, []string{"binpack", "pack"}},
		"nobody says":           {"", "", []string{"pack"}},
		"one that is not known": {gpu.Spread, "sideways", []string{"pack"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var trace []string
			p := New(Config{
				Pack: tracer{name: "pack", trace: &trace},
				Places: map[gpu.Policy]Place{
					gpu.Binpack: tracer{name: "binpack", trace: &trace},
					gpu.Spread:  tracer{name: "spread", trace: &trace},
				},
				CardLayout: tc.standing,
			})
			c := asks(1)
			c.Request.CardPolicy = tc.asked
			p.Assign(c, node(1))
			if diff := cmp.Diff(tc.want, trace); diff != "" {
				t.Errorf("ran (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRate(t *testing.T) {
	plugin := func(name string, score, weight float64) Weighted {
		return Weighted{Score: tracer{name: name, score: score}, Weight: weight}
	}
	only := func(w Weighted, layout gpu.Policy) Weighted { w.Layout = layout; return w }
	tests := map[string]struct {
		scores          []Weighted
		standing, asked gpu.Policy
		want            float64
		parts           []Part
	}{
		"no plugins":        {want: 50},
		"one":               {scores: []Weighted{plugin("a", 30, 2)}, want: 30, parts: []Part{{"a", 30, 2}}},
		"the weighted mean": {scores: []Weighted{plugin("a", 30, 3), plugin("b", 70, 1)}, want: 40, parts: []Part{{"a", 30, 3}, {"b", 70, 1}}},
		"weights are decimals": {scores: []Weighted{plugin("a", 100, 0.25), plugin("b", 0, 0.75)}, want: 25,
			parts: []Part{{"a", 100, 0.25}, {"b", 0, 0.75}}},
		"weight 0 counts for nothing": {scores: []Weighted{plugin("a", 30, 0), plugin("b", 70, 1)}, want: 70, parts: []Part{{"b", 70, 1}}},
		"all have weight 0":           {scores: []Weighted{plugin("a", 30, 0)}, want: 50},
		"too high is clamped before it is weighed": {scores: []Weighted{plugin("a", 185, 1), plugin("b", 0, 1)}, want: 50,
			parts: []Part{{"a", 100, 1}, {"b", 0, 1}}},
		"too low is clamped":         {scores: []Weighted{plugin("a", -5, 1), plugin("b", 100, 1)}, want: 50, parts: []Part{{"a", 0, 1}, {"b", 100, 1}}},
		"infinite is clamped":        {scores: []Weighted{plugin("a", math.Inf(1), 1)}, want: 100, parts: []Part{{"a", 100, 1}}},
		"not a number is neutral":    {scores: []Weighted{plugin("a", math.NaN(), 1)}, want: 50, parts: []Part{{"a", 50, 1}}},
		"the layout in force":        {scores: []Weighted{only(plugin("a", 30, 1), gpu.Spread), only(plugin("b", 70, 1), gpu.Binpack)}, standing: gpu.Spread, want: 30, parts: []Part{{"a", 30, 1}}},
		"the pod's layout overrides": {scores: []Weighted{only(plugin("a", 30, 1), gpu.Spread), only(plugin("b", 70, 1), gpu.Binpack)}, standing: gpu.Spread, asked: gpu.Binpack, want: 70, parts: []Part{{"b", 70, 1}}},
		"no layout in force":         {scores: []Weighted{only(plugin("a", 30, 1), gpu.Spread)}, want: 50},
		"without a layout, for all":  {scores: []Weighted{plugin("a", 30, 1), only(plugin("b", 70, 1), gpu.Binpack)}, standing: gpu.Binpack, want: 50, parts: []Part{{"a", 30, 1}, {"b", 70, 1}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := asks(1)
			c.Request.NodePolicy = tc.asked
			got, parts := New(Config{Scores: tc.scores, NodeLayout: tc.standing}).Rate(c, node(1))
			if got != tc.want {
				t.Errorf("score %v, want %v", got, tc.want)
			}
			if diff := cmp.Diff(tc.parts, parts); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}
