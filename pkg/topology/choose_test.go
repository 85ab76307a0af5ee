package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
)

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func without(all []int, gone ...int) []int {
	return slices.DeleteFunc(slices.Clone(all), func(i int) bool { return slices.Contains(gone, i) })
}

// TestChoices: on the machines that there are. Nobody is on the open cards, and
// somebody on the others.
func TestChoices(t *testing.T) {
	a100, h100 := machine(t, "nvidia_dgx_a100"), machine(t, "nvidia_dgx_h100_pasted")
	v100, dgx2 := machine(t, "nvidia_dgx1_v100"), machine(t, "nvidia_dgx2")
	bridges, oneBridge := machine(t, "nvidia_a100_pcie_bridges"), machine(t, "nvidia_a6000_one_bridge")
	pcie, metax := machine(t, "nvidia_pcie_8"), machine(t, "metax_node_affinity")
	dies := linksOf(t, truth{"NPU0", none(4), "HCCS_SW SIO HCCS_SW\nHCCS_SW SIO\nHCCS_SW"}.matrix())
	// A domain of two and one of four, each on one NUMA node.
	uneven := linksOf(t, truth{"GPU0", []int{0, 0, 0, 0, 1, 1}, "NV4 NV4 NV4 SYS SYS\nNV4 NV4 SYS SYS\nNV4 SYS SYS\nSYS SYS\nNV4"}.matrix())

	fourAndFive := linksOf(t, truth{"GPU0", none(9), `
		XL XL XL SYS SYS SYS SYS SYS
		XL XL SYS SYS SYS SYS SYS
		XL SYS SYS SYS SYS SYS
		SYS SYS SYS SYS SYS
		XL XL XL XL
		XL XL XL
		XL XL
		XL`}.matrix())

	tests := map[string]struct {
		links    Links
		open     []int
		count    int
		cards    Set
		raw      int
		across   bool // no domain holds the cards
		tightest Set  // where it is another set
	}{
		"DGX A100, all of it":                {links: a100, open: upTo(8), count: 8, cards: first(8), raw: 50 + 50 + 30 + 40 - 10},
		"DGX A100, a pair":                   {links: a100, open: upTo(8), count: 2, cards: SetOf(0, 1), raw: 50 + 50 + 40 + 15},
		"DGX A100, the favourites first":     {links: a100, open: []int{7, 5, 3, 1, 0, 2, 4, 6}, count: 2, cards: SetOf(6, 7), raw: 50 + 50 + 40 + 15},
		"DGX A100, three of four NUMA nodes": {links: a100, open: []int{6, 1, 2, 4}, count: 3, cards: SetOf(1, 2, 6), raw: 50 + 50 - 10},
		"DGX A100, one card is broken":       {links: a100, open: without(upTo(8), 0), count: 2, cards: SetOf(2, 3), raw: 50 + 50 + 15},
		"DGX H100, half":                     {links: h100, open: upTo(8), count: 4, cards: SetOf(0, 1, 2, 3), raw: 50 + 50 + 40 + 15},
		"DGX H100, half, one is taken":       {links: h100, open: without(upTo(8), 2), count: 4, cards: SetOf(4, 5, 6, 7), raw: 50 + 50 + 15},
		"DGX-2, half; NUMA is not known":     {links: dgx2, open: upTo(16), count: 8, cards: first(8), raw: 50 + 50 + 40},

		"DGX-1, a pair has two links":            {links: v100, open: upTo(8), count: 2, cards: SetOf(0, 3), raw: 50 + 50 + 40 + 15},
		"DGX-1, a quad":                          {links: v100, open: upTo(8), count: 4, cards: SetOf(0, 1, 2, 3), raw: 50 + 50 + 40 + 15},
		"DGX-1, a quad over both halves":         {links: v100, open: []int{0, 1, 3, 4, 5, 7}, count: 4, cards: SetOf(0, 3, 4, 7), raw: 50 + 50 - 10},
		"DGX-1, a pair beside a taken half":      {links: v100, open: []int{4, 5, 6, 7}, count: 2, cards: SetOf(4, 7), raw: 50 + 50 + 15},
		"A100 bridges, a pair":                   {links: bridges, open: upTo(4), count: 2, cards: SetOf(0, 1), raw: MostRaw},
		"A100 bridges, the favourite":            {links: bridges, open: []int{3, 0, 1, 2}, count: 2, cards: SetOf(2, 3), raw: MostRaw},
		"A100 bridges, only one pair is whole":   {links: bridges, open: []int{0, 2, 3}, count: 2, cards: SetOf(2, 3), raw: MostRaw},
		"A100 bridges, a card of a broken pair":  {links: bridges, open: []int{3, 2, 0}, count: 1, cards: SetOf(3), raw: 50 + 50 + 40 + 15, tightest: SetOf(0)},
		"A100 bridges, three: one pair is kept":  {links: bridges, open: upTo(4), count: 3, cards: SetOf(0, 1, 2), raw: 50 - 20 - 10, across: true},
		"A100 bridges, two halves of pairs":      {links: bridges, open: []int{1, 3}, count: 2, cards: SetOf(1, 3), raw: 50 - 20 - 10, across: true},
		"one bridge, a pair":                     {links: oneBridge, open: []int{2, 1, 0}, count: 2, cards: SetOf(0, 1), raw: MostRaw},
		"one bridge, a card: not of the pair":    {links: oneBridge, open: upTo(3), count: 1, cards: SetOf(2), raw: MostRaw},
		"one bridge, all":                        {links: oneBridge, open: upTo(3), count: 3, cards: first(3), raw: 50 - 20 + 15, across: true},
		"PCIe, a pair under one switch":          {links: pcie, open: []int{7, 6, 5, 4, 3, 1, 2, 0}, count: 2, cards: SetOf(2, 3), raw: 50 - 20 + 15, across: true},
		"PCIe, a socket":                         {links: pcie, open: without(upTo(8), 2), count: 4, cards: SetOf(4, 5, 6, 7), raw: 50 - 20 + 15, across: true},
		"PCIe, one card":                         {links: pcie, open: []int{5, 0}, count: 1, cards: SetOf(5), raw: MostRaw},
		"MetaX, a quad":                          {links: metax, open: without(upTo(8), 0), count: 4, cards: SetOf(4, 5, 6, 7), raw: MostRaw},
		"Ascend, the two dies of one package":    {links: dies, open: upTo(4), count: 2, cards: SetOf(0, 2), raw: 50 + 50 + 40},
		"the smaller domain":                     {links: uneven, open: upTo(6), count: 2, cards: SetOf(4, 5), raw: MostRaw},
		"the smaller domain is begun":            {links: uneven, open: upTo(5), count: 1, cards: SetOf(0), raw: 50 + 50 + 40 + 15, tightest: SetOf(4)},
		"the quad that is begun more":            {links: metax, open: []int{0, 1, 2, 4, 5}, count: 2, cards: SetOf(4, 5), raw: 50 + 50 + 15},
		"the smaller, though more of it is open": {links: fourAndFive, open: []int{4, 5, 0, 1, 2}, count: 2, cards: SetOf(0, 1), raw: 50 + 50},
		"places that are none, or twice":         {links: bridges, open: []int{9, 3, 3, -1, 64, 2}, count: 2, cards: SetOf(2, 3), raw: MostRaw},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := Ask{Open: tc.open, Free: SetOf(tc.open...), Count: tc.count}
			c, ok := tc.links.Best(a)
			if !ok || c.Cards != tc.cards || c.Raw != tc.raw || (c.Domain == 0) != tc.across || !c.Exact {
				t.Errorf("best %v, %+v; want %v, raw %d", slices.Collect(c.Cards.Places()), c, slices.Collect(tc.cards.Places()), tc.raw)
			}
			if tc.tightest == 0 {
				tc.tightest = tc.cards
			}
			if c, ok = tc.links.Tightest(a); !ok || c.Cards != tc.tightest || !c.Exact {
				t.Errorf("tightest %v, want %v", slices.Collect(c.Cards.Places()), slices.Collect(tc.tightest.Places()))
			}
		})
	}
}

