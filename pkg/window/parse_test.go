package window

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	replicas := func(n int32) *int32 { return &n }
	night := Window{From: "22:00", To: "06:00"}
	tests := map[string]struct {
		written Written
		want    []string // each in the error; none: no error
	}{
		"nothing":               {},
		"an action, no windows": {written: Written{Action: "pause"}},
		"pause":                 {written: Written{Windows: []Window{night}, Action: "pause"}},
		"scale":                 {written: Written{Windows: []Window{night}, Action: "scale", Replicas: replicas(2)}},
		"stop":                  {written: Written{Windows: []Window{night}, Action: "stop"}},
		"windows without an action": {
			written: Written{Windows: []Window{night}},
			want:    []string{`windowAction: "" is not pause, scale or stop`},
		},
		"an unknown action": {
			written: Written{Windows: []Window{night}, Action: "Pause"},
			want:    []string{`windowAction: "Pause" is not pause, scale or stop`},
		},
		"scale to what": {
			written: Written{Windows: []Window{night}, Action: "scale"},
			want:    []string{"replicas: is missing"},
		},
		"scale to none": {
			written: Written{Windows: []Window{night}, Action: "scale", Replicas: replicas(0)},
			want:    []string{"replicas: 0 is less than 1"},
		},
		"pause to some": {
			written: Written{Windows: []Window{night}, Action: "pause", Replicas: replicas(2)},
			want:    []string{`replicas: goes with the windowAction scale, not with "pause"`},
		},
		"all faults at once": {
			written: Written{Windows: []Window{{From: "25:00", To: "8:00", Days: []string{"Mon", "Mo"}, TimeZone: "Mars"}, {}}, Action: "nap", Replicas: replicas(1)},
			want: []string{
				`windows[0].from: "25:00" is not a time of day, 00:00 to 23:59`,
				`windows[0].to: "8:00" is not a time of day, 00:00 to 24:00`,
				`windows[0].days[1]: "Mo" is not a day`,
				`windows[0].timeZone: "Mars" is not a time zone`,
				`windows[1]: has neither from and to nor start and end`,
				`windowAction: "nap"`,
				`replicas: goes with`,
			},
		},
		"an end before it began": {
			written: Written{Windows: []Window{{From: "24:00", To: "24:01"}}, Action: "pause"},
			want:    []string{`windows[0].from: "24:00" is not`, `windows[0].to: "24:01" is not`},
		},
		"half of a window": {
			written: Written{Windows: []Window{{From: "08:00"}, {End: "0 8 * * *"}}, Action: "pause"},
			want:    []string{`windows[0].to: "" is not a time of day`, `windows[1].start: "" is not a cron expression`},
		},
		"both kinds": {
			written: Written{Windows: []Window{{From: "08:00", To: "09:00", Start: "0 8 * * *"}}, Action: "pause"},
			want:    []string{"windows[0]: has from or to as well as start or end"},
		},
		"days beside cron": {
			written: Written{Windows: []Window{{Start: "0 8 * * *", End: "0 9 * * *", Days: []string{"Mon"}}}, Action: "pause"},
			want:    []string{"windows[0].days: goes with from and to"},
		},
		"the machine's own zone": {
			written: Written{Windows: []Window{{From: "08:00", To: "09:00", TimeZone: "Local"}}, Action: "pause"},
			want:    []string{`windows[0].timeZone: "Local" is another zone on each machine`},
		},
		"a zone outside the database": {
			written: Written{Windows: []Window{{From: "08:00", To: "09:00", TimeZone: "../../etc/passwd"}}, Action: "pause"},
			want:    []string{`windows[0].timeZone: "../../etc/passwd" is not a time zone`},
		},
		"too many": {
			written: Written{Windows: make([]Window, mostWindows+1), Action: "pause"},
			want:    []string{"windows: 51 of them, at most 50"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rule, err := Parse(tc.written)
			if len(tc.want) == 0 {
				if err != nil {
					t.Fatalf("Parse: %v", err)
				}
				return
			}
			if err == nil {
				t.Fatal("Parse found nothing wrong")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q:\n%v", want, err)
				}
			}
			if lines := strings.Count(err.Error(), "\n") + 1; lines != len(tc.want) {
				t.Errorf("%d errors, want %d:\n%v", lines, len(tc.want), err)
			}
			if !rule.Schedule.Always() || rule.Action != "" {
				t.Errorf("a rule came with the error: %v", rule)
			}
		})
	}
}

func TestParseCron(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"each day":                {"0 8 * * *", ""},
		"names, lists, ranges":    {"30 8,12 1-7 jan-jun mon,fri", ""},
		"every four hours":        {"0 */4 * * *", ""},
		"every three hours":       {"0 */3 * * *", "comes more than 6 times a day"},
		"29 February":             {"0 0 29 2 *", ""},
		"twice an hour":           {"0,30 * * * *", "comes more than 6 times a day"},
		"each minute":             {"* * * * *", "comes more than 6 times a day"},
		"each minute of one hour": {"* 8 * * *", "comes more than 6 times a day"},
		"30 February":             {"0 0 30 2 *", "never comes"},
		"an empty list":           {"0 , * * *", "a list has nothing before or after a comma"},
		"a list that ends early":  {"0 8,, * * *", "a list has nothing before or after a comma"},
		"nothing":                 {"", "is not a cron expression of five fields"},
		"with seconds":            {"0 0 8 * * *", "is not a cron expression of five fields"},
		"a name":                  {"@daily", "is not a cron expression of five fields"},
		"a zone":                  {"CRON_TZ=UTC 0 8 * *", "is not a cron expression of five fields"},
		"a zone and no more":      {"TZ=", "is not a cron expression of five fields"},
		"hour 24":                 {"0 24 * * *", "is not a cron expression: end of range (24)"},
		"words":                   {"at eight in the morning", "is not a cron expression: "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parseCron("windows[2].start", tc.text)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("parseCron: %v", err)
			case tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "windows[2].start: ") || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("parseCron = %v, want %q", err, tc.want)
			}
		})
	}
}

func TestParseDaysNamesAllWithout(t *testing.T) {
	all, err := parseDays("days", nil)
	if err != nil {
		t.Fatal(err)
	}
	named, err := parseDays("days", []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, named); diff != "" {
		t.Errorf("no days and all days differ:\n%s", diff)
	}
}

// FuzzCron: whatever is read can be asked, and no text brings the parser down.
func FuzzCron(f *testing.F) {
	for _, seed := range []string{"0 8 * * 1-5", "TZ=", "TZ=UTC", "@every 1s", "0 , * * *", "*/99999999999999999999 * * * *", "0 8 1-5/2 jan sun", "- - - - -", "1/ 2/3/4 * * ?"} {
		f.Add(seed)
	}
	at := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCron("start", text)
		if err != nil {
			return
		}
		if next := c.after(at).wall(); !next.After(at) {
			t.Errorf("%q comes after %s at %s", text, at, next)
		}
	})
}
