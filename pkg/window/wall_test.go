package window

import (
	"testing"
	"time"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := parseZone("zone", name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// utc reads a time as 2026-03-29 01:00.
func utc(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestMoments(t *testing.T) {
	tests := map[string]struct{ zone, wall, first, last string }{
		"an ordinary time":                       {"Europe/Berlin", "2026-07-01 08:00", "2026-07-01 06:00", "2026-07-01 06:00"},
		"Berlin, before the gap":                 {"Europe/Berlin", "2026-03-29 01:59", "2026-03-29 00:59", "2026-03-29 00:59"},
		"Berlin, the gap's first":                {"Europe/Berlin", "2026-03-29 02:00", "2026-03-29 01:00", "2026-03-29 01:00"},
		"Berlin, in the gap":                     {"Europe/Berlin", "2026-03-29 02:30", "2026-03-29 01:00", "2026-03-29 01:00"},
		"Berlin, after the gap":                  {"Europe/Berlin", "2026-03-29 03:00", "2026-03-29 01:00", "2026-03-29 01:00"},
		"Berlin, twice":                          {"Europe/Berlin", "2026-10-25 02:30", "2026-10-25 00:30", "2026-10-25 01:30"},
		"Berlin, twice from":                     {"Europe/Berlin", "2026-10-25 02:00", "2026-10-25 00:00", "2026-10-25 01:00"},
		"Berlin, once again":                     {"Europe/Berlin", "2026-10-25 03:00", "2026-10-25 02:00", "2026-10-25 02:00"},
		"New York, in the gap":                   {"America/New_York", "2026-03-08 02:30", "2026-03-08 07:00", "2026-03-08 07:00"},
		"New York, twice":                        {"America/New_York", "2026-11-01 01:30", "2026-11-01 05:30", "2026-11-01 06:30"},
		"Lord Howe, in the gap of half an hour":  {"Australia/Lord_Howe", "2026-10-04 02:15", "2026-10-03 15:30", "2026-10-03 15:30"},
		"Lord Howe, after it":                    {"Australia/Lord_Howe", "2026-10-04 02:30", "2026-10-03 15:30", "2026-10-03 15:30"},
		"Lord Howe, twice":                       {"Australia/Lord_Howe", "2026-04-05 01:45", "2026-04-04 14:45", "2026-04-04 15:15"},
		"Lord Howe, once":                        {"Australia/Lord_Howe", "2026-04-05 01:29", "2026-04-04 14:29", "2026-04-04 14:29"},
		"Havana, where midnight comes twice":     {"America/Havana", "2025-11-02 00:00", "2025-11-02 04:00", "2025-11-02 05:00"},
		"Sao Paulo, where midnight did not come": {"America/Sao_Paulo", "2018-11-04 00:00", "2018-11-04 03:00", "2018-11-04 03:00"},
		"Apia, a day that did not come":          {"Pacific/Apia", "2011-12-30 12:00", "2011-12-30 10:00", "2011-12-30 10:00"},
		"far in the future, where rules go on":   {"Europe/Berlin", "2090-07-01 08:00", "2090-07-01 06:00", "2090-07-01 06:00"},
		"the last day of a leap year by a rule":  {"Europe/Berlin", "2040-12-31 12:00", "2040-12-31 11:00", "2040-12-31 11:00"},
		"the same in summer":                     {"Australia/Lord_Howe", "2040-12-31 12:00", "2040-12-31 01:00", "2040-12-31 01:00"},
		"the first day of a year by a rule":      {"Europe/Berlin", "2041-01-01 00:30", "2040-12-31 23:30", "2040-12-31 23:30"},
		"before there were zones":                {"UTC", "1800-01-01 00:00", "1800-01-01 00:00", "1800-01-01 00:00"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := wallClock{zone: zone(t, tc.zone)}
			first, last := c.moments(utc(t, tc.wall))
			if !first.Equal(utc(t, tc.first)) || !last.Equal(utc(t, tc.last)) {
				t.Errorf("moments = %s, %s; want %s, %s", first, last, tc.first, tc.last)
			}
		})
	}
}
