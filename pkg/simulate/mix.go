package simulate

import (
	"cmp"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// mix is the most popular shapes of a trace, main memory aside, with their shares,
// which add up to 1. It is never edited.
type mix []part

type part struct {
	cpu    gpu.MilliCPU
	cards  int
	milli  int
	models []string // none for any
	share  float64
}

// covered is the part of the pods that the mix stands for at least.
const covered = 0.95

// mixOf counts shapes, and takes them by falling count until they stand for enough.
func mixOf(pods []Pod) mix {
	counts := map[Shape]int{}
	for i := range pods {
		s := pods[i].Shape
		s.Memory = 0
		counts[s]++
	}
	shapes := make([]Shape, 0, len(counts))
	for s := range counts {
		shapes = append(shapes, s)
	}
	slices.SortFunc(shapes, func(a, b Shape) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.Cards, b.Cards), cmp.Compare(a.Milli, b.Milli),
			cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.Models, b.Models))
	})
	taken, popular := 0, 0
	for popular < len(shapes) && float64(taken) < covered*float64(len(pods)) {
		taken += counts[shapes[popular]]
		popular++
	}
	m := make(mix, popular)
	for i, s := range shapes[:popular] {
		m[i] = part{s.CPU, s.Cards, s.Milli, s.models(), float64(counts[s]) / float64(taken)}
	}
	return m
}

// room is what is left of a node.
type room struct {
	cpu   gpu.MilliCPU
	model string
	cards int              // how many
	left  [mostCards]int16 // of each, in thousandths, the smallest first
}

// fragments is what of the cards' free room is expected to be of no use: for each
// shape what it cannot use, by how often it comes.
func (m mix) fragments(r *room) (sum float64) {
	for i := range m {
		sum += m[i].share * float64(m[i].unusable(r))
	}
	return sum
}

// unusable is all free room where the shape does not fit, or needs no card; else
// what is left of cards that are too small for it.
func (p *part) unusable(r *room) int {
	all, small, enough := 0, 0, 0
	for _, left := range r.left[:r.cards] {
		all += int(left)
		if int(left) < p.milli {
			small += int(left)
		} else {
			enough++
		}
	}
	if p.cards == 0 || r.cpu < p.cpu || enough < p.cards || len(p.models) > 0 && !slices.Contains(p.models, r.model) {
		return all
	}
	return small
}
