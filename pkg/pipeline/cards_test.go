package pipeline

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/topology"
)

// told returns n cards of which it is known that none is joined to another.
func told(t *testing.T, n int) *ledger.Node {
	t.Helper()
	b, err := topology.NewBuilder(make([]gpu.Card, n))
	if err != nil {
		t.Fatal(err)
	}
	b.Told()
	all := node(n)
	all.Links = b.Links()
	return all
}

// reverse is a way to order cards that is none.
type reverse struct{}

func (reverse) Name() string                 { return "reverse" }
func (reverse) Place(_ *Cycle, n *Candidate) { slices.Reverse(n.Open) }

// lowest scores a node by the first card that the request gets.
type lowest struct{ asked *[]int }

func (lowest) Name() string                 { return "lowest" }
func (lowest) Concerns(r *gpu.Request) bool { return r.AsksForSeveral() }
func (lowest) Knows(n *ledger.Node) bool    { return n.Links.Known() }
func (l lowest) ScoreCards(_ *Cycle, _ *ledger.Node, grants []gpu.Grant) float64 {
	first := -1
	if len(grants) > 0 {
		first = grants[0].Shares[0].Index
	}
	*l.asked = append(*l.asked, first)
	return float64(10 * first)
}

// The cards are put in another order for who wants several and names no order, where
// links are known. A score looks at those that Assign would give, and at none where
// it has nothing to say.
func TestLinkedOrderAndScore(t *testing.T) {
	tests := map[string]struct {
		count  int
		policy gpu.Policy
		node   *ledger.Node
		no     Verdict
		asked  []int // the first card of those that were looked at
		parts  []Part
		gets   int
	}{
		"several, where links are known":  {2, "", told(t, 4), Verdict{}, []int{1}, []Part{{"plain", 30, 1}, {"lowest", 10, 3}}, 1},
		"one":                             {1, "", told(t, 4), Verdict{}, nil, []Part{{"plain", 30, 1}}, 3},
		"a pod that names the order":      {2, gpu.Binpack, told(t, 4), Verdict{}, []int{3}, []Part{{"plain", 30, 1}, {"lowest", 30, 3}}, 3},
		"a node that does not tell":       {2, "", node(4), Verdict{}, nil, []Part{{"plain", 30, 1}, {"lowest", 50, 3}}, 3},
		"a node that has too few of them": {2, "", told(t, 4), Verdict{Reason: gpu.UUIDFiltered}, []int{-1}, []Part{{"plain", 30, 1}, {"lowest", 0, 3}}, -1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var trace []string
			var asked []int
			p := New(Config{
				Filters: []Filter{tracer{no: tc.no, trace: &trace}},
				Pack:    tracer{trace: &trace},
				Scores:  []Weighted{{Score: tracer{name: "plain", score: 30}, Weight: 1}, {Cards: lowest{&asked}, Weight: 3}},
				Places:  map[gpu.Policy]Place{gpu.Binpack: tracer{trace: &trace}}, Linked: reverse{}, CardLayout: gpu.Binpack,
			})
			c := &Cycle{Request: &gpu.Request{CardPolicy: tc.policy, Asks: []gpu.Ask{{Count: tc.count}}}}
			_, parts := p.Rate(c, tc.node)
			if diff := cmp.Diff(tc.parts, parts); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.asked, asked); diff != "" {
				t.Errorf("asked with the cards (-want +got):\n%s", diff)
			}
			gets := -1
			if got, v := p.Assign(c, tc.node); v.OK() {
				gets = got.Grants[0].Shares[0].Index
			}
			if gets != tc.gets {
				t.Errorf("gets %d first, want %d", gets, tc.gets)
			}
		})
	}
}

// about is a score of nodes that is about some requests.
type about struct {
	tracer
	some bool
}

func (a about) Concerns(*gpu.Request) bool { return a.some }

// Who has nothing to say about a request does not bring its totals together.
func TestWhomAScoreConcerns(t *testing.T) {
	for some, want := range map[bool]float64{true: 40, false: 30} {
		p := New(Config{Scores: []Weighted{{Score: tracer{score: 30}, Weight: 1}, {Score: about{tracer{score: 50}, some}, Weight: 1}}})
		if got := p.Total(asks(1), node(1), &Scratch{}); got != want {
			t.Errorf("concerned %t: %v, want %v", some, got, want)
		}
	}
}

