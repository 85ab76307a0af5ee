package window

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"pgregory.net/rapid"
)

// drawField is a field of a cron expression, of values from least to most, mostly a few.
func drawField(t *rapid.T, label string, least, most int, names []string) string {
	value := func() string {
		n := rapid.IntRange(least, most).Draw(t, label)
		if len(names) > 0 && rapid.Bool().Draw(t, "name") {
			return names[n-least]
		}
		return fmt.Sprint(n)
	}
	part := func() string {
		switch rapid.IntRange(0, 9).Draw(t, "kind of "+label) {
		case 0:
			from := rapid.IntRange(least, most).Draw(t, label)
			return fmt.Sprintf("%d-%d", from, rapid.IntRange(from, most).Draw(t, label))
		case 1:
			from := rapid.IntRange(least, most).Draw(t, label)
			return fmt.Sprintf("%d-%d/%d", from, rapid.IntRange(from, most).Draw(t, label), rapid.IntRange(1, most).Draw(t, "step"))
		case 2:
			return fmt.Sprintf("*/%d", rapid.IntRange(1, most).Draw(t, "step"))
		case 3:
			return fmt.Sprintf("%s/%d", value(), rapid.IntRange(1, most).Draw(t, "step"))
		case 4:
			return rapid.SampledFrom([]string{"*", "?", "*-3"}).Draw(t, "any")
		default:
			return value()
		}
	}
	parts := []string{part()}
	for rapid.IntRange(0, 3).Draw(t, "more") == 0 {
		parts = append(parts, part())
	}
	return strings.Join(parts, ",")
}

// drawExpression is a cron expression of any kind; it may be one that is refused.
func drawExpression(t *rapid.T) string {
	or := func(often string, field string) string {
		if rapid.Bool().Draw(t, "any") {
			return often
		}
		return field
	}
	months := []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	hour := fmt.Sprint(rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 23)).Draw(t, "hour"))
	return strings.Join([]string{
		or(rapid.SampledFrom([]string{"0", "30", "59"}).Draw(t, "minute"), drawField(t, "minute", 0, 59, nil)),
		or(hour, drawField(t, "hour", 0, 23, nil)),
		or("*", rapid.OneOf(rapid.Just("29"), rapid.Just("31"), rapid.Custom(func(t *rapid.T) string { return drawField(t, "date", 1, 31, nil) })).Draw(t, "dates")),
		or("*", rapid.OneOf(rapid.Just("2"), rapid.Just("2,4"), rapid.Custom(func(t *rapid.T) string { return drawField(t, "month", 1, 12, months) })).Draw(t, "months")),
		or("*", drawField(t, "weekday", 0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"})),
	}, " ")
}

// plain reads an expression in the plain way, which is slow.
func plain(t *rapid.T, text string) cron.Schedule {
	c, err := cron.ParseStandard(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

// comings are the times at which it comes from from on, and before to.
func comings(c cron.Schedule, from, to time.Time) (all []time.Time) {
	for wall := c.Next(from.Add(-time.Second)); !wall.IsZero() && wall.Before(to); wall = c.Next(wall) {
		all = append(all, wall)
	}
	return all
}

// drawPair is a window between any two expressions that are accepted.
func drawPair(t *rapid.T) hands {
	draw := func() string {
		text := drawExpression(t)
		if _, err := parseCron("", text); err != nil {
			return "59 3-23/4 * * *"
		}
		return text
	}
	start, end := draw(), draw()
	opens, closes := plain(t, start), plain(t, end)
	on := func(c cron.Schedule, day time.Time) (minutes []int) {
		for _, wall := range comings(c, day, day.AddDate(0, 0, 1)) {
			minutes = append(minutes, int(wall.Sub(day)/time.Minute))
		}
		return minutes
	}
	return hands{
		cron: true, window: Window{Start: start, End: end},
		edges: func(day time.Time) (o, c []int) { return on(opens, day), on(closes, day) },
		since: func(wall time.Time) bool {
			opened := lastBefore(opens, wall)
			return !opened.IsZero() && !opened.Before(lastBefore(closes, wall))
		},
	}
}

// lastBefore is when it came last before wall; zero: not for five years.
func lastBefore(c cron.Schedule, wall time.Time) time.Time {
	for days := 1; days < 5*366; days *= 2 {
		if all := comings(c, wall.AddDate(0, 0, -days), wall); len(all) > 0 {
			return all[len(all)-1]
		}
	}
	return time.Time{}
}

// An expression comes when robfig/cron says, and is refused if that says never, or too often.
func TestCronComesAsRobfigSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawExpression(t)
		slow := plain(t, text)
		c, err := parseCron("start", text)
		first := slow.Next(time.Date(1999, 12, 31, 23, 59, 0, 0, time.UTC)) // 2000 has all dates on which one may come
		if day := comings(slow, first, first.AddDate(0, 0, 1)); (first.IsZero() || len(day) > mostFirings) != (err != nil) {
			t.Fatalf("%s comes first at %s, %d times in a day: %v", text, first, len(day), err)
		}
		if err != nil {
			return
		}
		at := time.Unix(rapid.Int64Range(0, 3900000000).Draw(t, "after"), 0).UTC() // until 2093: there is no 29 February in 2100
		for f, want := c.after(at), slow.Next(at); want.Sub(at) < 10*366*24*time.Hour && want.Year() < 2096; f, want = f.next(), slow.Next(want) {
			if !f.wall().Equal(want) {
				t.Fatalf("%s comes at %s, want %s", text, f.wall(), want)
			}
			if rapid.IntRange(0, 9).Draw(t, "enough") == 0 {
				break
			}
		}
	})
}
