package gpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCardTakes(t *testing.T) {
	tests := map[string]struct {
		mode          Mode
		isolation     Isolation
		whole, slices bool
	}{
		"sliced softly":             {ModeSlice, IsolationSoft, true, true},
		"sliced by the driver":      {ModeSlice, IsolationDriver, true, true},
		"sliced by hardware":        {ModeSlice, IsolationHard, true, true},
		"nothing enforces a bound":  {ModeSlice, IsolationNone, true, false},
		"nobody says what enforces": {ModeSlice, "", true, false},
		"one piece only":            {ModeWhole, IsolationSoft, true, false},
		"MIG":                       {ModeMIG, IsolationHard, false, false},
		"vNPU":                      {ModeVNPU, IsolationHard, false, false},
		"a mode that is not known":  {"half", IsolationHard, false, false},
		"no mode":                   {"", IsolationHard, false, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &Card{Mode: tc.mode, Isolation: tc.isolation}
			if c.TakesWhole() != tc.whole || c.TakesSlices() != tc.slices {
				t.Errorf("takes whole %v, slices %v, want %v, %v", c.TakesWhole(), c.TakesSlices(), tc.whole, tc.slices)
			}
		})
	}
}

func TestUse(t *testing.T) {
	a, b := Use{10, 1, 1, false}, Use{3, 40, 2, true}
	if diff := cmp.Diff(Use{13, 41, 3, true}, a.Plus(b)); diff != "" {
		t.Errorf("plus (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Use{10, 40, 2, true}, a.Max(b)); diff != "" {
		t.Errorf("max (-want +got):\n%s", diff)
	}
}
