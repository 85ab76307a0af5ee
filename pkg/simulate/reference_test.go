package simulate

import (
	"math"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// nodeWith returns a node with that much left of its cards.
func nodeWith(model string, cpu gpu.MilliCPU, left ...int) *ledger.Node {
	f := facts(&Node{CPU: cpu, Cards: len(left), Model: model}, 0)
	n := &ledger.Node{Facts: f, Cards: make([]ledger.Card, len(left))}
	for i := range n.Cards {
		n.Cards[i] = ledger.Card{Card: f.Cards[i], Used: gpu.Use{Memory: gpu.MiB(wholeCard - left[i])}}
	}
	return n
}

// The largest node has 128 CPU and 8 cards.
func TestBestFitScoreByHand(t *testing.T) {
	node := nodeWith("T4", 64000, 1000, 500)
	tests := map[string]struct {
		shape Shape
		want  float64
	}{
		"a half: 48 CPU and 1,000 left, 1 - 0.1875 - 0.0625":   {Shape{CPU: 16000, Cards: 1, Milli: 500}, 75},
		"a whole one: 500 left, 1 - 0.1875 - 0.03125":          {Shape{CPU: 16000, Cards: 1, Milli: 1000}, 78},
		"none: 32 CPU and 1,500 left, 1 - 0.125 - 0.09375":     {Shape{CPU: 32000}, 78},
		"nothing at all: 64 CPU and 1,500, 1 - 0.25 - 0.09375": {Shape{}, 65},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := request(tc.shape)
			if got := (bestFit{}).Score(&pipeline.Cycle{Request: &r}, node); got != tc.want {
				t.Errorf("Score = %g, want %g", got, tc.want)
			}
		})
	}
}

func TestMixOf(t *testing.T) {
	half, whole, rare := Shape{CPU: 1, Cards: 1, Milli: 500}, Shape{CPU: 2, Cards: 1, Milli: 1000, Models: "T4|G2"}, Shape{CPU: 3}
	var pods []Pod
	for i := range 40 {
		s := half
		switch {
		case i < 2:
			s = whole
		case i == 2:
			s = rare
		case i == 3:
			s = Shape{CPU: 4}
		}
		s.Memory = gpu.MiB(i) // is none of a mix's business
		pods = append(pods, Pod{Shape: s})
	}
	want := mix{{1, 1, 500, nil, 36. / 38}, {2, 1, 1000, []string{"T4", "G2"}, 2. / 38}} // 38 of 40 are 95 %
	equal := cmp.Options{cmp.AllowUnexported(part{}), cmpopts.EquateApprox(0, 1e-12)}
	if diff := cmp.Diff(want, mixOf(pods), equal); diff != "" {
		t.Errorf("mix (-want +got):\n%s", diff)
	}
	if got := mixOf(nil); len(got) != 0 {
		t.Errorf("mix of nobody = %v", got)
	}
}

// byHand is a mix of halves that run anywhere and whole cards that do not.
var byHand = mix{{cpu: 1000, cards: 1, milli: 500, share: 0.75}, {cpu: 4000, cards: 1, milli: 1000, models: []string{"V100"}, share: 0.25}}

func TestFragmentsByHand(t *testing.T) {
	tests := map[string]struct {
		node *ledger.Node
		want float64
	}{
		"halves cannot use 300, whole ones neither that nor 700": {nodeWith("V100", 4000, 1000, 300, 700), 0.75*300 + 0.25*1000},
		"another model: whole ones can use nothing":              {nodeWith("T4", 4000, 1000, 300, 700), 0.75*300 + 0.25*2000},
		"too few CPU for whole ones":                             {nodeWith("V100", 3999, 1000, 300, 700), 0.75*300 + 0.25*2000},
		"too few CPU for anybody":                                {nodeWith("V100", 999, 1000, 300, 700), 2000},
		"no card is large enough":                                {nodeWith("V100", 4000, 400, 300), 700},
		"nothing left":                                           {nodeWith("V100", 4000, 0, 0), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			room := roomOf(tc.node)
			if got := byHand.fragments(&room); math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("fragments = %g, want %g", got, tc.want)
			}
		})
	}
	two := mix{{cards: 2, milli: 1000, share: 1}}
	for want, node := range map[float64]*ledger.Node{300: nodeWith("V100", 0, 1000, 300, 1000), 1300: nodeWith("V100", 0, 1000, 300)} {
		if room := roomOf(node); two.fragments(&room) != want {
			t.Errorf("of what two whole cards cannot use: %g, want %g", two.fragments(&room), want)
		}
	}
	room, none := roomOf(nodeWith("V100", 4000, 1000)), mix{{share: 1}}
	if got := none.fragments(&room); got != 1000 {
		t.Errorf("a pod without cards can use none: %g", got)
	}
}

