package e2e

import (
	"testing"
	"time"
)

// times are so many milliseconds after each other's beginning.
func times(after ...int) []time.Time {
	all := make([]time.Time, len(after))
	for i, ms := range after {
		all[i] = time.UnixMilli(int64(ms))
	}
	return all
}

func TestRate(t *testing.T) {
	tests := map[string]struct {
		bound        []time.Time
		all, between float64
	}{
		"none":         {nil, 0, 0},
		"one":          {times(5), 0, 0},
		"two":          {times(0, 500), 2, 2},
		"all at once":  {times(7, 7, 7), 0, 0},
		"evenly":       {times(0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000), 10, 10},
		"a slow start": {times(0, 17200, 17300, 17400, 17500, 17600, 17700, 17800, 17900, 18000), 0.5, 10},
		"a long end":   {times(0, 100, 200, 300, 400, 500, 600, 700, 800, 9000), 1, 10},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := rate(tc.bound); got != tc.all {
				t.Errorf("rate = %v, want %v", got, tc.all)
			}
			if got := rate(middle(tc.bound)); got != tc.between {
				t.Errorf("rate of the middle = %v, want %v", got, tc.between)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	tests := map[string]struct {
		values []float64
		want   float64
	}{
		"none":  {nil, 0},
		"one":   {[]float64{4}, 4},
		"two":   {[]float64{4, 1}, 2.5},
		"three": {[]float64{9, 1, 2}, 2},
		"four":  {[]float64{9, 1, 3, 2}, 2.5},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := median(tc.values); got != tc.want {
				t.Errorf("median = %v, want %v", got, tc.want)
			}
		})
	}
	values := []int{3, 1, 2}
	if median(values); values[0] != 3 {
		t.Errorf("median sorted what it was given: %v", values)
	}
}
