package window

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// weekdayNames is by time.Weekday.
var weekdayNames = []string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

// zoneNames have clocks that change by an hour, by half of one, at midnight, by a day,
// twice a year beside Ramadan, or never.
var zoneNames = []string{
	"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", "America/Sao_Paulo", "Pacific/Apia", "Africa/Casablanca", "Asia/Kathmandu", "UTC",
}

// hands is a window as a test can say it: times of the clock at which it opens and closes.
type hands struct {
	window Window
	// edges returns when it opens and when it closes on a day, in minutes of the clock;
	// those past 24:00 are on the day after.
	edges func(day time.Time) (opens, closes []int)
	cron  bool
	// since says whether it is open at a time of the clock; nil: no, and it will not matter.
	since func(wall time.Time) bool
}

func drawDays(t *rapid.T) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(weekdayNames), 1, 7, rapid.ID).Draw(t, "days")
}

func drawMinute(t *rapid.T, label string) int {
	// The hours of the night, where clocks change, as often as all others.
	hour := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 23)).Draw(t, label+" hour")
	return hour*60 + rapid.SampledFrom([]int{0, 0, 15, 30, 45, 59}).Draw(t, label+" minute")
}

func clock(minute int) string { return fmt.Sprintf("%02d:%02d", minute/60, minute%60) }

func drawDaily(t *rapid.T) hands {
	days, from, to := drawDays(t), drawMinute(t, "from"), drawMinute(t, "to")
	end := to
	if to <= from {
		end += dayMinutes
	}
	return hands{window: Window{Days: days, From: clock(from), To: clock(to)}, edges: func(day time.Time) (o, c []int) {
		if !slices.Contains(days, weekdayNames[day.Weekday()]) {
			return nil, nil
		}
		return []int{from}, []int{end}
	}}
}

func drawCron(t *rapid.T) hands {
	start, startDays, end, endDays := drawMinute(t, "start"), drawDays(t), drawMinute(t, "end"), drawDays(t)
	text := func(minute int, days []string) string {
		return fmt.Sprintf("%d %d * * %s", minute%60, minute/60, strings.ToLower(strings.Join(days, ",")))
	}
	on := func(days []string, day time.Time, minute int) []int {
		if slices.Contains(days, weekdayNames[day.Weekday()]) {
			return []int{minute}
		}
		return nil
	}
	return hands{cron: true, window: Window{Start: text(start, startDays), End: text(end, endDays)}, edges: func(day time.Time) (o, c []int) {
		return on(startDays, day, start), on(endDays, day, end)
	}}
}

// film is what a clock shows in each minute of some weeks. What is looked up there goes by
// nothing that the package is made of.
type film struct {
	start time.Time
	shows []int // minute since start -> the time of the clock, in minutes since 1970
}

// minutes is a time of the clock as the film has it.
func minutes(wall time.Time) int { return int(wall.Unix() / 60) }

func shoot(start time.Time, days int, zone *time.Location) film {
	f := film{start: start}
	for m := range days * dayMinutes {
		at := start.Add(time.Duration(m) * time.Minute)
		_, offset := at.In(zone).Zone()
		f.shows = append(f.shows, minutes(at)+offset/60)
	}
	return f
}

// around is the minutes in which the clock may show wall: none of the zones is a day from UTC.
func (f film) around(wall int) (from, to int) {
	m := wall - minutes(f.start)
	return max(m-dayMinutes, 0), min(m+dayMinutes, len(f.shows)-1)
}

// opens is the first minute in which the clock has come to wall, or past it.
func (f film) opens(wall int) int {
	m, _ := f.around(wall)
	for f.shows[m] < wall {
		m++
	}
	return m
}

// closes is the last minute in which the clock shows wall; if it never does, that after
// the last in which it had not come to it.
func (f film) closes(wall int) int {
	_, m := f.around(wall)
	for f.shows[m] > wall {
		m--
	}
	if f.shows[m] == wall {
		return m
	}
	return m + 1
}

