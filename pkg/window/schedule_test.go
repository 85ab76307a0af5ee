package window

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func schedule(t testing.TB, windows ...Window) Schedule {
	t.Helper()
	s, err := parseWindows("windows", windows)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// changes returns what Next says from one moment on, in the given zone, until n are found
// or there are no more.
func changes(s Schedule, at time.Time, n int, in *time.Location) []string {
	var all []string
	for range n {
		next, ok := s.Next(at)
		if !ok {
			return append(all, "never")
		}
		word := "closes "
		if next.Opens {
			word = "opens "
		}
		all = append(all, word+next.At.In(in).Format("Mon 01-02 15:04 -0700"))
		at = next.At
	}
	return all
}

func TestSchedule(t *testing.T) {
	weekdays := []string{"Mon", "Tue", "Wed", "Thu", "Fri"}
	berlin, newYork, lordHowe := "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"
	tests := map[string]struct {
		windows []Window
		at      string // UTC
		open    bool
		zone    string // in which the answers are shown
		want    []string
	}{
		"no windows are always open": {at: "2026-06-01 00:00", open: true, want: []string{"never"}},
		"a whole week": {
			windows: []Window{{From: "00:00", To: "24:00", TimeZone: berlin}},
			at:      "2026-03-28 12:00", open: true, want: []string{"never"},
		},
		"a whole week of days that end when they began": {
			windows: []Window{{From: "08:00", To: "08:00"}},
			at:      "2026-06-01 08:00", open: true, want: []string{"never"},
		},
		"a whole week of halves": {
			windows: []Window{{From: "08:00", To: "20:00", TimeZone: newYork}, {From: "20:00", To: "08:00", TimeZone: newYork}},
			at:      "2026-03-08 07:00", open: true, want: []string{"never"},
		},
		"office hours": {
			windows: []Window{{Days: weekdays, From: "08:00", To: "20:00"}},
			at:      "2026-06-05 07:59", // Friday
			want:    []string{"opens Fri 06-05 08:00 +0000", "closes Fri 06-05 20:00 +0000", "opens Mon 06-08 08:00 +0000"},
		},
		"the moment it opens is inside": {
			windows: []Window{{From: "08:00", To: "20:00"}},
			at:      "2026-06-05 08:00", open: true, want: []string{"closes Fri 06-05 20:00 +0000"},
		},
		"the moment it closes is not": {
			windows: []Window{{From: "08:00", To: "20:00"}},
			at:      "2026-06-05 20:00", want: []string{"opens Sat 06-06 08:00 +0000"},
		},
		"one day a week": {
			windows: []Window{{Days: []string{"Sun"}, From: "10:00", To: "11:00"}},
			at:      "2026-06-07 11:00", want: []string{"opens Sun 06-14 10:00 +0000", "closes Sun 06-14 11:00 +0000"},
		},
		"over midnight: the day is that on which it opens": {
			windows: []Window{{Days: []string{"Fri"}, From: "22:00", To: "06:00"}},
			at:      "2026-06-06 05:59", open: true,
			want: []string{"closes Sat 06-06 06:00 +0000", "opens Fri 06-12 22:00 +0000"},
		},
		"over midnight and the week's end": {
			windows: []Window{{Days: []string{"Sat"}, From: "22:00", To: "06:00"}},
			at:      "2026-06-07 00:00", open: true,
			want: []string{"closes Sun 06-07 06:00 +0000", "opens Sat 06-13 22:00 +0000"},
		},
		"until midnight, written both ways": {
			windows: []Window{{Days: []string{"Mon"}, From: "22:00", To: "24:00"}, {Days: []string{"Wed"}, From: "22:00", To: "00:00"}},
			at:      "2026-06-08 00:00",
			want: []string{
				"opens Mon 06-08 22:00 +0000", "closes Tue 06-09 00:00 +0000", "opens Wed 06-10 22:00 +0000", "closes Thu 06-11 00:00 +0000",
			},
		},
		"whole days adjoin": {
			windows: []Window{{Days: weekdays, From: "00:00", To: "24:00"}},
			at:      "2026-06-06 00:00",
			want:    []string{"opens Mon 06-08 00:00 +0000", "closes Sat 06-13 00:00 +0000"},
		},
		"overlapping and adjoining windows are one": {
			windows: []Window{{From: "08:00", To: "12:00"}, {From: "11:00", To: "13:00"}, {From: "13:00", To: "14:00"}, {From: "09:00", To: "10:00"}},
			at:      "2026-06-06 00:00",
			want:    []string{"opens Sat 06-06 08:00 +0000", "closes Sat 06-06 14:00 +0000", "opens Sun 06-07 08:00 +0000"},
		},
		"adjoining windows of two zones are one": {
			windows: []Window{{From: "08:00", To: "12:00", TimeZone: berlin}, {From: "06:00", To: "10:00", TimeZone: newYork}},
			at:      "2026-06-06 00:00",
			want:    []string{"opens Sat 06-06 06:00 +0000", "closes Sat 06-06 14:00 +0000"},
		},
		"two zones fill the day but for the weeks in which one has changed its clocks": {
			windows: []Window{{From: "08:00", To: "20:00", TimeZone: berlin}, {From: "14:00", To: "02:00", TimeZone: newYork}},
			at:      "2026-04-20 00:00", open: true,
			want: []string{"closes Sun 10-25 06:00 +0000"},
		},
		"Berlin, a window that begins in the gap": {
			windows: []Window{{From: "02:30", To: "05:00", TimeZone: berlin}}, zone: berlin,
			at:   "2026-03-28 12:00",
			want: []string{"opens Sun 03-29 03:00 +0200", "closes Sun 03-29 05:00 +0200", "opens Mon 03-30 02:30 +0200"},
		},
		"Berlin, a window that ends in the gap": {
			windows: []Window{{From: "00:00", To: "02:30", TimeZone: berlin}}, zone: berlin,
			at:   "2026-03-28 12:00",
			want: []string{"opens Sun 03-29 00:00 +0100", "closes Sun 03-29 03:00 +0200", "opens Mon 03-30 00:00 +0200"},
		},
		"Berlin, a window within the gap does not open": {
			windows: []Window{{From: "02:15", To: "02:45", TimeZone: berlin}}, zone: berlin,
			at:   "2026-03-28 12:00",
			want: []string{"opens Mon 03-30 02:15 +0200"},
		},
		"Berlin, a night that is an hour short": {
			windows: []Window{{From: "22:00", To: "06:00", TimeZone: berlin}}, zone: berlin,
			at:   "2026-03-28 12:00",
			want: []string{"opens Sat 03-28 22:00 +0100", "closes Sun 03-29 06:00 +0200"},
		},
		"Berlin, a window that ends in the hour that comes twice": {
			windows: []Window{{From: "00:00", To: "02:30", TimeZone: berlin}}, zone: berlin,
			at:   "2026-10-24 12:00",
			want: []string{"opens Sun 10-25 00:00 +0200", "closes Sun 10-25 02:30 +0100", "opens Mon 10-26 00:00 +0100"},
		},
		"Berlin, a window that begins in it": {
			windows: []Window{{From: "02:30", To: "05:00", TimeZone: berlin}}, zone: berlin,
			at:   "2026-10-24 12:00",
			want: []string{"opens Sun 10-25 02:30 +0200", "closes Sun 10-25 05:00 +0100"},
		},
		"Berlin, two windows in it that meet only then": {
			windows: []Window{{From: "02:00", To: "02:20", TimeZone: berlin}, {From: "02:40", To: "03:00", TimeZone: berlin}}, zone: berlin,
			at:   "2026-10-24 12:00",
			want: []string{"opens Sun 10-25 02:00 +0200", "closes Sun 10-25 03:00 +0100", "opens Mon 10-26 02:00 +0100", "closes Mon 10-26 02:20 +0100"},
		},
		"New York, spring": {
			windows: []Window{{Days: []string{"Sun"}, From: "01:30", To: "02:30", TimeZone: newYork}}, zone: newYork,
			at:   "2026-03-08 00:00",
			want: []string{"opens Sun 03-08 01:30 -0500", "closes Sun 03-08 03:00 -0400", "opens Sun 03-15 01:30 -0400"},
		},
		"New York, autumn": {
			windows: []Window{{Days: []string{"Sun"}, From: "01:00", To: "01:30", TimeZone: newYork}}, zone: newYork,
			at:   "2026-11-01 00:00",
			want: []string{"opens Sun 11-01 01:00 -0400", "closes Sun 11-01 01:30 -0500", "opens Sun 11-08 01:00 -0500"},
		},
		"Lord Howe, spring": {
			windows: []Window{{From: "02:15", To: "04:00", TimeZone: lordHowe}}, zone: lordHowe,
			at:   "2026-10-03 12:00",
			want: []string{"opens Sun 10-04 02:30 +1100", "closes Sun 10-04 04:00 +1100", "opens Mon 10-05 02:15 +1100"},
		},
		"Lord Howe, autumn": {
			windows: []Window{{From: "01:00", To: "01:45", TimeZone: lordHowe}}, zone: lordHowe,
			at:   "2026-04-04 12:00",
			want: []string{"opens Sun 04-05 01:00 +1100", "closes Sun 04-05 01:45 +1030", "opens Mon 04-06 01:00 +1030"},
		},
		"whole days in Havana, where midnight comes twice": {
			windows: []Window{{Days: []string{"Sat", "Sun"}, From: "00:00", To: "24:00", TimeZone: "America/Havana"}}, zone: "America/Havana",
			at:   "2025-10-31 12:00",
			want: []string{"opens Sat 11-01 00:00 -0400", "closes Mon 11-03 00:00 -0500"},
		},
		"cron: office hours": {
			windows: []Window{{Start: "0 8 * * 1-5", End: "0 20 * * *", TimeZone: berlin}}, zone: berlin,
			at: "2026-06-05 12:00", open: true,
			want: []string{"closes Fri 06-05 20:00 +0200", "opens Mon 06-08 08:00 +0200"},
		},
		"cron: the first days of a month, seen from long before": {
			windows: []Window{{Start: "0 0 1 1 *", End: "0 0 4 1 *"}},
			at:      "2026-06-05 12:00",
			want:    []string{"opens Fri 01-01 00:00 +0000", "closes Mon 01-04 00:00 +0000"},
		},
		"cron: what began years ago": {
			windows: []Window{{Start: "0 0 29 2 *", End: "0 0 1 3 1"}},
			at:      "2024-02-29 00:00", open: true, want: []string{"closes Fri 03-01 00:00 +0000"},
		},
		"cron: 29 February is too far ahead to be told, and what came last is known": {
			windows: []Window{{Start: "0 0 29 2 *", End: "0 12 29 2 *"}},
			at:      "2026-06-05 12:00", want: []string{"never"},
		},
		"cron: open since the last 29 February": {
			windows: []Window{{Start: "0 12 29 2 *", End: "0 0 29 2 *"}},
			at:      "2026-06-05 12:00", open: true, want: []string{"never"},
		},
		"cron: open since the last 29 February, seven years ago": {
			windows: []Window{{Start: "0 12 29 2 *", End: "0 0 29 2 *"}},
			at:      "2103-06-05 12:00", open: true, want: []string{"closes Fri 02-29 00:00 +0000"},
		},
		"days, on the last of a leap year": {
			windows: []Window{{From: "08:00", To: "20:00", TimeZone: berlin}}, zone: berlin,
			at:   "2040-12-31 00:00",
			want: []string{"opens Mon 12-31 08:00 +0100", "closes Mon 12-31 20:00 +0100", "opens Tue 01-01 08:00 +0100"},
		},
		"cron: open where both come at once": {
			windows: []Window{{Start: "0 8 * * *", End: "0 8 * * *"}},
			at:      "2026-06-05 08:00", open: true, want: []string{"never"},
		},
		"cron: in the gap it comes when the gap ends": {
			windows: []Window{{Start: "30 2 * * *", End: "0 5 * * *", TimeZone: berlin}}, zone: berlin,
			at:   "2026-03-28 12:00",
			want: []string{"opens Sun 03-29 03:00 +0200", "closes Sun 03-29 05:00 +0200"},
		},
		"cron: twice, the first opens and the second closes": {
			windows: []Window{{Start: "10 2 * * *", End: "20 2 * * *", TimeZone: berlin}}, zone: berlin,
			at:   "2026-10-24 12:00",
			want: []string{"opens Sun 10-25 02:10 +0200", "closes Sun 10-25 02:20 +0100", "opens Mon 10-26 02:10 +0100"},
		},
		"cron and days are a union": {
			windows: []Window{{Start: "0 6 * * *", End: "0 9 * * *"}, {Days: []string{"Sat"}, From: "09:00", To: "10:00"}},
			at:      "2026-06-06 00:00",
			want:    []string{"opens Sat 06-06 06:00 +0000", "closes Sat 06-06 10:00 +0000", "opens Sun 06-07 06:00 +0000", "closes Sun 06-07 09:00 +0000"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, at := schedule(t, tc.windows...), utc(t, tc.at)
			if s.Open(at) != tc.open {
				t.Errorf("Open = %v, want %v", !tc.open, tc.open)
			}
			if diff := cmp.Diff(tc.want, changes(s, at, len(tc.want), zone(t, tc.zone))); diff != "" {
				t.Errorf("transitions (-want +got):\n%s", diff)
			}
		})
	}
}

// A clock that is set back leads to the same answers as before: there is no memory.
func TestScheduleForgetsTheTime(t *testing.T) {
	s := schedule(t, Window{From: "08:00", To: "20:00"})
	morning, evening := utc(t, "2026-06-05 07:59"), utc(t, "2026-06-05 20:00")
	for range 2 {
		if s.Open(evening) || s.Open(morning) || !s.Open(evening.Add(-time.Minute)) {
			t.Error("Open changes its mind")
		}
		if next, ok := s.Next(morning); !ok || !next.Opens || !next.At.Equal(morning.Add(time.Minute)) {
			t.Errorf("Next = %v, %v", next, ok)
		}
	}
}
