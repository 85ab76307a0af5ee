package window

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// mostFirings is how often an expression may come in a day: every four hours. More is no
// beginning of a window, and where it leads to no transition Next looks at each of them for
// 400 days, 9 microseconds for a pair.
const mostFirings = 6

// calendar says when an expression comes next by the clock, which it is asked as if it
// were in UTC; zero if not within five years.
type calendar interface {
	Next(wall time.Time) time.Time
}

// pair is a window from when start comes until end comes.
type pair struct {
	start, end calendar
	zone       *time.Location
}

// firing is a moment at which an expression comes.
type firing struct {
	at    time.Time
	opens bool
}

func (p pair) openings(from, to time.Time) []opening {
	var found []opening
	var since time.Time
	open := false
	note := func(o opening) {
		if o.meets(from, to) {
			found = append(found, o)
		}
	}
	for _, f := range p.firings(p.before(from), shown(to, p.zone).Add(farthest)) {
		switch {
		case f.opens && !open:
			since = f.at
		case !f.opens && open:
			note(opening{since, f.at})
		}
		open = f.opens
	}
	if open {
		note(opening{since, to.Add(farthest)})
	}
	return found
}

// before returns a time of the clock with a firing between it and from, so that those
// after it say whether the window is open at from.
func (p pair) before(from time.Time) time.Time {
	wall := shown(from, p.zone)
	for _, days := range []int{3, 10, 40, 370} {
		since := wall.AddDate(0, 0, -days)
		for _, c := range []calendar{p.start, p.end} {
			if next := c.Next(since); !next.IsZero() && !closes(next, p.zone).After(from) {
				return since.Add(-farthest)
			}
		}
	}
	return wall.AddDate(-5, 0, 0) // 29 February
}

// firings returns what comes after since and not after to, both times of the clock, in
// order. Of two at one moment the one that opens is the last, and decides.
func (p pair) firings(since, to time.Time) []firing {
	var all []firing
	for wall := p.start.Next(since); !wall.IsZero() && !wall.After(to); wall = p.start.Next(wall) {
		all = append(all, firing{opens(wall, p.zone), true})
	}
	for wall := p.end.Next(since); !wall.IsZero() && !wall.After(to); wall = p.end.Next(wall) {
		all = append(all, firing{closes(wall, p.zone), false})
	}
	slices.SortStableFunc(all, func(a, b firing) int {
		if order := a.at.Compare(b.at); order != 0 || a.opens == b.opens {
			return order
		}
		if a.opens {
			return 1
		}
		return -1
	})
	return all
}

// parseCron reads an expression of five fields: minute, hour, day of the month, month,
// day of the week.
func parseCron(field, text string) (calendar, error) {
	// The parser takes TZ= for a zone, and panics if nothing follows it; the window has
	// a zone of its own.
	fields := strings.Fields(text)
	if len(fields) != 5 || strings.ContainsAny(text, "=@") {
		return nil, fmt.Errorf("%s: %q is not a cron expression of five fields: minute, hour, day of the month, month, day of the week", field, text)
	}
	// It takes a list of nothing, which it then looks for in each minute of five years.
	if slices.Contains(strings.Split(strings.Join(fields, ","), ","), "") {
		return nil, fmt.Errorf("%s: %q is not a cron expression: a list has nothing before or after a comma", field, text)
	}
	parsed, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %q is not a cron expression: %w", field, text, err)
	}
	// From the end of 1999, since 2000 has a 29 February and every weekday in each month.
	first := parsed.Next(time.Date(1999, 12, 31, 23, 59, 0, 0, time.UTC))
	if first.IsZero() || first.Year() > 2000 {
		return nil, fmt.Errorf("%s: %q never comes", field, text)
	}
	next := first
	for range mostFirings {
		next = parsed.Next(next)
	}
	if next.Sub(first) < 24*time.Hour {
		return nil, fmt.Errorf("%s: %q comes more than %d times a day", field, text, mostFirings)
	}
	return parsed, nil
}