// The node has fragments of 475 before. With 300 taken from the card with 300 left it
// has 175, from the one with 700 left 700, and from the free one 650.
func TestFGDByHand(t *testing.T) {
	f, node := newFGD(byHand), nodeWith("V100", 4000, 1000, 700, 300)
	r := request(Shape{Cards: 1, Milli: 300})
	c := &pipeline.Cycle{Request: &r}
	if got := f.Score(c, node); got != 57 { // 100 / (1 + e^-0.3) = 57.4
		t.Errorf("Score = %g, want 57", got)
	}
	open := &pipeline.Candidate{Node: node, Open: []int{0, 1, 2}}
	f.Place(c, open)
	if diff := cmp.Diff([]int{2, 0, 1}, open.Open); diff != "" { // 57, 45, 44
		t.Errorf("cards (-want +got):\n%s", diff)
	}
	tests := map[string]struct {
		shape Shape
		want  float64
	}{
		// 1,000 are left, halves cannot use 300 and whole ones nothing: 475 as before.
		"a whole card": {Shape{Cards: 1, Milli: 1000}, 50},
		// Nobody can use anything of the 2,000: 100 / (1 + e^1.525) = 17.8.
		"all of the CPU": {Shape{CPU: 4000}, 17},
		"nothing":        {Shape{}, 50},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := request(tc.shape)
			if got := f.Score(&pipeline.Cycle{Request: &r}, node); got != tc.want {
				t.Errorf("Score = %g, want %g", got, tc.want)
			}
		})
	}
}

// A card that is too small for the slice is none to rate. Before, 100 are fragments;
// then 100 for halves and 800 for whole cards: 100 / (1 + e^0.175) = 45.6.
func TestFGDKeepsToCardsThatFit(t *testing.T) {
	f, node := newFGD(byHand), nodeWith("V100", 4000, 100, 1000)
	r := request(Shape{Cards: 1, Milli: 300})
	c := &pipeline.Cycle{Request: &r}
	if got := f.Score(c, node); got != 45 {
		t.Errorf("Score = %g, want 45", got)
	}
	open := &pipeline.Candidate{Node: node, Open: []int{0, 1}}
	if f.Place(c, open); open.Open[0] != 1 {
		t.Errorf("cards %v", open.Open)
	}
}

// All nodes that fit come up equally often, and all cards of each.
func TestRandomIsEven(t *testing.T) {
	trace := &Trace{Nodes: []Node{{"a", 1000, 1, 2, "T4"}, {"b", 1000, 1, 2, "T4"}, {"small", 1, 1, 2, "T4"}, {"c", 1000, 1, 2, "T4"}}}
	policies, err := Policies([]string{"random"})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(trace.Nodes, rand.New(rand.NewSource(3)).Perm(4), policies[0].Pipeline(trace))
	const rounds = 6000
	count := map[gpu.CardID]int{}
	for range rounds {
		if _, err := c.place(Shape{CPU: 10, Cards: 1, Milli: 10}, "pod"); err != nil {
			t.Fatal(err)
		}
		h, _ := c.ledger.Hold("pod")
		count[h.Grants[0].Shares[0].Card]++
		c.end("pod")
	}
	for card, n := range count {
		const each, slack = rounds / 6, 5 * 29 // five standard deviations
		if n < each-slack || n > each+slack {
			t.Errorf("card %s came up %d times of %d", card, n, rounds)
		}
	}
	if len(count) != 6 {
		t.Errorf("cards that came up: %v", count)
	}
}

func TestPoliciesSayWhatThereIs(t *testing.T) {
	const want = `there is no policy "best"; there are packing, default, fgd, bestfit, random, heterogeneous`
	if _, err := Policies([]string{"fgd", "best"}); err == nil || err.Error() != want {
		t.Errorf("Policies = %v, want %s", err, want)
	}
}
