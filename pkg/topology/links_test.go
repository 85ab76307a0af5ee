package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// cardsOf returns n cards c0, c1, ... of NVIDIA that know no NUMA node.
func cardsOf(n int) []gpu.Card {
	cards := make([]gpu.Card, n)
	for i := range cards {
		cards[i] = gpu.Card{ID: idOf(i), Index: i, Vendor: gpu.Nvidia, NUMA: gpu.NoNUMA}
	}
	return cards
}

func idOf(i int) gpu.CardID { return gpu.CardID(fmt.Sprintf("c%d", i)) }

func builder(t testing.TB, cards []gpu.Card) *Builder {
	t.Helper()
	b, err := NewBuilder(cards)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// linksOf builds what the matrix says of as many cards of NVIDIA.
func linksOf(t testing.TB, m Matrix) Links {
	t.Helper()
	b := builder(t, cardsOf(len(m.Rows)))
	b.Matrix(gpu.Nvidia, m)
	return b.Links()
}

func machine(t testing.TB, name string) Links {
	t.Helper()
	m, err := ParseMatrix(recorded(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return linksOf(t, m)
}

// domainsOf returns the domain of each card, each once.
func domainsOf(l Links) []Set {
	var all []Set
	for i := range l.Count() {
		if d := l.Domain(i); !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	return all
}

func TestDomains(t *testing.T) {
	singles := func(n int) (s []Set) {
		for i := range n {
			s = append(s, SetOf(i))
		}
		return s
	}
	tests := map[string]struct {
		links Links
		want  []Set
		room  int // of all cards but card 0
	}{
		"DGX A100":       {machine(t, "nvidia_dgx_a100"), []Set{first(8)}, 7},
		"DGX H100":       {machine(t, "nvidia_dgx_h100_underlined"), []Set{first(8)}, 7},
		"DGX-1 V100":     {machine(t, "nvidia_dgx1_v100"), []Set{first(8)}, 7}, // over other cards
		"DGX-2":          {machine(t, "nvidia_dgx2"), []Set{first(16)}, 15},
		"A100 bridges":   {machine(t, "nvidia_a100_pcie_bridges"), []Set{SetOf(0, 1), SetOf(2, 3)}, 2},
		"one bridge":     {machine(t, "nvidia_a6000_one_bridge"), []Set{SetOf(0, 1), SetOf(2)}, 1},
		"PCIe":           {machine(t, "nvidia_pcie_8"), singles(8), 1},
		"one card":       {machine(t, "nvidia_one"), singles(1), 0},
		"Ascend 910A":    {linksOf(t, truth{"NPU0", none(8), groups("HCCS", "SYS")}.matrix()), []Set{SetOf(0, 1, 2, 3), SetOf(4, 5, 6, 7)}, 4},
		"Ascend 910C":    {linksOf(t, truth{"NPU0", none(4), "SIO HCCS_SW HCCS_SW\nHCCS_SW HCCS_SW\nSIO"}.matrix()), []Set{first(4)}, 3},
		"MetaX":          {machine(t, "metax_node_affinity"), []Set{SetOf(0, 1, 2, 3), SetOf(4, 5, 6, 7)}, 4},
		"a chain":        {linksOf(t, truth{"GPU0", none(4), "SYS SYS NV1\nNV1 SYS\nNV1"}.matrix()), []Set{first(4)}, 3},
		"nothing is set": {Links{}, nil, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, domainsOf(tc.links)); diff != "" {
				t.Errorf("domains (-want +got):\n%s", diff)
			}
			if got := tc.links.Room(^SetOf(0)); got != tc.room {
				t.Errorf("room for %d, want %d", got, tc.room)
			}
		})
	}
}

// TestSources: the three ways in which a node tells of its links come to the same.
func TestSources(t *testing.T) {
	want := machine(t, "nvidia_a100_pcie_bridges")
	pairs := builder(t, cardsOf(4))
	scores := builder(t, cardsOf(4))
	for i := range 4 {
		pairs.NUMA(idOf(i), i/2)
		scores.NUMA(idOf(i), i/2)
		for j := range 4 {
			switch {
			case i == j:
			case i/2 == j/2:
				pairs.Pair(idOf(i), idOf(j), "NV12")
				scores.Score(idOf(i), idOf(j), 1210) // twelve NVLinks and SYS
			default:
				pairs.Pair(idOf(i), idOf(j), "SYS")
				scores.Score(idOf(i), idOf(j), 10)
			}
		}
	}
	if got := pairs.Links(); !got.Equal(want) {
		t.Errorf("pairs: %v, matrix: %v", got.t, want.t)
	}
	if got := scores.Links(); !got.Equal(want) {
		t.Errorf("scores: %v, matrix: %v", got.t, want.t)
	}
}

func TestBuilder(t *testing.T) {
	const far = gpu.NoNUMA
	tests := map[string]struct {
		cards func([]gpu.Card)
		tell  func(*Builder)
		known bool
		link  string // between cards 0 and 1
		numa  []int
	}{
		"nobody told":                 {numa: []int{far, far, far}},
		"told of no link":             {tell: (*Builder).Told, known: true, numa: []int{far, far, far}},
		"the inventory's NUMA nodes":  {cards: func(c []gpu.Card) { c[1].NUMA, c[2].NUMA = 4, -7 }, numa: []int{far, 4, far}},
		"a NUMA node is no link":      {tell: func(b *Builder) { b.NUMA("c1", 2) }, numa: []int{far, 2, far}},
		"a NUMA node taken back":      {cards: func(c []gpu.Card) { c[1].NUMA = 4 }, tell: func(b *Builder) { b.NUMA("c1", -7) }, numa: []int{far, far, far}},
		"strangers":                   {tell: func(b *Builder) { b.Pair("c0", "c9", "NV1"); b.NUMA("c9", 0); b.Score("c8", "c1", 100) }, known: true, numa: []int{far, far, far}},
		"a card and itself":           {tell: func(b *Builder) { b.Pair("c0", "c0", "NV1") }, known: true, numa: []int{far, far, far}},
		"the weaker link counts":      {tell: func(b *Builder) { b.Pair("c0", "c1", "NV12"); b.Pair("c1", "c0", "NV4") }, known: true, link: "NV4", numa: []int{far, far, far}},
		"not knowing says nothing":    {tell: func(b *Builder) { b.Pair("c0", "c1", "NV12"); b.Pair("c1", "c0", "NA") }, known: true, link: "NV12", numa: []int{far, far, far}},
		"HAMi's 0 says nothing":       {tell: func(b *Builder) { b.Score("c0", "c1", 0) }, known: true, numa: []int{far, far, far}},
		"the matrix fills what lacks": {cards: func(c []gpu.Card) { c[0].NUMA = 5 }, tell: func(b *Builder) { b.Matrix(gpu.Nvidia, truth{"GPU0", []int{0, 1}, "PIX"}.matrix()) }, known: true, link: "PIX", numa: []int{5, 1, far}},
		"rows go by index":            {cards: func(c []gpu.Card) { c[0].Index, c[1].Index, c[2].Index = 2, 1, 0 }, tell: func(b *Builder) { b.Matrix(gpu.Nvidia, truth{"GPU0", []int{7, 8, 9}, "NV1 NV2\nNV3"}.matrix()) }, known: true, link: "NV3", numa: []int{9, 8, 7}},
		"another vendor's matrix":     {tell: func(b *Builder) { b.Matrix(gpu.Ascend, truth{"NPU0", []int{0, 1, 1}, every(3, "HCCS")}.matrix()) }, known: true, numa: []int{far, far, far}},
		"partitions have no row": {cards: func(c []gpu.Card) {
			c[0] = gpu.Card{ID: "m0", Vendor: gpu.Nvidia, Parent: "c0", NUMA: far}
			c[1].Index, c[2].Index = 0, 1
		}, tell: func(b *Builder) { b.Matrix(gpu.Nvidia, truth{"GPU0", []int{0, 1}, "NV1"}.matrix()) }, known: true, numa: []int{far, 0, 1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cards := cardsOf(3)
			if tc.cards != nil {
				tc.cards(cards)
			}
			b := builder(t, cards)
			if tc.tell != nil {
				tc.tell(b)
			}
			l := b.Links()
			numa := []int{l.NUMA(0), l.NUMA(1), l.NUMA(2)}
			if l.Between(0, 0) != (Link{}) {
				t.Errorf("a card is joined to itself by %v", l.Between(0, 0))
			}
			if l.Known() != tc.known || l.Between(0, 1).String() != tc.link || l.Between(1, 0).String() != tc.link || !slices.Equal(numa, tc.numa) {
				t.Errorf("known %t, link %v, NUMA %v; want %t, %s, %v", l.Known(), l.Between(0, 1), numa, tc.known, tc.link, tc.numa)
			}
		})
	}
}

// TestBuilderInAnyOrder: links that are heard in another order are the same links.
func TestBuilderInAnyOrder(t *testing.T) {
	words := []string{"NV1", "NV12", "HCCS", "MLK", "SIO", "PCIE", "SYS", "PIX", "NA", ""}
	type said struct {
		a, b gpu.CardID
		cell string
	}
	random := rand.New(rand.NewPCG(1, 2))
	var all []said
	for range 60 {
		all = append(all, said{idOf(random.IntN(5)), idOf(random.IntN(5)), words[random.IntN(len(words))]})
	}
	var want Links
	for round := range 20 {
		b := builder(t, cardsOf(5))
		for _, s := range all {
			b.Pair(s.a, s.b, s.cell)
		}
		if round == 0 {
			want = b.Links()
		} else if got := b.Links(); !got.Equal(want) {
			t.Fatalf("%v in one order, %v in another", want.t.links, got.t.links)
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
}

// TestLinksNeverChange: a builder that goes on does not touch what it gave.
func TestLinksNeverChange(t *testing.T) {
	b := builder(t, cardsOf(3))
	b.Pair("c0", "c1", "NV2")
	before := b.Links()
	b.Pair("c0", "c1", "NV1")
	b.Pair("c1", "c2", "NV1")
	b.NUMA("c0", 3)
	if before.Between(0, 1).String() != "NV2" || before.Domain(2) != SetOf(2) || before.NUMA(0) != gpu.NoNUMA {
		t.Errorf("%v", before.t)
	}
	if after := b.Links(); after.Equal(before) || after.Domain(2) != first(3) {
		t.Errorf("%v", after.t)
	}
}

func TestMostCards(t *testing.T) {
	if _, err := NewBuilder(cardsOf(MostCards + 1)); err == nil {
		t.Error("a builder of 65 cards")
	}
	b := builder(t, cardsOf(MostCards))
	b.Pair("c0", "c63", "NV1")
	if l := b.Links(); l.Domain(63) != SetOf(0, 63) || l.Room(^Set(0)) != 2 {
		t.Errorf("domain %b", l.Domain(63))
	}
}

// TestWhereNothingIs: places that are none are asked about without harm.
func TestWhereNothingIs(t *testing.T) {
	for name, l := range map[string]Links{"nothing": {}, "two cards": linksOf(t, truth{"GPU0", none(2), "NV1"}.matrix())} {
		for _, p := range []int{-1, 2, 64, 1 << 40} {
			if l.Between(p, 0) != (Link{}) || l.Between(0, p) != (Link{}) || l.NUMA(p) != gpu.NoNUMA || l.Domain(p) != 0 {
				t.Errorf("%s knows of card %d", name, p)
			}
		}
	}
	told, moved := builder(t, cardsOf(2)), builder(t, cardsOf(2))
	untold := told.Links()
	told.Told()
	moved.NUMA("c0", 0)
	if untold.Equal(told.Links()) || untold.Equal(moved.Links()) || !untold.Equal(builder(t, cardsOf(2)).Links()) {
		t.Error("links that differ are equal, or others are not")
	}
	if !(Links{}).Equal(Links{}) || (Links{}).Equal(builder(t, nil).Links()) || (Links{}).Known() {
		t.Error("the zero Links is like another")
	}
}