// Of cards that have to be joined, those of the domain where they cost least do.
func TestPurseOfLinkedCards(t *testing.T) {
	n := &Candidate{Node: told(t, 3), Open: []int{2, 1, 0}}
	for i := range n.Node.Cards {
		n.Node.Cards[i].Memory = gpu.MiB(10 + i)
	}
	if got := len(n.kinships()); got != 1 {
		t.Errorf("%d kinships where nothing is demanded", got)
	}
	n.Linked = true
	if got := len(n.kinships()); got != 3 {
		t.Errorf("%d kinships of cards that nobody joins", got)
	}
	n.thrifty(&gpu.Request{Asks: []gpu.Ask{{Count: 1, Whole: true}}}, n.kinship(1))
	if diff := cmp.Diff([]int{1, 0, 2}, n.Open); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// What a verdict has found serves one score of the same request and node, and none
// once it is spoilt: an order that is made twice would be another one here.
func TestWhatAVerdictFoundServesOnce(t *testing.T) {
	n, away := told(t, 4), told(t, 3)
	several := &Cycle{Request: &gpu.Request{Asks: []gpu.Ask{{Count: 2}}}}
	twice := &Cycle{Request: &gpu.Request{Asks: []gpu.Ask{{Count: 2}, {Count: 1}}}}
	picky := &Cycle{Request: &gpu.Request{NUMABind: true, Asks: []gpu.Ask{{Count: 2}}}}
	type step func(p *Pipeline, c *Cycle, s *Scratch)
	judge := func(p *Pipeline, c *Cycle, s *Scratch) { p.Judge(c, n, s) }
	rate := func(p *Pipeline, c *Cycle, s *Scratch) { p.Base(c, n, s) }
	tests := map[string]struct {
		before  []step
		filters int // that have run by the end
	}{
		"nothing is known": {nil, 1},
		"judged":           {[]step{judge}, 1},
		"judged and rated": {[]step{judge, rate}, 2},
		"judged again":     {[]step{judge, judge}, 2},
		"priced":           {[]step{judge, func(p *Pipeline, c *Cycle, s *Scratch) { p.Prices(c, n, s) }}, 3},
		"another node":     {[]step{judge, func(p *Pipeline, c *Cycle, s *Scratch) { p.Judge(c, away, s) }}, 3},
		"another request":  {[]step{func(p *Pipeline, _ *Cycle, s *Scratch) { p.Judge(picky, n, s) }}, 2},
		"another decision": {[]step{func(p *Pipeline, c *Cycle, s *Scratch) { p.Judge(&Cycle{Request: c.Request}, n, s) }}, 2},
	}
	for name, tc := range tests {
		for asks, c := range map[string]*Cycle{"one container": several, "two": twice} {
			t.Run(name+"/"+asks, func(t *testing.T) {
				var trace []string
				var asked []int
				p := New(Config{
					Filters: []Filter{unlessPicky{&trace}}, Pack: tracer{name: "pack", trace: new([]string)},
					Scores: []Weighted{{Cards: lowest{&asked}, Weight: 1}}, Linked: reverse{},
				})
				s := &Scratch{}
				for _, do := range tc.before {
					do(p, c, s)
				}
				asked = nil
				rate(p, c, s)
				if diff := cmp.Diff([]int{3}, asked); diff != "" {
					t.Errorf("rated by the first card (-want +got):\n%s", diff)
				}
				if len(trace) != tc.filters {
					t.Errorf("filtered %d times, want %d", len(trace), tc.filters)
				}
			})
		}
	}
}

// unlessPicky takes out the last card for a pod with numa-bind.
type unlessPicky struct{ trace *[]string }

func (unlessPicky) Name() string { return "unless picky" }
func (u unlessPicky) Filter(c *Cycle, n *Candidate) Verdict {
	*u.trace = append(*u.trace, "filter")
	if c.Request.NUMABind {
		n.Open = n.Open[:len(n.Open)-1]
	}
	return Verdict{}
}
