package pipeline

import (
	"math"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Rate returns the node's score, the weighted mean of its plugins' scores, and
// the parts it is made of. Without any plugin it is the neutral 50.
func (p *Pipeline) Rate(c *Cycle, n *ledger.Node) (total float64, parts []Part) {
	var own, near Base
	p.each(c, n, &Scratch{}, true, func(w *Weighted, part Part) {
		parts = append(parts, part)
		if w.Near {
			near.add(part)
		} else {
			own.add(part)
		}
	})
	return own.with(near), parts
}

// Total is the score that Rate returns, without what it is made of.
func (p *Pipeline) Total(c *Cycle, n *ledger.Node, s *Scratch) float64 {
	return p.Complete(c, n, p.Base(c, n, s))
}

// Base is the part of a score that does not depend on where members of the pod's
// group are. As long as the node is what it is, it stays the same.
type Base struct{ sum, weights float64 }

func (b *Base) add(part Part) { b.sum, b.weights = b.sum+part.Weight*part.Score, b.weights+part.Weight }

// with is the weighted mean of the two.
func (b Base) with(near Base) float64 {
	if b.weights+near.weights == 0 {
		return Neutral
	}
	return (b.sum + near.sum) / (b.weights + near.weights)
}

// Base returns what the scores make of the node that are not Near.
func (p *Pipeline) Base(c *Cycle, n *ledger.Node, s *Scratch) (own Base) {
	p.each(c, n, s, false, func(_ *Weighted, part Part) { own.add(part) })
	return own
}

// Complete returns the node's score, of which own is known.
func (p *Pipeline) Complete(c *Cycle, n *ledger.Node, own Base) float64 {
	var near Base
	for _, w := range p.near {
		if w.Weight > 0 && w.concerns(c.Request) {
			near.add(Part{Score: clamp(w.Score.Score(c, n)), Weight: w.Weight})
		}
	}
	return own.with(near)
}

// each tells what the scores make of the node that count for the request, with or
// without those that are Near.
func (p *Pipeline) each(c *Cycle, n *ledger.Node, s *Scratch, near bool, tell func(*Weighted, Part)) {
	want := p.layout(c.Request)
	cards := chosen{}
	for i := range p.cfg.Scores {
		w := &p.cfg.Scores[i]
		if w.Near && !near || w.Layout != "" && w.Layout != want || w.Weight == 0 || !w.concerns(c.Request) {
			continue
		}
		tell(w, p.rated(c, n, w, s, &cards))
	}
}

// layout is which of the scores that exclude each other counts for the request.
func (p *Pipeline) layout(r *gpu.Request) gpu.Policy {
	want := layout(r.NodePolicy, p.cfg.NodeLayout)
	for i := range p.cfg.Scores {
		if w := &p.cfg.Scores[i]; w.Layout == want && want != "" && !w.concerns(r) {
			return p.cfg.Otherwise
		}
	}
	return want
}

func (w *Weighted) concerns(r *gpu.Request) bool {
	if w.Cards != nil {
		return w.Cards.Concerns(r)
	}
	about, some := w.Score.(Concerned)
	return !some || about.Concerns(r)
}

// chosen is what the request would get on the node, once somebody has asked.
type chosen struct {
	made   bool
	grants []gpu.Grant
}

func (p *Pipeline) rated(c *Cycle, n *ledger.Node, w *Weighted, s *Scratch, cards *chosen) Part {
	switch {
	case w.Cards == nil:
		return Part{w.Score.Name(), clamp(w.Score.Score(c, n)), w.Weight}
	case !w.Cards.Knows(n):
		return Part{w.Cards.Name(), Neutral, w.Weight}
	case !cards.made:
		*cards = chosen{true, p.preferred(c, n, s)}
	}
	return Part{w.Cards.Name(), clamp(w.Cards.ScoreCards(c, n, cards.grants)), w.Weight}
}

// preferred returns the cards that the request would get on the node if there were
// no quotas; none where it does not fit.
func (p *Pipeline) preferred(c *Cycle, n *ledger.Node, s *Scratch) []gpu.Grant {
	known, cards := s.judged == c && s.node.Node == n, &s.node
	if known {
		s.judged, cards.JudgeOnly = nil, false // what was found is used up: the order changes it
	} else if v := p.narrow(c, s.begin(n)); !v.OK() {
		return nil
	}
	if !known || len(c.Request.Asks) == 1 {
		p.order(c, cards)
	}
	grants, _ := p.cfg.Pack.Pack(c, cards)
	return grants
}

// Neutral is the score of a node about which a plugin knows nothing.
const Neutral = 50

// clamp keeps a plugin's mistake, and what is not even a number, from drowning
// the others.
func clamp(score float64) float64 {
	if math.IsNaN(score) {
		return Neutral
	}
	return min(100, max(0, score))
}

func layout(asked, standing gpu.Policy) gpu.Policy {
	if asked != "" {
		return asked
	}
	return standing
}
