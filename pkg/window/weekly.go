package window

import "time"

const (
	dayMinutes  = 24 * 60
	weekMinutes = 7 * dayMinutes
)

// daily is a window of days, from and to.
type daily struct {
	days     [7]bool // by time.Weekday: the days on which it opens
	from, to int     // minutes of the day; to <= from is on the day after
	zone     *time.Location
}

// length is how many minutes the clock goes on while the window is open: a whole day if
// it ends when it began.
func (d daily) length() int {
	if d.to > d.from {
		return d.to - d.from
	}
	return dayMinutes - d.from + d.to
}

// weekly is all the windows of one zone that have days, from and to. By the clock they
// are the same every week, so there they are merged: what overlaps or adjoins there does
// so always, since a later time of day never comes before an earlier one, neither for the
// first time nor for the last.
type weekly struct {
	zone  *time.Location
	spans []span
}

// span is minutes of the clock's week, which begins with Sunday; to may be in the week
// after.
type span struct{ from, to int }

// merge returns the windows, which are of one zone, as one; whole says that they fill
// the week.
func merge(windows []daily) (w weekly, whole bool) {
	var open [weekMinutes]bool
	for _, d := range windows {
		w.zone = d.zone
		for day, on := range d.days {
			for m := 0; on && m < d.length(); m++ {
				open[(day*dayMinutes+d.from+m)%weekMinutes] = true
			}
		}
	}
	for from := range open {
		if !open[from] || open[(from+weekMinutes-1)%weekMinutes] {
			continue
		}
		to := from
		for open[to%weekMinutes] {
			to++
		}
		w.spans = append(w.spans, span{from, to})
	}
	return w, len(w.spans) == 0
}

func (w weekly) openings(from, to time.Time) func() (opening, bool) {
	c := &wallClock{zone: w.zone}
	week := sunday(c.shown(from)).AddDate(0, 0, -14)
	n := 0 // which of the spans is next
	return func() (opening, bool) {
		for {
			if n == len(w.spans) {
				week, n = week.AddDate(0, 0, 7), 0
			}
			s := w.spans[n]
			o := opening{
				at:    c.opens(week.Add(time.Duration(s.from) * time.Minute)),
				until: c.closes(week.Add(time.Duration(s.to) * time.Minute)),
			}
			if o.at.After(to) {
				return opening{}, false
			}
			n++
			if o.at.Before(o.until) && o.until.After(from) {
				return o, true
			}
		}
	}
}

// sunday is the midnight with which the week of wall began.
func sunday(wall time.Time) time.Time {
	return time.Date(wall.Year(), wall.Month(), wall.Day()-int(wall.Weekday()), 0, 0, 0, 0, time.UTC)
}
