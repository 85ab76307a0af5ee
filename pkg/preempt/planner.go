package preempt

import "slices"

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

// make returns the plan on the node; false if it does not do after all, as when what
// was remembered is out of date. Where it counts on those who are ending, the Asker
// has to wait for them.
func (l *inquiry) make(best choice) (Plan, Outcome, bool) {
	at, _ := l.at(best.place)
	n := l.w.State.At(best.place)
	victims := l.victims(l.search(n))
	at.settle(victims)
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