// TestNoChoice: what cannot be had is refused at once; what nothing is known of
// goes by the caller's order.
func TestNoChoice(t *testing.T) {
	pairs := machine(t, "nvidia_a100_pcie_bridges")
	for name, a := range map[string]Ask{
		"none asked":       {Open: upTo(4)},
		"fewer than none":  {Open: upTo(4), Count: -1},
		"more than open":   {Open: upTo(3), Count: 4},
		"more, said twice": {Open: []int{0, 0, 1, 1}, Count: 3},
		"more than exist":  {Open: upTo(64), Count: 5},
		"nothing open":     {Count: 1},
	} {
		if c, ok := pairs.Best(a); ok || c != (Choice{}) {
			t.Errorf("%s: %+v", name, c)
		}
	}
	untold := builder(t, cardsOf(4))
	untold.NUMA("c0", 1)
	for name, l := range map[string]Links{"the zero Links": {}, "nobody told": untold.Links()} {
		want := Choice{Cards: SetOf(1, 3), Raw: Neutral, Exact: true}
		if c, ok := l.Best(Ask{Open: []int{3, 1, 0}, Count: 2}); !ok || c != want {
			t.Errorf("%s: %+v, want %+v", name, c, want)
		}
		if l.Raw(SetOf(0, 1), 0) != Neutral {
			t.Errorf("%s rates %d", name, l.Raw(SetOf(0, 1), 0))
		}
	}
}

