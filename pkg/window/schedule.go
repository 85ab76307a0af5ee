package window

import (
	"slices"
	"time"
)

// Schedule is the union of windows. The zero Schedule has none and is always open.
type Schedule struct {
	parts []part
}

// part is one or more windows.
type part interface {
	// openings returns a function that gives, one by one and in order, when it is open:
	// what ends after from and begins by to. What ends after to may end later still.
	openings(from, to time.Time) func() (o opening, ok bool)
}

// opening is a time for which a window is open: at is in it, until is not.
type opening struct{ at, until time.Time }

// Transition is a moment at which a schedule opens or closes.
type Transition struct {
	At    time.Time // in UTC
	Opens bool
}

// Always says that nothing ever closes the schedule: it has no windows, or windows of
// one zone that fill the week.
func (s Schedule) Always() bool { return len(s.parts) == 0 }

// Open says whether a window is open at that moment.
func (s Schedule) Open(at time.Time) bool {
	if s.Always() {
		return true
	}
	for _, p := range s.parts {
		if _, open := p.openings(at, at)(); open {
			return true
		}
	}
	return false
}

// Next returns the first moment after at with which the schedule opens or closes. It
// looks 400 days ahead: windows of two zones may leave a gap only in the weeks in which
// one of them has changed its clocks and the other has not. ok is false if nothing
// changes in that time.
func (s Schedule) Next(at time.Time) (next Transition, ok bool) {
	to := at.Add(400 * 24 * time.Hour)
	var walks []*walk
	for _, p := range s.parts {
		walks = put(walks, &walk{pull: p.openings(at, to)})
	}
	closes := at // until then it is open, as far as is known
	for len(walks) > 0 && !walks[0].next.at.After(closes) && !closes.After(to) {
		w := walks[0]
		if w.next.until.After(closes) {
			closes = w.next.until
		}
		walks = put(slices.Delete(walks, 0, 1), w)
	}
	switch {
	case closes.After(to):
		return Transition{}, false
	case closes.After(at):
		return Transition{At: closes}, true
	case len(walks) == 0:
		return Transition{}, false
	}
	return Transition{At: walks[0].next.at, Opens: true}, true
}

// walk goes through the openings of a part.
type walk struct {
	pull func() (opening, bool)
	next opening // that was pulled last
}

// put pulls what is next of w, and puts w among the walks, which are in the order in which
// they open. Where there is no more it leaves it out.
func put(walks []*walk, w *walk) []*walk {
	var ok bool
	if w.next, ok = w.pull(); !ok {
		return walks
	}
	i, _ := slices.BinarySearchFunc(walks, w, func(a, b *walk) int { return a.next.at.Compare(b.next.at) })
	return slices.Insert(walks, i, w)
}
