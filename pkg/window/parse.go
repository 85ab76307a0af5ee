package window

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	// The tz database is embedded here, where zones are read, and so is in whatever reads
	// them: the controller, admission, a simulation. One of the machine comes before it.
	_ "time/tzdata"
)

// mostWindows is far more than a week needs, and few enough to be looked at each minute.
const mostWindows = 50

// Window is a window as its author writes it: days, from and to, or start and end.
type Window struct {
	Days     []string // Mon, Tue, Wed, Thu, Fri, Sat, Sun: those on which it opens; none: every day
	From, To string   // 08:00; a To that is not after From is on the day after, the same: after a whole day
	Start    string   // cron expressions of five fields
	End      string
	TimeZone string // a name of the tz database as Europe/Berlin; "": UTC
}

// parseWindows returns the schedule, or all that is wrong with the windows.
func parseWindows(field string, windows []Window) (Schedule, error) {
	if len(windows) > mostWindows {
		return Schedule{}, fmt.Errorf("%s: %d of them, at most %d", field, len(windows), mostWindows)
	}
	var errs []error
	var s Schedule
	byZone := map[string][]daily{} // name of the zone -> its windows
	var zones []string
	for i, w := range windows {
		at := fmt.Sprintf("%s[%d]", field, i)
		d, p, err := w.parse(at)
		switch {
		case err != nil:
			errs = append(errs, err)
		case p != nil:
			s.parts = append(s.parts, *p)
		default:
			name := d.zone.String()
			if byZone[name] == nil {
				zones = append(zones, name)
			}
			byZone[name] = append(byZone[name], *d)
		}
	}
	if len(errs) > 0 {
		return Schedule{}, errors.Join(errs...)
	}
	for _, name := range zones {
		weekly, whole := merge(byZone[name])
		if whole {
			return Schedule{}, nil
		}
		s.parts = append(s.parts, weekly)
	}
	return s, nil
}

// parse returns the one kind of window or the other.
func (w Window) parse(field string) (*daily, *pair, error) {
	zone, zoneErr := parseZone(field+".timeZone", w.TimeZone)
	byDay, byCron := w.From != "" || w.To != "", w.Start != "" || w.End != ""
	switch {
	case byDay && byCron:
		return nil, nil, errors.Join(fmt.Errorf("%s: has from or to as well as start or end: give one pair", field), zoneErr)
	case byCron:
		p, err := w.parsePair(field, zone)
		return nil, p, errors.Join(err, zoneErr)
	case byDay:
		d, err := w.parseDaily(field, zone)
		return d, nil, errors.Join(err, zoneErr)
	}
	return nil, nil, errors.Join(fmt.Errorf("%s: has neither from and to nor start and end", field), zoneErr)
}

func (w Window) parseDaily(field string, zone *time.Location) (*daily, error) {
	days, daysErr := parseDays(field+".days", w.Days)
	from, fromErr := parseTime(field+".from", w.From, dayMinutes-1)
	to, toErr := parseTime(field+".to", w.To, dayMinutes)
	return &daily{days: days, from: from, to: to, zone: zone}, errors.Join(daysErr, fromErr, toErr)
}

func (w Window) parsePair(field string, zone *time.Location) (*pair, error) {
	var daysErr error
	if len(w.Days) > 0 {
		daysErr = fmt.Errorf("%s.days: goes with from and to; start and end have their own field for days", field)
	}
	start, startErr := parseCron(field+".start", w.Start)
	end, endErr := parseCron(field+".end", w.End)
	return &pair{start: start, end: end, zone: zone}, errors.Join(daysErr, startErr, endErr)
}

// parseTime reads hh:mm, up to most minutes of the day.
func parseTime(field, text string, most int) (int, error) {
	var h, m int
	hh, mm, ok := strings.Cut(text, ":")
	if ok {
		h, ok = twoDigits(hh)
	}
	if ok {
		m, ok = twoDigits(mm)
	}
	if !ok || m > 59 || h*60+m > most {
		return 0, fmt.Errorf("%s: %q is not a time of day, 00:00 to %02d:%02d", field, text, most/60, most%60)
	}
	return h*60 + m, nil
}

func twoDigits(s string) (int, bool) {
	if len(s) != 2 || s[0] < '0' || s[0] > '9' || s[1] < '0' || s[1] > '9' {
		return 0, false
	}
	return int(s[0]-'0')*10 + int(s[1]-'0'), true
}

// parseDays returns which weekdays are named; all of them where none is.
func parseDays(field string, names []string) (days [7]bool, err error) {
	known := []string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}
	var errs []error
	for i, name := range names {
		day := slices.Index(known, name)
		if day < 0 {
			errs = append(errs, fmt.Errorf("%s[%d]: %q is not a day: Mon, Tue, Wed, Thu, Fri, Sat or Sun", field, i, name))
			continue
		}
		days[day] = true
	}
	if len(names) == 0 {
		return [7]bool{true, true, true, true, true, true, true}, nil
	}
	return days, errors.Join(errs...)
}

// parseZone reads the name of a zone. Local is refused: it is another on each machine.
func parseZone(field, name string) (*time.Location, error) {
	if strings.EqualFold(name, "local") {
		return nil, fmt.Errorf("%s: %q is another zone on each machine: give its name, as Europe/Berlin", field, name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %q is not a time zone of the tz database, such as Europe/Berlin: %w", field, name, err)
	}
	return zone, nil
}