func TestScore(t *testing.T) {
	for raw, want := range map[int]float64{
		-5: 0, 20: 20, 50: 50, 77: 60, 104: 70, 185: 100, 300: 100,
	} {
		if got := Score(raw); got != want {
			t.Errorf("%d is %v, want %v", raw, got, want)
		}
	}
	for raw := 20; raw < MostRaw; raw++ {
		if Score(raw) >= Score(raw+1) {
			t.Errorf("%d does not rank below %d", raw, raw+1)
		}
	}
}

// rated is what a set of cards is worth, by the words of the rule alone.
type rated struct {
	raw, size, open, weight int
	ranks                   []int
}

// rate is the rule written out, without anything the search uses.
func rate(l Links, cards []int, a Ask) rated {
	var r rated
	in := func(i, j int) bool { return l.Domain(i).Has(j) }
	free := func(i int) bool { return a.Free.Has(i) }
	together, numa, known := true, map[int]bool{}, true
	for _, i := range cards {
		together = together && in(cards[0], i)
		if l.NUMA(i) == gpu.NoNUMA {
			known = false
		} else {
			numa[l.NUMA(i)] = true
		}
		for _, j := range cards {
			if i < j {
				r.weight += l.Between(i, j).Weight()
			}
		}
		r.ranks = append(r.ranks, slices.Index(a.Open, i))
	}
	slices.Sort(r.ranks)
	r.raw = 50
	if together {
		all := true
		for i := range l.Count() {
			if in(cards[0], i) {
				r.size++
				all = all && free(i)
				if slices.Contains(a.Open, i) {
					r.open++
				}
			}
		}
		r.raw += 50
		if r.size == len(cards) {
			r.raw += 30
		}
		if all {
			r.raw += 40
		}
	} else {
		r.raw -= 20
	}
	if len(numa) > 1 {
		r.raw -= 10
	} else if len(numa) == 1 && known {
		r.raw += 15
	}
	return r
}

// subsets yields all sets of n of the cards.
func subsets(cards []int, n int) (all [][]int) {
	for bits := range 1 << len(cards) {
		var s []int
		for i, c := range cards {
			if bits>>i&1 == 1 {
				s = append(s, c)
			}
		}
		if len(s) == n {
			all = append(all, s)
		}
	}
	return all
}

