package topology

import (
	"cmp"
	"fmt"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Builder gathers what the sources say about the cards of one node. Where they
// differ about two cards, the weaker link counts, so the order in which they
// are heard does not matter. Cards that the node does not have are passed over:
// one may have fallen off the bus since.
type Builder struct {
	cards []gpu.Card
	place map[gpu.CardID]int
	known bool
	links []Link
	numa  []int
}

// NewBuilder starts with the cards in the order of their places, and with the
// NUMA nodes that they carry.
func NewBuilder(cards []gpu.Card) (*Builder, error) {
	n := len(cards)
	if n > MostCards {
		return nil, fmt.Errorf("links of %d cards: a node may have %d", n, MostCards)
	}
	b := &Builder{
		cards: cards,
		place: make(map[gpu.CardID]int, n),
		links: make([]Link, n*n),
		numa:  make([]int, n),
	}
	for i := range cards {
		b.place[cards[i].ID] = i
		b.numa[i] = cards[i].NUMA
		if cards[i].NUMA < 0 {
			b.numa[i] = gpu.NoNUMA
		}
	}
	return b, nil
}

// Told notes that a source spoke of this node's links, even if it named none: a
// pair that nobody names is then known not to be joined.
func (b *Builder) Told() { b.known = true }

// Pair hears of two cards and what the tool prints between them, such as "NV12".
func (b *Builder) Pair(a, c gpu.CardID, cell string) { b.join(a, c, ParseLink(cell)) }

// Score hears of two cards and their score in HAMi's node-nvidia-score. HAMi
// writes 0 for a pair whose ends differ, which says nothing.
func (b *Builder) Score(a, c gpu.CardID, score int) { b.join(a, c, linkOfWeight(score)) }

// NUMA hears of a card's NUMA node, in place of the one that the card carries. A
// negative one is not known.
func (b *Builder) NUMA(id gpu.CardID, node int) {
	if i, ok := b.place[id]; ok {
		b.numa[i] = max(node, gpu.NoNUMA)
	}
}

// Matrix hears of a whole matrix from the tool of this vendor. Its rows are the
// vendor's cards by index; partitions, which repeat their card's index, have no
// row. NUMA nodes are taken where nothing is known so far.
func (b *Builder) Matrix(vendor gpu.Vendor, m Matrix) {
	b.Told()
	places := make([]int, len(m.Rows))
	for i := range m.Rows {
		places[i] = slices.IndexFunc(b.cards, func(c gpu.Card) bool {
			return c.Vendor == vendor && c.Parent == "" && c.Index == m.Rows[i].Index
		})
		if p := places[i]; p >= 0 && b.numa[p] == gpu.NoNUMA {
			b.numa[p] = m.Rows[i].NUMA
		}
	}
	for i, row := range m.Rows {
		for j, link := range row.Links {
			b.set(places[i], places[j], link)
		}
	}
}

func (b *Builder) join(a, c gpu.CardID, link Link) {
	b.Told()
	i, ok := b.place[a]
	j, too := b.place[c]
	if ok && too {
		b.set(i, j, link)
	}
}

func (b *Builder) set(i, j int, link Link) {
	if i < 0 || j < 0 || i == j {
		return
	}
	n := len(b.cards)
	link = weaker(b.links[i*n+j], link)
	b.links[i*n+j], b.links[j*n+i] = link, link
}

// Links returns what was heard so far. The Builder may go on.
func (b *Builder) Links() Links {
	t := &table{
		known: b.known, count: len(b.cards),
		links: slices.Clone(b.links), numa: slices.Clone(b.numa),
	}
	t.weights = make([]uint16, len(t.links))
	for i, link := range t.links {
		t.weights[i] = uint16(link.Weight())
	}
	t.domains, t.domain = domains(t), make([]Set, t.count)
	for _, d := range t.domains {
		for place := range d.Places() {
			t.domain[place] = d
		}
	}
	t.nodes, t.homeless = numaNodes(t.numa)
	return Links{t}
}

// domains are the cards joined by links, by union-find.
func domains(t *table) []Set {
	parent := make([]int, t.count)
	for i := range parent {
		parent[i] = i
	}
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	for i := range t.count {
		for j := range i {
			if t.links[i*t.count+j].Kind.Joins() {
				parent[root(i)] = root(j)
			}
		}
	}
	return grouped(t.count, root)
}

// numaNodes are the cards of each NUMA node, and those of none.
func numaNodes(numa []int) (nodes []Set, homeless Set) {
	for i, node := range numa {
		if node == gpu.NoNUMA {
			homeless |= one(i)
		}
	}
	all := grouped(len(numa), func(i int) int { return numa[i] })
	return slices.DeleteFunc(all, func(s Set) bool { return s.Within(homeless) }), homeless
}

// grouped returns the places that share a key, groups by their lowest place.
func grouped(n int, key func(place int) int) []Set {
	groups := map[int]Set{}
	for i := range n {
		groups[key(i)] |= one(i)
	}
	sets := make([]Set, 0, len(groups))
	for _, s := range groups {
		sets = append(sets, s)
	}
	slices.SortFunc(sets, func(a, b Set) int { return cmp.Compare(a&-a, b&-b) })
	return sets
}
