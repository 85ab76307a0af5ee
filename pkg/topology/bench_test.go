package topology

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// drawn is a node whose pairs are joined at random by 1 to most NVLinks: no two
// sets are alike, and no bound helps.
func drawn(t testing.TB, n, most int) Links {
	random := rand.New(rand.NewPCG(7, uint64(n)))
	b := builder(t, cardsOf(n))
	for i := range n {
		for j := range i {
			b.Pair(idOf(i), idOf(j), "NV"+strconv.Itoa(1+random.IntN(most)))
		}
	}
	return b.Links()
}

// scattered is a node of PCIe cards, half of them on a NUMA node each of its own,
// of the others it is not known: the most pools there are.
func scattered(t testing.TB, n int) Links {
	random := rand.New(rand.NewPCG(9, uint64(n)))
	b := builder(t, cardsOf(n))
	for i := range n {
		if i%2 == 0 {
			b.NUMA(idOf(i), i)
		}
		for j := range i {
			b.Pair(idOf(i), idOf(j), []string{"SYS", "NODE", "PIX", "PXB"}[random.IntN(4)])
		}
	}
	return b.Links()
}

// BenchmarkBest: no choice takes longer than 1 ms, whatever is asked.
func BenchmarkBest(b *testing.B) {
	type bench struct {
		name  string
		links Links
		count int
	}
	benches := []bench{
		{"A100x8/2", machine(b, "nvidia_dgx_a100"), 2},
		{"A100x8/4", machine(b, "nvidia_dgx_a100"), 4},
		{"V100x8/4", machine(b, "nvidia_dgx1_v100"), 4},
		{"pairs/3", machine(b, "nvidia_a100_pcie_bridges"), 3},
		{"PCIex8/1", machine(b, "nvidia_pcie_8"), 1},
		{"PCIex8/4", machine(b, "nvidia_pcie_8"), 4},
		{"PCIex8/5", machine(b, "nvidia_pcie_8"), 5},
		{"V100x8/9", machine(b, "nvidia_dgx1_v100"), 9}, // cannot be
		{"DGX-2/8", machine(b, "nvidia_dgx2"), 8},
		{"random16/8", drawn(b, 16, gpu.MostCards), 8},
		{"random16/9", drawn(b, 16, gpu.MostCards), 9},
		{"scattered16/6", scattered(b, 16), 6},
		{"scattered16/10", scattered(b, 16), 10},
		{"random64/16", drawn(b, 64, 36), 16},
		{"random64/32", drawn(b, 64, 36), 32},
		{"scattered64/20", scattered(b, 64), 20},
		{"scattered64/33", scattered(b, 64), 33},
	}
	for _, bc := range benches {
		b.Run(bc.name, func(b *testing.B) {
			n := bc.links.Count()
			a := Ask{Open: upTo(n), Free: first(n), Count: bc.count}
			b.ReportAllocs()
			exact := true
			for b.Loop() {
				c, ok := bc.links.Best(a)
				exact = c.Exact || !ok
			}
			if n <= 16 && !exact {
				b.Error("not exact")
			}
		})
	}
}

// BenchmarkParseMatrix is what a node's annotation costs when it changes.
func BenchmarkParseMatrix(b *testing.B) {
	text := recorded(b, "nvidia_dgx_h100_underlined")
	for b.Loop() {
		if _, err := ParseMatrix(text); err != nil {
			b.Fatal(err)
		}
	}
}
