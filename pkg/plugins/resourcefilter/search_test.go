package resourcefilter

import (
	"fmt"
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Cards with the same room are one choice, else a node of equal cards, the usual
// kind, would use up the budget before the last container is looked at.
func TestSearchTriesEqualCardsOnce(t *testing.T) {
	six := gpu.Ask{Memory: 500, Count: 6}
	c := &pipeline.Cycle{Request: request(six, six, six)} // 18 devices, no two of which fit on one card
	s := newSearch(c, candidate(books(cards(16), nil)))
	if s.solve(0) {
		t.Fatal("18 devices on 16 cards")
	}
	if tried := mostPerNode - s.left; tried > 10 {
		t.Errorf("%d arrangements tried", tried)
	}
}

// What differs between cards in any way that matters makes them two choices:
// here the first card is a wrong one for the first ask.
func TestSearchTellsCardsApart(t *testing.T) {
	tests := map[string]struct {
		second func(*gpu.Card)
		held   []gpu.Share
		asks   []gpu.Ask
	}{
		"total memory":   {size(800), nil, []gpu.Ask{{Whole: true}, {Memory: 900}}},
		"kind":           {mode(gpu.ModeWhole), nil, []gpu.Ask{{Whole: true}, {Memory: 1}}},
		"isolation":      {unbounded, nil, []gpu.Ask{{Whole: true}, {Memory: 1}}},
		"usable memory":  {func(c *gpu.Card) { c.Usable = 500 }, nil, []gpu.Ask{{Whole: true}, {Memory: 501}}},
		"usable compute": {func(c *gpu.Card) { c.UsableCores = 50 }, nil, []gpu.Ask{{Whole: true}, {Memory: 1, Cores: 51}}},
		"slots":          {func(c *gpu.Card) { c.MaxSlices = 1 }, nil, []gpu.Ask{{Whole: true}, {Memory: 1}, {Memory: 1}}},
		"free memory":    {nil, []gpu.Share{slice("d1", 400, 0)}, []gpu.Ask{{Memory: 500, Cores: 1}, {Memory: 490, Cores: 1}}},
		"free at all": {
			func(c *gpu.Card) { c.MaxSlices = 4 }, []gpu.Share{slice("d1", 0, 0)},
			[]gpu.Ask{{Memory: 1, Role: gpu.Sidecar}, {Whole: true, Role: gpu.Init}},
		},
		"what a percentage is of": {
			func(c *gpu.Card) { c.Usable = 1700 }, []gpu.Share{slice("d0", 100, 0), slice("d1", 900, 0)},
			[]gpu.Ask{{Memory: 700}, {MemoryPercent: 80}},
		},
		"free compute": {nil, []gpu.Share{slice("d1", 0, 40)}, []gpu.Ask{{Memory: 460, Cores: 60}, {Memory: 450, Cores: 61}}},
		"free slots":   {nil, []gpu.Share{slice("d1", 0, 0), slice("d1", 0, 0)}, []gpu.Ask{{Memory: 500}, {Memory: 450}, {Memory: 450}}},
		"model":        {func(c *gpu.Card) { c.Model = "y" }, nil, []gpu.Ask{{Whole: true}, {Memory: 1, Model: "x"}}},
		"vendor":       {of(gpu.Ascend), nil, []gpu.Ask{{Whole: true}, {Memory: 1, Vendor: gpu.Nvidia}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			world := cards(2, func(c *gpu.Card) { c.Model = "x" })
			if tc.second != nil {
				tc.second(&world[1])
			}
			if got, v := pack(t, request(tc.asks...), books(world, tc.held)); !v.OK() {
				t.Errorf("%+v, though d1 does for the first container (%s)", v, where(got))
			}
		})
	}
}

// Likewise of three cards, of which the first container wants two.
func TestSearchTellsThreeCardsApart(t *testing.T) {
	tests := map[string]struct {
		first func(*gpu.Card)
		held  []gpu.Share
		last  gpu.Ask
	}{
		"total memory": {func(c *gpu.Card) { c.Memory = 2000 }, nil, gpu.Ask{Whole: true, Memory: 2000}},
		"free memory":  {nil, []gpu.Share{slice("d0", 100, 0), slice("d1", 500, 0), slice("d2", 500, 0)}, gpu.Ask{Memory: 800}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			world := cards(3)
			if tc.first != nil {
				tc.first(&world[0])
			}
			two := gpu.Ask{Whole: tc.last.Whole, Memory: 300, Count: 2}
			if got, v := pack(t, request(two, tc.last), books(world, tc.held)); where(got) != "c0:d1,d2 c1:d0" {
				t.Errorf("%s, %+v, want d1 and d2 for the first", where(got), v)
			}
		})
	}
}

// A container's devices are of one vendor: two halves of a mixed node are not
// searched for a whole that cannot be.
func TestSearchOfMixedNodeEnds(t *testing.T) {
	var mixed []gpu.Card
	for i := range 64 {
		mixed = append(mixed, card(gpu.CardID(fmt.Sprintf("d%02d", i)), of([]gpu.Vendor{gpu.Nvidia, gpu.Ascend}[i%2])))
	}
	l := books(mixed, nil)
	for name, asks := range map[string][]gpu.Ask{
		"one container":   {{Memory: 500, Count: 33}},
		"two containers":  {{Memory: 500, Count: 33}, {Memory: 500}},
		"after a first":   {{Memory: 500, Count: 33}, {Whole: true, Count: 2}},
		"three in common": {{Memory: 500, Count: 30}, {Memory: 500, Count: 30}, {Memory: 500, Count: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, v := pack(t, request(asks...), l); v.OK() {
				t.Errorf("found %s", where(got))
			}
		})
	}
}

// On a node of its own a search may take its time; on many, they share it.
func TestSearchSharesItsTime(t *testing.T) {
	for nodes, want := range map[int]int{0: 2000, 1: 2000, 200: 2000, 400: 1000, 5000: 80, 1_000_000: 50} {
		if got := budget(&pipeline.Cycle{Nodes: nodes}); got != want {
			t.Errorf("%d nodes: %d arrangements, want %d", nodes, got, want)
		}
	}
}

// The worst that an author can do to one node: many containers on cards of which
// no two are alike, and no place for the last.
func BenchmarkPackWorst(b *testing.B) {
	var uneven []gpu.Card
	for i := range 16 {
		uneven = append(uneven, card(gpu.CardID(fmt.Sprintf("d%02d", i)), size(gpu.MiB(10000+10*i))))
	}
	n := candidate(books(uneven, nil))
	var asks []gpu.Ask
	for range 10 {
		asks = append(asks, gpu.Ask{Memory: 5000, Count: 2})
	}
	c := &pipeline.Cycle{Request: request(asks...)}
	b.ReportAllocs()
	for b.Loop() {
		if _, v := (Plugin{}).Pack(c, n); v.OK() {
			b.Fatal("found a place")
		}
	}
}
