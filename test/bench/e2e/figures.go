package e2e

import (
	"cmp"
	"slices"
	"time"
)

// rate is how many pods a second were bound between the first and the last of
// these times, which are in order.
func rate(bound []time.Time) float64 {
	if len(bound) < 2 {
		return 0
	}
	took := bound[len(bound)-1].Sub(bound[0]).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(len(bound)-1) / took
}

// middle leaves out the first and the last tenth: kube-scheduler starts there,
// and the last pods have the machine for themselves.
func middle(bound []time.Time) []time.Time {
	tenth := len(bound) / 10
	return bound[tenth : len(bound)-tenth]
}

// median is the one in the middle, or the mean of the two in the middle.
func median[T ~int | ~int64 | ~float64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare[T])
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}
