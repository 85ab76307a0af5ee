package preempt

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Planner plans who is ended for whom, and remembers from round to round what it found
// about nodes that stay as they are. The zero value is ready for use by one goroutine
// at a time.
type Planner struct {
	// Most is how many nodes a plan may search that nothing is remembered of; 0:
	// DefaultMost. What was found is remembered, so that the next round gets further.
	Most int

	memory memory
}

// DefaultMost is about 50 ms of searching.
const DefaultMost = 1500

// mostRejections bounds what a plan says of nodes that were not chosen.
const mostRejections = 5

// Plan says who has to be ended so that the Asker fits a node. It changes nothing, and
// equal Worlds give equal plans. Whoever carries a plan out within a round puts the
// claim into World.State before the next one.
func (p *Planner) Plan(w *World, a *Asker) (Plan, Outcome) {
	if never(w, a) != "" {
		return Plan{}, Exempt
	}
	l := newInquiry(w, a, p.memory.of(w, a))
	l.most = p.Most
	if l.most <= 0 {
		l.most = DefaultMost
	}
	switch l.room() {
	case openNow:
		return Plan{}, FitsNow
	case openLater:
		return Plan{}, Waits
	}
	plan, outcome := l.plan()
	if outcome == Planned {
		l.round.promised(promise{a.Pod, plan.Placement.Node, plan.Victims})
	}
	return plan, outcome
}

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
// A plan's node is no state that comes again, and what units take along from other
// nodes those say.
func (l *inquiry) at(i int) (at *said, kept bool) {
	n := l.w.State.At(i)
	s := l.site(n)
	if kept = l.kind != nil && n.Version != 0 && !s.spread; !kept {
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

// choice is a node that does, with what it takes.
type choice struct {
	place int
	cost  bound
	found bool
}

// plan returns the plan on the best node.
func (l *inquiry) plan() (Plan, Outcome) {
	for {
		best, early := l.best()
		switch {
		case early:
			return Plan{}, Early
		case !best.found:
			return Plan{}, Hopeless
		}
		if plan, outcome, ok := l.make(best); ok {
			return plan, outcome
		}
	}
}

// best returns the best node; early, if there was no time to look at all.
func (l *inquiry) best() (best choice, early bool) {
	for i := range l.w.State.Len() {
		if slices.Contains(l.failed, i) {
			continue
		}
		at, kept := l.at(i)
		if at.worth == unknown {
			l.size(at, i)
		}
		if at.worth == impossible || best.found && !at.cost.before(best.cost) || !l.suits(i) {
			continue
		}
		if at.worth == atLeast {
			if kept && l.tried >= l.most {
				early = true
				continue
			}
			if kept {
				l.tried++
			}
			l.find(at, i)
		}
		if at.worth == exactly && (!best.found || at.cost.before(best.cost)) {
			best = choice{i, at.cost, true}
		}
	}
	return best, early
}

// size finds out what a plan on the node takes at the least.
func (l *inquiry) size(at *said, i int) {
	var ok bool
	at.worth = impossible
	if at.cost, ok = l.search(l.w.State.At(i)).least(); ok {
		at.worth = atLeast
	}
}

// find finds out what a plan on the node takes.
func (l *inquiry) find(at *said, i int) []entry {
	victims := l.victims(l.w.State.At(i))
	at.worth, at.cost = exactly, cost(victims)
	if len(victims) == 0 {
		at.worth = impossible
	}
	return victims
}

// victims returns who has to go from the node, no more of any tenant than may within
// the hour; none if there is no way. Who would be too many of a tenant is left out,
// and the search begun anew.
func (l *inquiry) victims(n *ledger.Node) []entry {
	s := l.search(n)
	for {
		found := s.solve()
		last := l.tooMany(found)
		if last < 0 {
			return found
		}
		out := found[last].pods[0]
		rest := slices.DeleteFunc(slices.Clone(s.entries), func(e entry) bool { return e.pods[0] == out })
		s.sketch = newSketch(s.need, s.n, rest)
	}
}

// tooMany returns the place of the first that passes the budget of a tenant; -1 if none
// does.
func (l *inquiry) tooMany(of []entry) int {
	if l.round.spent == nil {
		return -1
	}
	taken := map[gpu.TenantID]int{}
	for i, e := range of {
		for _, p := range e.pods {
			t := tenant(l.w, p)
			if taken[t]++; taken[t] > l.round.left(l.w, p) {
				return i
			}
		}
	}
	return -1
}

// make returns the plan on the node; false if it does not do after all, as when what
// was remembered is out of date. Where it counts on those who are ending, the Asker
// has to wait for them.
func (l *inquiry) make(best choice) (Plan, Outcome, bool) {
	at, _ := l.at(best.place)
	n := l.w.State.At(best.place)
	victims := l.find(at, best.place)
	if at.worth != exactly || at.cost != best.cost {
		return Plan{}, 0, false
	}
	after := without(l.w.State, n.ID, victims, nil)
	if !fits(l.trial, after, n.ID, l.need.r) {
		return Plan{}, Waits, true
	}
	placement, ok := l.trial.Place(after, n.ID)
	if !ok {
		l.failed = append(l.failed, best.place)
		return Plan{}, 0, false
	}
	plan := Plan{Asker: *l.a, Placement: placement, Rejected: l.rejected(best.place)}
	for _, e := range victims {
		for _, p := range e.pods {
			plan.Victims = append(plan.Victims, *p)
		}
	}
	return plan, Planned, true
}

// rejected says of some nodes why they were not chosen.
func (l *inquiry) rejected(chosen int) (all []Rejection) {
	for i := range l.w.State.Len() {
		if i == chosen || len(all) == mostRejections {
			continue
		}
		why := "as many would have to be ended there at the least, and of no lower priority"
		switch at, _ := l.at(i); {
		case !l.suits(i):
			why = "kube-scheduler's own rules keep the pod off it"
		case at.worth == impossible:
			why = "it would not fit even if all were ended who may be"
		case slices.Contains(l.failed, i):
			why = "no cards could be chosen there"
		}
		all = append(all, Rejection{l.w.State.At(i).ID, why})
	}
	return all
}