// drawLinks makes a node up, with what vendors do not sell too.
func drawLinks(t *rapid.T, n int) Links {
	words := rapid.SampledFrom([]string{"SYS", "SYS", "NODE", "PIX", "NV1", "NV2", "", "HCCS", "SIO"})
	b, err := NewBuilder(cardsOf(n))
	if err != nil {
		t.Fatal(err)
	}
	b.Told()
	alike := rapid.Bool().Draw(t, "alike")
	for i := range n {
		b.NUMA(idOf(i), rapid.IntRange(-1, 2).Draw(t, "numa"))
		for j := range i {
			cell := "NV1"
			if !alike {
				cell = words.Draw(t, "cell")
			}
			b.Pair(idOf(i), idOf(j), cell)
		}
	}
	return b.Links()
}

// TestChoiceAgainstAll compares with every set of cards there is.
func TestChoiceAgainstAll(t *testing.T) {
	order := map[string]func(a, b rated) int{
		"best": func(a, b rated) int {
			return slices.Compare([]int{-a.raw, a.size, a.open, -a.weight}, []int{-b.raw, b.size, b.open, -b.weight})
		},
		"tightest": func(a, b rated) int {
			outside := func(r rated) int { return min(r.size, 1) * -1 } // in one domain comes first
			return slices.Compare([]int{outside(a), a.size, a.open, -a.raw, -a.weight}, []int{outside(b), b.size, b.open, -b.raw, -b.weight})
		},
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 10).Draw(t, "cards")
		l := drawLinks(t, n)
		open := rapid.Permutation(upTo(n)).Draw(t, "order")
		open = open[:rapid.IntRange(1, n).Draw(t, "open")]
		a := Ask{Open: open, Count: rapid.IntRange(1, len(open)).Draw(t, "count"), Free: Set(rapid.Uint64().Draw(t, "free"))}
		if rapid.Bool().Draw(t, "all free") {
			a.Free = first(n)
		}
		for name, choose := range map[string]func(Ask) (Choice, bool){"best": l.Best, "tightest": l.Tightest} {
			all := subsets(open, a.Count)
			want := slices.MinFunc(all, func(x, y []int) int {
				p, q := rate(l, x, a), rate(l, y, a)
				if c := order[name](p, q); c != 0 {
					return c
				}
				return slices.Compare(p.ranks, q.ranks)
			})
			got, ok := choose(a)
			if !ok || !got.Exact || got.Cards != SetOf(want...) {
				t.Fatalf("%s of %+v: %v, want %v", name, a, slices.Collect(got.Cards.Places()), want)
			}
			r := rate(l, want, a)
			if got.Raw != r.raw || (got.Domain == 0) != (r.size == 0) || got.Domain.Len() != r.size {
				t.Fatalf("%s of %+v: %+v, want %+v", name, a, got, r)
			}
		}
	})
}

// TestOrderOfPlacesDoesNotMatter: other numbers for the same cards, the same cards.
func TestOrderOfPlacesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "cards")
		l := drawLinks(t, n)
		to := rapid.Permutation(upTo(n)).Draw(t, "to")
		b, err := NewBuilder(cardsOf(n))
		if err != nil {
			t.Fatal(err)
		}
		b.Told()
		a := Ask{Open: upTo(n), Free: first(n), Count: rapid.IntRange(1, n).Draw(t, "count")}
		moved := Ask{Free: first(n), Count: a.Count}
		for i := range n {
			moved.Open = append(moved.Open, to[i])
			b.NUMA(idOf(to[i]), l.NUMA(i))
			for j := range i {
				b.Pair(idOf(to[i]), idOf(to[j]), l.Between(i, j).String())
			}
		}
		before, _ := l.Best(a)
		after, _ := b.Links().Best(moved)
		var want Set
		for i := range before.Cards.Places() {
			want |= SetOf(to[i])
		}
		if after.Cards != want || after.Raw != before.Raw {
			t.Fatalf("%+v, and %+v as %v", before, after, to)
		}
	})
}

