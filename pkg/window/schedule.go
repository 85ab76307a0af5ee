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
	// openings returns when it is open, as far as that meets from to to, in any order.
	// Where one ends after to it may end later still.
	openings(from, to time.Time) []opening
}

// opening is a time for which a window is open: at is in it, until is not.
type opening struct{ at, until time.Time }

// meets says whether the opening has a moment of from to to, or adjoins it.
func (o opening) meets(from, to time.Time) bool { return !o.at.After(to) && !o.until.Before(from) }

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
		for _, o := range p.openings(at, at) {
			if !at.Before(o.at) && at.Before(o.until) {
				return true
			}
		}
	}
	return false
}

// Next returns the first moment after at with which the schedule opens or closes. It
// looks 400 days ahead: windows of two zones may leave a gap only in the weeks in which
// one of them has changed its clocks and the other has not. ok is false if nothing
// changes in that time.
func (s Schedule) Next(at time.Time) (next Transition, ok bool) {
	if s.Always() {
		return Transition{}, false
	}
	open := s.Open(at)
	for _, days := range []time.Duration{16, 80, 400} { // mostly the first of them says it
		if t, found := s.change(open, at, at.Add(days*24*time.Hour)); found {
			return Transition{At: t, Opens: !open}, true
		}
	}
	return Transition{}, false
}

// change returns the first moment after at, and not after to, that ends the state of at.
func (s Schedule) change(open bool, at, to time.Time) (time.Time, bool) {
	for _, o := range s.merged(at, to) {
		switch {
		case open && o.until.After(at):
			return o.until, !o.until.After(to)
		case !open && o.at.After(at):
			return o.at, true
		}
	}
	return time.Time{}, false
}

// merged returns the openings of all windows, in order, those that overlap or adjoin as
// one.
func (s Schedule) merged(from, to time.Time) []opening {
	var all []opening
	for _, p := range s.parts {
		all = append(all, p.openings(from, to)...)
	}
	slices.SortFunc(all, func(a, b opening) int { return a.at.Compare(b.at) })
	merged := all[:0]
	for _, o := range all {
		if n := len(merged); n > 0 && !o.at.After(merged[n-1].until) {
			if o.until.After(merged[n-1].until) {
				merged[n-1].until = o.until
			}
			continue
		}
		merged = append(merged, o)
	}
	return merged
}
