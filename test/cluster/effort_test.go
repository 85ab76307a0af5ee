package cluster

import (
	"testing"
	"time"
)

func TestEffort(t *testing.T) {
	tests := map[string]struct {
		stat  string
		want  time.Duration
		fails bool
	}{
		"a name like any":         {"7 (up) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1", 3 * time.Second, false},
		"a name that looks a lot": {"7 (a) b (c) S 1 7 7 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 1", 30 * time.Millisecond, false},
		"too short":               {"7 (up) S 1 7", 0, true},
		"no number":               {"7 (up) S 1 7 7 0 -1 4194304 100 0 0 0 x 50 0 0", 0, true},
		"nothing":                 {"", 0, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := effort(tc.stat)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("effort = %s, %v, want %s (fails: %t)", got, err, tc.want, tc.fails)
			}
		})
	}
}
