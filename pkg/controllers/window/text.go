package window

import (
	"fmt"
	"time"
)

// farAhead is from when on a time is told with its year.
const farAhead = 300 * 24 * time.Hour

// clock is a time for people.
func clock(at, now time.Time, zone *time.Location) string {
	if at.Sub(now) > farAhead {
		return at.In(zone).Format("Mon 2 Jan 2006 15:04 MST")
	}
	return at.In(zone).Format("Mon 2 Jan 15:04 MST")
}

// cards is a number of them.
func cards(n int64) string {
	if n == 1 {
		return "1 card"
	}
	return fmt.Sprintf("%d cards", n)
}

// change is what the windows do next.
type change struct {
	at      time.Time
	opens   bool
	cards   int64
	forGood bool // nothing undoes it
}

// text says it in words.
func (c change) text(now time.Time, zone *time.Location) string {
	switch when := clock(c.at, now, zone); {
	case c.opens && c.forGood:
		return fmt.Sprintf("opens %s, stays stopped", when)
	case c.opens && c.cards > 0:
		return fmt.Sprintf("opens %s, takes back %s", when, cards(c.cards))
	case c.opens:
		return "opens " + when
	case c.cards == 0:
		return "closes " + when
	case c.forGood:
		return fmt.Sprintf("closes %s, frees %s for good", when, cards(c.cards))
	default:
		return fmt.Sprintf("closes %s, frees %s", when, cards(c.cards))
	}
}
