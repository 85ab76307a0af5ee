package preempt

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

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
		better, late := l.better(i, best)
		early = early || late
		if better.found {
			best = better
		}
	}
	return best, early
}

// better returns the node at that place as a choice, if it is better than the best so
// far; late, if there is no time to find out. Who cannot win is not searched.
func (l *inquiry) better(i int, best choice) (c choice, late bool) {
	at, kept := l.at(i)
	var s *search
	if at.worth == unknown {
		s = l.search(l.w.State.At(i))
		at.size(s)
	}
	wins := func() bool { return at.worth != impossible && (!best.found || at.cost.before(best.cost)) }
	if !wins() || !l.suits(i) {
		return choice{}, false
	}
	if at.worth == atLeast {
		if kept {
			if l.tried == l.most {
				return choice{}, true
			}
			l.tried++
		}
		if s == nil {
			s = l.search(l.w.State.At(i))
		}
		at.settle(l.victims(s))
	}
	return choice{i, at.cost, wins()}, false
}

// size notes what a plan on the node takes at the least.
func (at *said) size(s *search) {
	at.worth = impossible
	if least, ok := s.least(); ok {
		at.worth, at.cost = atLeast, least
	}
}

// settle notes what a plan on the node takes.
func (at *said) settle(victims []entry) {
	at.worth, at.cost = exactly, cost(victims)
	if len(victims) == 0 {
		at.worth = impossible
	}
}

// victims returns who has to go from the node, no more of any tenant than may within
// the hour; none if there is no way. Who would be too many of a tenant is left out,
// and the search begun anew.
func (l *inquiry) victims(s *search) []entry {
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
