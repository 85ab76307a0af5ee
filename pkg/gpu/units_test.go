package gpu

import (
	"errors"
	"math"
	"testing"
)

func TestMiBAdd(t *testing.T) {
	tests := map[string]struct {
		a, b, want MiB
		err        error
	}{
		"sum":              {3, 4, 7, nil},
		"nothing":          {0, 0, 0, nil},
		"the last that is": {math.MaxInt64 - 1, 1, math.MaxInt64, nil},
		"one too many":     {math.MaxInt64, 1, 0, ErrOverflow},
		"far too many":     {math.MaxInt64, math.MaxInt64, 0, ErrOverflow},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := tc.a.Add(tc.b)
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("%d + %d = %d, %v, want %d, %v", tc.a, tc.b, got, err, tc.want, tc.err)
			}
		})
	}
}
