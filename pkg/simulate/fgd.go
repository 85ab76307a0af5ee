package simulate

import (
	"cmp"
	"math"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// fgd is the policy "fgd", fragmentation gradient descent: the node, and the card,
// whose fragments grow least. It knows the mix of the whole trace beforehand. It
// remembers, and so belongs to one goroutine.
type fgd struct {
	mix   mix
	known map[room]float64 // room -> its fragments
}

var (
	_ pipeline.Score = (*fgd)(nil)
	_ pipeline.Place = (*fgd)(nil)
)

func newFGD(m mix) *fgd { return &fgd{mix: m, known: map[room]float64{}} }

func (*fgd) Name() string { return "fgd" }

// Score is a whole number, so that many nodes are rated alike. For a slice it is
// that of its best card.
func (f *fgd) Score(c *pipeline.Cycle, n *ledger.Node) float64 {
	before := roomOf(n)
	if !slice(c.Request) {
		return f.gain(&before, after(before, c.Request))
	}
	best, last := 0.0, int16(-1)
	for _, left := range before.left[:before.cards] {
		if int(left) >= milli(c.Request) && left != last {
			best, last = max(best, f.onto(&before, c.Request, left)), left
		}
	}
	return best
}

// Place puts the card first that is best for a slice.
func (f *fgd) Place(c *pipeline.Cycle, n *pipeline.Candidate) {
	if !slice(c.Request) {
		return // free cards are alike
	}
	before := roomOf(n.Node)
	score := func(i int) float64 {
		if free := n.Node.Cards[i].FreeMemory(); int(free) >= milli(c.Request) {
			return f.onto(&before, c.Request, int16(free))
		}
		return -1
	}
	slices.SortStableFunc(n.Open, func(i, j int) int { return cmp.Compare(score(j), score(i)) })
}

// onto is the score of a slice's going to a card of which so much is left.
func (f *fgd) onto(before *room, r *gpu.Request, left int16) float64 {
	then := *before
	then.cpu -= r.CPU
	i := slices.Index(then.left[:then.cards], left)
	then.left[i] -= int16(milli(r))
	slices.Sort(then.left[:then.cards])
	return f.gain(before, then)
}

func (f *fgd) gain(before *room, then room) float64 {
	less := f.fragments(before) - f.fragments(&then)
	return math.Trunc(100 / (1 + math.Exp(-less/wholeCard)))
}

func (f *fgd) fragments(r *room) float64 {
	sum, ok := f.known[*r]
	if !ok {
		sum = f.mix.fragments(r)
		f.known[*r] = sum
	}
	return sum
}

func roomOf(n *ledger.Node) room {
	r := room{cpu: n.CPU - n.UsedCPU, cards: len(n.Cards)}
	for i := range n.Cards {
		r.model = n.Cards[i].Model
		r.left[i] = int16(n.Cards[i].FreeMemory())
	}
	slices.Sort(r.left[:r.cards])
	return r
}

// after is what is left when the request has got whole cards, or none.
func after(r room, q *gpu.Request) room {
	r.cpu -= q.CPU
	for i, wanted := r.cards-1, milli(q); i >= 0 && wanted > 0; i-- {
		r.left[i], wanted = 0, wanted-wholeCard
	}
	slices.Sort(r.left[:r.cards])
	return r
}

// slice reports whether the request is for part of a card.
func slice(r *gpu.Request) bool { return len(r.Asks) == 1 && !r.Asks[0].Whole }