// open says for each minute of the film whether the window is open.
func (f film) open(h hands) []bool {
	open := make([]bool, len(f.shows))
	turn := map[int]bool{} // of a cron pair: minute -> whether it opens
	last := f.start.AddDate(0, 0, len(f.shows)/dayMinutes-4)
	for day := f.start.AddDate(0, 0, 1); day.Before(last); day = day.AddDate(0, 0, 1) { // it begins with a midnight
		o, c := h.edges(day)
		at := func(minute int) int { return minutes(day) + minute }
		if !h.cron && len(o) == 1 {
			for m := f.opens(at(o[0])); m < f.closes(at(c[0])); m++ {
				open[m] = true
			}
			continue
		}
		for _, minute := range c {
			if m := f.closes(at(minute)); !turn[m] {
				turn[m] = false
			}
		}
		for _, minute := range o {
			turn[f.opens(at(minute))] = true
		}
	}
	if h.cron {
		is := h.since != nil && h.since(f.start.AddDate(0, 0, 1))
		for m := range open {
			if to, turns := turn[m]; turns {
				is = to
			}
			open[m] = is
		}
	}
	return open
}

// Next is the first moment at which Open changes, and Open is what the clock says, in
// the weeks around a change of the clocks.
func TestNextIsTheFirstChange(t *testing.T) {
	const before, looked, after = 16, 9, 7 // days
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(zoneNames).Draw(t, "zone")
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		near := time.Unix(rapid.Int64Range(1230768000, 1924992000).Draw(t, "near"), 0) // 2009 to 2030
		if _, end := near.In(zone).ZoneBounds(); !end.IsZero() {
			near = end
		}
		from := near.UTC().Truncate(24*time.Hour).AddDate(0, 0, -rapid.IntRange(0, 7).Draw(t, "days before"))
		f := shoot(from.AddDate(0, 0, -before), before+looked+after, zone)
		open := make([]bool, len(f.shows))
		var windows []Window
		for range rapid.IntRange(1, 4).Draw(t, "windows") {
			h := rapid.OneOf(rapid.Custom(drawDaily), rapid.Custom(drawCron), rapid.Custom(drawPair)).Draw(t, "window")
			h.window.TimeZone = name
			windows = append(windows, h.window)
			for m, o := range f.open(h) {
				open[m] = open[m] || o
			}
		}
		s, err := parseWindows("windows", windows)
		if err != nil {
			t.Fatal(err)
		}
		minute := func(m int) time.Time { return f.start.Add(time.Duration(m) * time.Minute) }
		end := (before + looked) * dayMinutes
		for range 30 {
			m := rapid.IntRange(before*dayMinutes, end).Draw(t, "minute")
			if s.Open(minute(m)) != open[m] {
				t.Fatalf("%v: Open(%s) = %v", windows, minute(m).In(zone), !open[m])
			}
		}
		for m := before * dayMinutes; m < end; {
			next, ok := s.Next(minute(m))
			change := m + 1
			for change < end && open[change] == open[m] {
				change++
			}
			if change == end {
				stays(t, s, minute(m), next, ok)
				if ok && next.At.Before(minute(end)) {
					t.Fatalf("%v: Next(%s) = %v, and nothing changes until %s", windows, minute(m).In(zone), next, minute(end).In(zone))
				}
				break
			}
			if !ok || !next.At.Equal(minute(change)) || next.Opens != open[change] {
				t.Fatalf("%v: Next(%s) = %v, %v; want %s, %v", windows, minute(m).In(zone), next.At.In(zone), ok, minute(change).In(zone), open[change])
			}
			m = change
		}
	})
}

// stays checks that what comes after all that was filmed comes no sooner.
func stays(t *rapid.T, s Schedule, at time.Time, next Transition, ok bool) {
	end := at.AddDate(0, 0, 400)
	if ok {
		end = next.At
		if s.Open(end) != next.Opens {
			t.Fatalf("Next(%s) = %v, and Open is %v then", at, next, !next.Opens)
		}
	}
	for range 50 {
		between := at.Add(time.Duration(rapid.Int64Range(0, int64(end.Sub(at))-1).Draw(t, "between")))
		if s.Open(between) != s.Open(at) {
			t.Fatalf("Next(%s) = %v, %v, and Open changes before %s", at, next, ok, between)
		}
	}
}