// TestExactUpToSixteen: any number of 16 cards, whatever they are joined by and
// wherever they are, among it what makes for the most pools of the largest size.
func TestExactUpToSixteen(t *testing.T) {
	for _, linked := range []bool{true, false} {
		for homeless := range 17 {
			for _, nodes := range []int{1, 2, 3, 16} {
				l := mixed(t, homeless, nodes, linked)
				for count := 1; count <= 16; count++ {
					c, ok := l.Best(Ask{Open: upTo(16), Free: first(16), Count: count})
					if !ok || !c.Exact || c.Cards.Len() != count {
						t.Errorf("%d of 16, %d without a NUMA node, the others on %d: %+v", count, homeless, nodes, c)
					}
				}
			}
		}
	}
}

// mixed is a node of 16 cards at random distances, linked or not.
func mixed(t testing.TB, homeless, nodes int, linked bool) Links {
	random := rand.New(rand.NewPCG(uint64(homeless), uint64(nodes)))
	b := builder(t, cardsOf(16))
	for i := range 16 {
		if i >= homeless {
			b.NUMA(idOf(i), i%nodes)
		}
		for j := range i {
			cell := []string{"SYS", "NODE", "PHB", "PXB", "PIX", "PSB"}[random.IntN(6)]
			if linked {
				cell = fmt.Sprintf("NV%d", 1+random.IntN(mostBonded))
			}
			b.Pair(idOf(i), idOf(j), cell)
		}
	}
	return b.Links()
}

// TestInexact: where not every set can be looked at, that is said, and what is
// given is still as good as the domain and the NUMA nodes allow.
func TestInexact(t *testing.T) {
	for name, cards := range map[string]int{"random, 64": 64, "random, 40": 40} {
		l := drawn(t, cards, 3)
		a := Ask{Open: upTo(cards), Free: first(cards), Count: cards / 2}
		c, ok := l.Best(a)
		if !ok || c.Exact || c.Cards.Len() != a.Count || !c.Cards.Within(first(cards)) {
			t.Errorf("%s: %+v", name, c)
		}
		again, _ := l.Best(a)
		if diff := cmp.Diff(c, again); diff != "" {
			t.Errorf("%s: another answer (-first +second):\n%s", name, diff)
		}
		if got, plain := weightOf(l, c.Cards), weightOf(l, first(a.Count)); got <= plain {
			t.Errorf("%s: weight %d, and the first cards have %d", name, got, plain)
		}
	}
}

// TestLateTreasure: the closest cards are found though the search never gets to
// them in the caller's order.
func TestLateTreasure(t *testing.T) {
	const cards, close = 40, 12
	random := rand.New(rand.NewPCG(5, 5))
	b := builder(t, cardsOf(cards))
	for i := range cards {
		for j := range i {
			links := 1 + random.IntN(3)
			if j >= cards-close {
				links = 18
			}
			b.Pair(idOf(i), idOf(j), fmt.Sprintf("NV%d", links))
		}
	}
	want := first(cards) &^ first(cards-close)
	c, ok := b.Links().Best(Ask{Open: upTo(cards), Free: first(cards), Count: close})
	if !ok || c.Exact || c.Cards != want {
		t.Errorf("%+v, want %b", c, want)
	}
}

// TestBounded: no search does more than it may, however many the pools are.
func TestBounded(t *testing.T) {
	for name, l := range map[string]Links{"random": drawn(t, 64, 36), "scattered": scattered(t, 64)} {
		for count := 1; count <= 64; count++ {
			a := Ask{Open: upTo(64), Free: first(64), Count: count}
			s := newSearch(l.t, first(64), &a)
			s.among(first(64), &a, func(o option) key { return key{-o.raw} })
			if s.cut && s.spare >= mostSteps/4 {
				t.Errorf("%s, %d of 64: starts are not counted", name, count)
			}
			if pools := max(len(l.t.nodes), 1); s.steps < -64*pools || s.spare < -count*64*pools {
				t.Errorf("%s, %d of 64: %d steps and %d spare ones are left", name, count, s.steps, s.spare)
			}
		}
	}
}

func weightOf(l Links, cards Set) (sum int) {
	for i := range cards.Places() {
		for j := range cards.Places() {
			if i < j {
				sum += l.Between(i, j).Weight()
			}
		}
	}
	return sum
}
