package spread

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// card is one of which slices may take 100 MiB and 100 percent.
func card(id gpu.CardID, used gpu.Use) ledger.Card {
	return ledger.Card{Card: gpu.Card{ID: id, Memory: 120, Usable: 100, Cores: 100, UsableCores: 100}, Used: used}
}

func TestScore(t *testing.T) {
	node := func(cpu, memory int64, cards ...ledger.Card) *ledger.Node {
		return &ledger.Node{
			Facts: ledger.Facts{CPU: 10000, Memory: 1000}, UsedCPU: gpu.MilliCPU(cpu), UsedMemory: gpu.Bytes(memory), Cards: cards,
		}
	}
	closed := card("c", gpu.Use{})
	closed.Closed = true
	measured := func(n *ledger.Node, cpu, memory int64) *ledger.Node {
		n.Readings = ledger.Readings{CPU: gpu.Measured(cpu), Memory: gpu.Measured(memory)}
		return n
	}
	tests := map[string]struct {
		node *ledger.Node
		want float64
	}{
		// cpu 0.3, memory 0.6: what is asked for counts where it is more
		"less is used than is asked for": {measured(node(3000, 600), 10, 60), 70},
		// cpu 0.45, memory 0.75
		"more is used":  {measured(node(3000, 600), 45, 75), 60},
		"used alone":    {measured(&ledger.Node{}, 150, 0), 200.0 / 3},
		"empty":         {node(0, 0, card("a", gpu.Use{})), 100},
		"full":          {node(10000, 1000, card("a", gpu.Use{Exclusive: true})), 0},
		"more than all": {node(90000, 9000, card("a", gpu.Use{Memory: 900, Cores: 900})), 0},
		// cpu 0.5, memory 0.25, gpu (0.6 x 0.5 + 0.4 x 0.2 + 1) / 2 = 0.69: 0.48
		"by hand":               {node(5000, 250, card("a", gpu.Use{Memory: 50, Cores: 20}), card("b", gpu.Use{Exclusive: true})), 52},
		"a closed card is full": {node(5000, 250, card("a", gpu.Use{Memory: 50, Cores: 20}), closed), 52},
		// cpu 0.3, memory 0.6, no cards 0: 0.3
		"no cards": {node(3000, 600), 70},
		// nothing is known of the node's size: gpu 1 alone: 1/3
		"size unknown": {&ledger.Node{UsedCPU: 5, UsedMemory: 5, Cards: []ledger.Card{card("a", gpu.Use{Exclusive: true})}}, 200.0 / 3},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Plugin{}.Score(&pipeline.Cycle{Request: &gpu.Request{}}, tc.node)
			if math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("score %v, want %v", got, tc.want)
			}
		})
	}
}

func TestPlace(t *testing.T) {
	held := func(c ledger.Card, holders int) ledger.Card {
		c.Holders = make([]ledger.Holder, holders)
		return c
	}
	small := card("z", gpu.Use{})
	small.Memory = 60
	closed := card("a", gpu.Use{})
	closed.Closed = true
	foreign := card("a", gpu.Use{})
	foreign.Reading.MemoryUsed = gpu.Measured(60)
	tests := map[string]struct {
		cards []ledger.Card
		want  []gpu.CardID
	}{
		"by what is used": {
			[]ledger.Card{card("a", gpu.Use{Memory: 10}), card("b", gpu.Use{}), card("c", gpu.Use{Memory: 50})},
			[]gpu.CardID{"b", "a", "c"},
		},
		// 0.6 x 0.2 = 0.12 is less than 0.4 x 0.4 = 0.16
		"memory weighs more, compute counts": {
			[]ledger.Card{card("a", gpu.Use{Memory: 20}), card("b", gpu.Use{Cores: 40})},
			[]gpu.CardID{"a", "b"},
		},
		"held whole and closed count as full": {
			[]ledger.Card{closed, card("b", gpu.Use{Memory: 90}), card("c", gpu.Use{Exclusive: true})},
			[]gpu.CardID{"b", "a", "c"},
		},
		"of equal ones first the one that nobody else is on": {[]ledger.Card{foreign, card("b", gpu.Use{})}, []gpu.CardID{"b", "a"}},
		"of equal ones the smaller first":                    {[]ledger.Card{card("a", gpu.Use{}), small}, []gpu.CardID{"z", "a"}},
		"then the one with fewer holders":                    {[]ledger.Card{held(card("a", gpu.Use{}), 2), held(card("b", gpu.Use{}), 1)}, []gpu.CardID{"b", "a"}},
		"then by UUID":                                       {[]ledger.Card{card("b", gpu.Use{}), card("c", gpu.Use{}), card("a", gpu.Use{})}, []gpu.CardID{"a", "b", "c"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := &pipeline.Candidate{Node: &ledger.Node{Cards: tc.cards}}
			for i := range tc.cards {
				n.Open = append(n.Open, i)
			}
			Plugin{}.Place(&pipeline.Cycle{Request: &gpu.Request{}}, n)
			var got []gpu.CardID
			for _, i := range n.Open {
				got = append(got, tc.cards[i].ID)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}
