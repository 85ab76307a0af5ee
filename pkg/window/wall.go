package window

import "time"

// What a clock on the wall shows is written as a time in UTC with the same fields: it
// has no gaps, so days and minutes can be added to it.

// farthest is more than any clock has ever been from UTC.
const farthest = 26 * time.Hour

// shown is what a clock in the zone shows.
func shown(at time.Time, zone *time.Location) time.Time {
	_, offset := at.In(zone).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// moments returns when a clock in the zone shows wall, for the first and for the last
// time. If it skips wall, both are when the skip ends.
func moments(wall time.Time, zone *time.Location) (first, last time.Time) {
	var skipped time.Time
	for at := wall.Add(-farthest); ; {
		start, end := at.In(zone).ZoneBounds()
		if !end.IsZero() && !end.After(at) { // golang/go#81583: by a rule, a leap year lacks its last day
			end = at.Truncate(24 * time.Hour).Add(24 * time.Hour)
		}
		_, offset := at.In(zone).Zone()
		moment := wall.Add(-time.Duration(offset) * time.Second)
		early := !start.IsZero() && moment.Before(start)
		late := !end.IsZero() && !moment.Before(end)
		switch {
		case early && skipped.IsZero():
			skipped = start.UTC()
		case !early && !late && first.IsZero():
			first, last = moment, moment
		case !early && !late:
			last = moment
		}
		if end.IsZero() || end.After(wall.Add(farthest)) {
			break
		}
		at = end
	}
	if first.IsZero() {
		return skipped, skipped
	}
	return first, last
}

// opens and closes are when a window does at the time of day that wall is.
func opens(wall time.Time, zone *time.Location) time.Time {
	first, _ := moments(wall, zone)
	return first
}

func closes(wall time.Time, zone *time.Location) time.Time {
	_, last := moments(wall, zone)
	return last
}
