package window

import (
	"fmt"
	"testing"
	"time"
)

// many returns as many windows as there may be.
func many(one func(i int) Window) []Window {
	windows := make([]Window, mostWindows)
	for i := range windows {
		windows[i] = one(i)
	}
	return windows
}

// edited are the windows of a group that is edited; those that are refused too.
var edited = []struct {
	name    string
	refused bool
	windows []Window
}{
	{"office hours", false, []Window{{Days: weekdayNames[1:6], From: "08:00", To: "20:00", TimeZone: "Europe/Berlin"}}},
	{"a week of days", false, func() (windows []Window) {
		for i, day := range weekdayNames {
			windows = append(windows, Window{Days: []string{day}, From: clock(6*60 + 15*i), To: clock(20*60 + 15*i), TimeZone: "Europe/Berlin"})
		}
		return windows
	}()},
	{"50 windows of two zones that fill the week", false, many(func(i int) Window {
		return Window{From: clock(i * 29), To: clock((i*29 + 45) % dayMinutes), TimeZone: []string{"Europe/Berlin", "Europe/Paris"}[i%2]}
	})},
	{"cron office hours", false, []Window{{Start: "0 8 * * 1-5", End: "0 20 * * *", TimeZone: "Europe/Berlin"}}},
	{"never comes", true, many(func(int) Window { return Window{Start: "0 0 31 2,4,6,9,11 *", End: "0 0 30 2 *"} })},
	{"never closes", false, many(func(i int) Window {
		return Window{Start: "59 3-23/4 * * *", End: "59 3-23/4 * * *", TimeZone: zoneNames[i%len(zoneNames)]}
	})},
	{"never opens", false, many(func(i int) Window {
		return Window{Start: "0 0 29 2 *", End: fmt.Sprintf("%d */4 * * *", i), TimeZone: zoneNames[i%len(zoneNames)]}
	})},
	{"29 February", false, many(func(i int) Window {
		return Window{Start: "0 0 29 2 *", End: fmt.Sprintf("%d 0 29 2 *", i), TimeZone: zoneNames[i%len(zoneNames)]}
	})},
	{"closes in eleven months", false, many(func(int) Window {
		return Window{Start: "59 3-23/4 * 1-10,12 *", End: "59 3-23/4 * * *", TimeZone: "Europe/Berlin"}
	})},
	{"fills the day by five minutes", false, many(func(i int) Window {
		text := func(minute int) string { return fmt.Sprintf("%d %d-23/4 * * *", minute%60, minute/60%4) }
		return Window{Start: text(i * 5), End: text(i*5 + 5), TimeZone: "Europe/Berlin"}
	})},
	{"fills the day by five minutes, written backwards", false, many(func(i int) Window {
		text := func(minute int) string { return fmt.Sprintf("%d %d-23/4 * * *", minute%60, minute/60%4) }
		return Window{Start: text((49 - i) * 5), End: text((49-i)*5 + 5), TimeZone: "Africa/Casablanca"}
	})},
}

// An edit, as the controller takes it: it is read, and asked for now and for what comes.
func BenchmarkEdit(b *testing.B) {
	at := time.Date(2026, 11, 30, 12, 7, 0, 0, time.UTC)
	for _, e := range edited {
		b.Run(e.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, err := parseWindows("windows", e.windows)
				if (err != nil) != e.refused {
					b.Fatal(err)
				}
				if !e.refused {
					s.Open(at)
					s.Next(at)
				}
			}
		})
	}
}
