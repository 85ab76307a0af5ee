package window

import "time"

// What a clock on the wall shows is written as a time in UTC with the same fields: it
// has no gaps, so days and minutes can be added to it.

// farthest is more than any clock has ever been from UTC.
const farthest = 26 * time.Hour

// wallClock is one on the wall of a zone. Who asks it for one time after another is mostly
// in one period, so it keeps the last: the tz database takes a hundred times as long.
type wallClock struct {
	zone       *time.Location
	start, end time.Time     // of a period in which it is so far from UTC, in UTC
	offset     time.Duration // east of UTC
}

// seek goes to the period of at.
func (c *wallClock) seek(at time.Time) {
	if !at.Before(c.start) && at.Before(c.end) {
		return
	}
	start, end := at.In(c.zone).ZoneBounds()
	switch {
	case end.IsZero():
		end = at.AddDate(1000, 0, 0)
	case !end.After(at): // golang/go#81583: by a rule, a leap year lacks its last day
		end = at.Truncate(24 * time.Hour).Add(24 * time.Hour)
	}
	_, offset := at.In(c.zone).Zone()
	c.start, c.end, c.offset = start.UTC(), end.UTC(), time.Duration(offset)*time.Second
}

// shown is what the clock shows.
func (c *wallClock) shown(at time.Time) time.Time {
	c.seek(at)
	return at.UTC().Add(c.offset)
}

// moments returns when the clock shows wall, for the first and for the last time. If it
// skips wall, both are when the skip ends.
func (c *wallClock) moments(wall time.Time) (first, last time.Time) {
	var skipped time.Time
	for at := wall.Add(-farthest); ; at = c.end {
		c.seek(at)
		moment := wall.Add(-c.offset)
		early, late := moment.Before(c.start), !moment.Before(c.end)
		switch {
		case early && skipped.IsZero():
			skipped = c.start
		case !early && !late && first.IsZero():
			first, last = moment, moment
		case !early && !late:
			last = moment
		}
		if c.end.After(wall.Add(farthest)) {
			break
		}
	}
	if first.IsZero() {
		return skipped, skipped
	}
	return first, last
}

// opens and closes are when a window does at the time of day that wall is.
func (c *wallClock) opens(wall time.Time) time.Time {
	first, _ := c.moments(wall)
	return first
}

func (c *wallClock) closes(wall time.Time) time.Time {
	_, last := c.moments(wall)
	return last
}
