package pipeline

import (
	"math"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Rate returns the node's score, the weighted mean of its plugins' scores, and
// the parts it is made of. Without any plugin it is the neutral 50.
func (p *Pipeline) Rate(c *Cycle, n *ledger.Node) (total float64, parts []Part) {
	total = p.mean(c, n, &Scratch{}, func(part Part) { parts = append(parts, part) })
	return total, parts
}

// Total is the score that Rate returns, without what it is made of.
func (p *Pipeline) Total(c *Cycle, n *ledger.Node, s *Scratch) float64 {
	return p.mean(c, n, s, func(Part) {})
}

func (p *Pipeline) mean(c *Cycle, n *ledger.Node, s *Scratch, tell func(Part)) float64 {
	var sum, weights float64
	want := p.layout(c.Request)
	cards := chosen{}
	for i := range p.cfg.Scores {
		w := &p.cfg.Scores[i]
		if w.Layout != "" && w.Layout != want || w.Weight == 0 || !w.concerns(c.Request) {
			continue
		}
		part := p.rated(c, n, w, s, &cards)
		tell(part)
		sum += part.Weight * part.Score
		weights += part.Weight
	}
	if weights == 0 {
		return Neutral
	}
	return sum / weights
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
	s.node = Candidate{Node: n, Open: s.node.Open[:0]}
	if v := p.narrow(c, &s.node); !v.OK() {
		return nil
	}
	p.order(c, &s.node)
	grants, _ := p.cfg.Pack.Pack(c, &s.node)
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
