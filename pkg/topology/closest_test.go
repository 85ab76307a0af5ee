package topology

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The set is the best one that there is, and of equal ones that of the favourites; by
// trying all of them.
func TestClosest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "cards")
		weights := rapid.SliceOfN(rapid.Uint16Range(0, 4), n*n, n*n).Draw(t, "weights")
		weight := func(a, b int) uint16 { return weights[min(a, b)*n+max(a, b)] }
		open := rapid.Permutation(upTo(n)).Draw(t, "open")[:rapid.IntRange(1, n).Draw(t, "of them")]
		count := rapid.IntRange(1, n).Draw(t, "count")
		got, ok := Closest(open, count, weight)
		if ok != (count <= len(open)) {
			t.Fatalf("%d of %d: %t", count, len(open), ok)
		}
		if !ok {
			return
		}
		sum := func(s Set) (sum int) {
			for a := range s.Places() {
				for b := range (s & first(a)).Places() {
					sum += int(weight(a, b))
				}
			}
			return sum
		}
		if got.Len() != count || !got.Within(SetOf(open...)) {
			t.Fatalf("%b is not %d of %v", got, count, open)
		}
		for s := range Set(1) << n {
			if s.Len() == count && s.Within(SetOf(open...)) && sum(s) > sum(got) {
				t.Fatalf("%b weighs %d, %b %d", got, sum(got), s, sum(s))
			}
		}
	})
}

// Weights that no bound helps with do not keep anybody waiting.
func TestClosestIsBounded(t *testing.T) {
	began := time.Now()
	cards, ok := Closest(upTo(MostCards), MostCards/2, func(a, b int) uint16 { return uint16((a*7919 + b*104729) % 900) })
	if took := time.Since(began); !ok || cards.Len() != MostCards/2 || took > time.Second {
		t.Errorf("%d cards, %t, after %v", cards.Len(), ok, took)
	}
}
