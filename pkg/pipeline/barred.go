package pipeline

import (
	"cmp"
	"slices"
	"sort"
)

// Bar is a card that was taken out of the running for what was measured.
type Bar struct {
	Place   int // in Node.Cards
	Verdict Verdict
}

// Bar takes the card at this place out of the running once all filters are through.
// Unlike what Keep takes out it is blamed only where the request would fit with it:
// those who wait for a card that somebody else has do not wait for it to be idle.
// Of several verdicts on a card the first counts.
func (n *Candidate) Bar(place int, v Verdict) {
	if !n.isBarred(place) {
		n.Barred = append(n.Barred, Bar{place, v})
	}
}

// BarAll takes the whole node out of the running, likewise.
func (n *Candidate) BarAll(v Verdict) {
	for _, i := range n.Open {
		n.Bar(i, v)
	}
}

func (n *Candidate) isBarred(place int) bool {
	for i := range n.Barred {
		if n.Barred[i].Place == place {
			return true
		}
	}
	return false
}

// setAside leaves the barred cards out of Open, and in Barred those that were in it.
func (n *Candidate) setAside() {
	if len(n.Barred) == 0 {
		return // as nearly always
	}
	open := func(b Bar) bool { return slices.Contains(n.Open, b.Place) }
	n.Barred = slices.DeleteFunc(n.Barred, func(b Bar) bool { return !open(b) })
	n.Open = slices.DeleteFunc(n.Open, n.isBarred)
}

// blame says why the request does not fit the open cards, if v says that it does
// not: where it would with those that are barred, what bars the last one needed, the
// rest of them being nearer to their limit.
func (p *Pipeline) blame(c *Cycle, n *Candidate, v Verdict) Verdict {
	if v.OK() || len(n.Barred) == 0 {
		return v
	}
	bars := slices.Clone(n.Barred)
	slices.SortFunc(bars, func(a, b Bar) int {
		return cmp.Or(a.Verdict.beyond(b.Verdict), cmp.Compare(n.Node.Cards[a.Place].ID, n.Node.Cards[b.Place].ID))
	})
	trial := &Candidate{Node: n.Node, JudgeOnly: true, Linked: n.Linked, Open: make([]int, 0, len(n.Open)+len(bars))}
	if v := p.packWith(c, trial, n.Open, bars); !v.OK() {
		return v // it would not fit anyhow
	}
	needed := sort.Search(len(bars), func(k int) bool {
		v := p.packWith(c, trial, n.Open, bars[:k])
		return v.OK()
	})
	return bars[max(0, needed-1)].Verdict
}

// packWith says whether the request would fit on the open cards with these.
func (p *Pipeline) packWith(c *Cycle, trial *Candidate, open []int, bars []Bar) Verdict {
	trial.Open = append(trial.Open[:0], open...)
	for _, b := range bars {
		trial.Open = append(trial.Open, b.Place)
	}
	slices.Sort(trial.Open)
	if len(c.Request.Asks) > 1 {
		p.order(c, trial)
	}
	_, v := p.cfg.Pack.Pack(c, trial)
	return v
}

// beyond compares how far two figures are past their limits.
func (v Verdict) beyond(o Verdict) int { return cmp.Compare(v.Have*o.Want, o.Have*v.Want) }
