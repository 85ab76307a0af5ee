package window

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// mostFirings is how often an expression may come in a day: every four hours. More is no
// beginning of a window, and where it leads to no transition Next looks at each of them for
// 400 days: 30 ms where mostWindows fill the day by turns (BenchmarkEdit).
const mostFirings = 6

// calendar is a cron expression. It is asked by the clock, as if that were in UTC. Of what
// robfig/cron makes of it only the fields are used: that goes from minute to minute, and
// takes a hundred times as long.
type calendar struct {
	times    []time.Duration // of the day, in order
	months   uint64          // bit n: the month n
	dates    uint64          // bit n: the day n of the month
	weekdays uint64          // bit n: the time.Weekday n
	// either says that a date suffices, or a weekday. Otherwise one of the two is any, and
	// both are asked for.
	either bool
}

// firing is a time at which an expression comes.
type firing struct {
	calendar
	day time.Time
	n   int // which of the times
}

// after is the first firing after wall.
func (c calendar) after(wall time.Time) firing {
	f := firing{c, wall.Truncate(24 * time.Hour), 0}
	if !c.on(f.day) {
		return f.tomorrow()
	}
	for !f.wall().After(wall) {
		f = f.next()
	}
	return f
}

// wall is when it is.
func (f firing) wall() time.Time { return f.day.Add(f.times[f.n]) }

// next is the firing after it.
func (f firing) next() firing {
	if f.n++; f.n < len(f.times) {
		return f
	}
	return f.tomorrow()
}

// tomorrow is the first firing of a later day.
func (f firing) tomorrow() firing {
	f.day, f.n = f.later(f.day), 0
	for !f.on(f.day) {
		f.day = f.later(f.day)
	}
	return f
}

// later is the next day in one of its months, or the first day of the next month.
func (c calendar) later(day time.Time) time.Time {
	if c.months>>day.Month()&1 == 0 {
		return time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	}
	return day.AddDate(0, 0, 1)
}

// on says whether it comes on that day.
func (c calendar) on(day time.Time) bool {
	date, weekday := c.dates>>day.Day()&1 == 1, c.weekdays>>day.Weekday()&1 == 1
	return c.months>>day.Month()&1 == 1 && (date && weekday || c.either && (date || weekday))
}

// comes says whether it ever does: each month has every weekday, but not every date.
func (c calendar) comes() bool {
	if c.either {
		return true
	}
	for month := time.January; month <= time.December; month++ {
		days := time.Date(2000, month+1, 0, 0, 0, 0, 0, time.UTC).Day() // 2000 has a 29 February
		if c.months>>month&1 == 1 && c.dates&(1<<(days+1)-1) != 0 {
			return true
		}
	}
	return false
}

// pair is a window from when start comes until end comes.
type pair struct {
	start, end calendar
	zone       *time.Location
}

func (p pair) openings(from, to time.Time) func() (opening, bool) {
	c := &wallClock{zone: p.zone}
	wall := p.before(from, c)
	start, end := p.start.after(wall), p.end.after(wall)
	opens, closes := c.opens(start.wall()), c.closes(end.wall())
	var since time.Time
	open := false
	return func() (opening, bool) {
		for !opens.After(to) || !closes.After(to) {
			if opens.Before(closes) {
				if !open {
					open, since = true, opens
				}
				start = start.next()
				opens = c.opens(start.wall())
				continue
			}
			o, ended := opening{since, closes}, open && closes.Before(opens) // of both at once, what opens decides
			end = end.next()
			closes = c.closes(end.wall())
			open = open && !ended
			if ended && o.until.After(from) {
				return o, true
			}
		}
		rest := open
		open = false
		return opening{since, to.Add(farthest)}, rest // nobody looks for what is after to
	}
}

// before returns a time of the clock with a firing between it and from, so that those
// after it say whether the window is open at from.
func (p pair) before(from time.Time, c *wallClock) time.Time {
	wall := c.shown(from)
	for _, days := range []int{3, 10, 40, 370} {
		since := wall.AddDate(0, 0, -days)
		for _, side := range []calendar{p.start, p.end} {
			if !c.closes(side.after(since).wall()).After(from) {
				return since.Add(-farthest)
			}
		}
	}
	return wall.AddDate(-9, 0, 0) // 29 February, which 1900 and 2100 lack
}

// parseCron reads an expression of five fields: minute, hour, day of the month, month,
// day of the week.
func parseCron(field, text string) (calendar, error) {
	// The parser takes TZ= for a zone, and panics if nothing follows it; the window has
	// a zone of its own.
	fields := strings.Fields(text)
	if len(fields) != 5 || strings.ContainsAny(text, "=@") {
		return calendar{}, fmt.Errorf("%s: %q is not a cron expression of five fields: minute, hour, day of the month, month, day of the week", field, text)
	}
	// It takes a list of nothing, which never comes.
	if slices.Contains(strings.Split(strings.Join(fields, ","), ","), "") {
		return calendar{}, fmt.Errorf("%s: %q is not a cron expression: a list has nothing before or after a comma", field, text)
	}
	parsed, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(text)
	if err != nil {
		return calendar{}, fmt.Errorf("%s: %q is not a cron expression: %w", field, text, err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return calendar{}, fmt.Errorf("%s: %q is not a cron expression: it has no fields", field, text)
	}
	c := newCalendar(spec)
	if !c.comes() {
		return calendar{}, fmt.Errorf("%s: %q never comes", field, text)
	}
	if len(c.times) > mostFirings {
		return calendar{}, fmt.Errorf("%s: %q comes more than %d times a day", field, text, mostFirings)
	}
	return c, nil
}

// newCalendar returns what the fields say.
func newCalendar(s *cron.SpecSchedule) calendar {
	const star = 1 << 63 // the field is any
	c := calendar{months: s.Month &^ star, dates: s.Dom &^ star, weekdays: s.Dow &^ star, either: (s.Dom|s.Dow)&star == 0}
	for hours := s.Hour &^ star; hours != 0; hours &= hours - 1 {
		for minutes := s.Minute &^ star; minutes != 0; minutes &= minutes - 1 {
			c.times = append(c.times, time.Duration(bits.TrailingZeros64(hours))*time.Hour+time.Duration(bits.TrailingZeros64(minutes))*time.Minute)
		}
	}
	return c
}
