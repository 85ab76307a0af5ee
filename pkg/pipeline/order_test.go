package pipeline

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// However the cards come, and however many there are, they end in the one order that is
// stated; a key that is not a number comes first, as cmp.Compare has it.
func TestSortIsTheStatedOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := node(rapid.SampledFrom([]int{0, 1, 8, 13, gpu.MostCards, gpu.MostCards + 3}).Draw(t, "cards"))
		few := rapid.IntRange(0, 2)
		keys := map[gpu.CardID]float64{}
		for i := range n.Cards {
			c := &n.Cards[i]
			c.ID, c.Memory = gpu.CardID(fmt.Sprint("d", 999-i)), gpu.MiB(few.Draw(t, "memory"))
			c.Others = gpu.MiB(few.Draw(t, "others"))
			c.Holders = make([]ledger.Holder, few.Draw(t, "holders"))
			keys[c.ID] = rapid.SampledFrom([]float64{-1, 0, 0, 2, math.Inf(1), math.NaN()}).Draw(t, "key")
		}
		all := make([]int, len(n.Cards))
		for i := range all {
			all[i] = i
		}
		open := rapid.Permutation(all).Draw(t, "order")
		open = open[:rapid.IntRange(0, len(open)).Draw(t, "open")]
		want := slices.Clone(open)
		slices.SortFunc(want, func(i, j int) int {
			a, b := &n.Cards[i], &n.Cards[j]
			return cmp.Or(cmp.Compare(keys[a.ID], keys[b.ID]), cmp.Compare(a.Foreign(), b.Foreign()), cmp.Compare(a.Memory, b.Memory),
				cmp.Compare(len(a.Holders), len(b.Holders)), cmp.Compare(a.ID, b.ID))
		})
		asked := 0
		c := &Candidate{Node: n, Open: open}
		c.Sort(func(c *ledger.Card) float64 { asked++; return keys[c.ID] })
		if !slices.Equal(c.Open, want) || asked != len(want) {
			t.Fatalf("%v, want %v; %d keys", c.Open, want, asked)
		}
	})
}

// Sorting takes no memory, however many cards a node has that there may be.
func TestSortTakesNoMemory(t *testing.T) {
	c := &Candidate{Node: node(gpu.MostCards)}
	for i := range c.Node.Cards {
		c.Open = append(c.Open, i)
	}
	if got := testing.AllocsPerRun(10, func() {
		slices.Reverse(c.Open)
		c.Sort(CardUsage)
	}); got > 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkSort(b *testing.B) {
	for name, used := range map[string]gpu.MiB{"ties": 0, "keys": 7} {
		b.Run(name, func(b *testing.B) {
			c := &Candidate{Node: node(8)}
			for i := range c.Node.Cards {
				card := &c.Node.Cards[i]
				card.ID, card.Memory, card.Usable, card.Used.Memory = gpu.CardID(fmt.Sprint("GPU-8f0d0f5e-", i)), 100, 100, used*gpu.MiB(i)
			}
			for b.Loop() {
				c.Open = append(c.Open[:0], 3, 1, 7, 0, 2, 6, 4, 5)
				c.Sort(CardUsage)
			}
		})
	}
}
