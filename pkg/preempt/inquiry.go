package preempt

import (
	"heteroflow.io/heteroflow/pkg/ledger"
)

// inquiry is the planning for one Asker.
type inquiry struct {
	w      *World
	a      *Asker
	trial  Trial
	need   need
	round  *round
	cooled map[string]struct{}
	kind   *kind  // nil: nothing is remembered
	own    []said // of nodes that nothing is remembered of
	failed []int  // places of nodes that turned out not to do
	most   int
	tried  int // nodes searched that may be remembered
}

func newInquiry(w *World, a *Asker, k *kind) *inquiry {
	r := w.look()
	return &inquiry{
		w: w, a: a, trial: w.Trial(&a.Request, w.State), need: needOf(&a.Request),
		round: r, cooled: r.cooled(w, a), kind: k,
	}
}

// site is that of the node, which nobody may be on.
func (l *inquiry) site(n *ledger.Node) *site {
	if s := l.round.sites[n.ID]; s != nil {
		return s
	}
	return &site{}
}

// at returns what is known of the node at that place, and whether that is remembered.
// A plan's node is no state that comes again, what units take along from other nodes
// those say, and what a node is of which something is kept the time says.
func (l *inquiry) at(i int) (at *said, kept bool) {
	n := l.w.State.At(i)
	s := l.site(n)
	if kept = l.kind != nil && n.Version != 0 && !s.spread && !n.Keeps(); !kept {
		if l.own == nil {
			l.own = make([]said, l.w.State.Len())
		}
		return &l.own[i], false
	}
	at = &l.kind.said[i]
	if mark := l.mark(s); at.version != n.Version || at.mark != mark {
		*at = said{version: n.Version, mark: mark}
	}
	return at, true
}

// mark is that of the site as the Asker meets it.
func (l *inquiry) mark(s *site) uint64 {
	sum := s.mark
	if len(l.cooled) == 0 {
		return sum
	}
	for _, p := range s.may {
		if _, out := l.cooled[p.Lineage]; out {
			sum = sum*3 + marked(p, none)
		}
	}
	return sum
}

func (l *inquiry) suits(i int) bool {
	return l.w.Suits == nil || l.w.Suits(l.a, l.w.State.At(i).ID)
}

// base is the cluster once those have gone who are ending on the node.
func (l *inquiry) base(n *ledger.Node) ledger.Snapshot {
	return l.w.State.Without(n.ID, l.site(n).going...)
}

// room says whether the Asker fits any node without anybody being ended, now or later.
func (l *inquiry) room() open {
	best := shut
	for i := range l.w.State.Len() {
		at, _ := l.at(i)
		if at.open == unasked {
			at.open = l.ask(l.w.State.At(i))
		}
		if at.open == shut || at.open == best || !l.suits(i) {
			continue
		}
		if best = at.open; best == openNow {
			break
		}
	}
	return best
}

func (l *inquiry) ask(n *ledger.Node) open {
	switch {
	case l.need.now(n) && l.trial.Fits(l.w.State, n.ID):
		return openNow
	case len(l.site(n).going) > 0 && fits(l.trial, l.base(n), n.ID, l.need.r):
		return openLater
	}
	return shut
}

func (l *inquiry) search(n *ledger.Node) *search {
	base := l.base(n)
	after, _ := base.Node(n.ID)
	entries := l.round.entries(l.site(n), l.a, l.cooled, base)
	return &search{newSketch(&l.need, after, entries), l.trial, base}
}
