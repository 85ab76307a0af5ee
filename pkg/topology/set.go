package topology

import (
	"iter"
	"math/bits"
)

// MostCards is how many cards a node may have for its links to be kept: a Set
// has as many places.
const MostCards = 64

// Set is a set of cards of one node, each by its place, 0 to 63.
type Set uint64

// SetOf returns the set of these places. What is no place is left out.
func SetOf(places ...int) Set {
	var s Set
	for _, p := range places {
		s |= one(p)
	}
	return s
}

// one returns the set of one place; none if there is no such place.
func one(place int) Set {
	if place < 0 || place >= MostCards {
		return 0
	}
	return 1 << place
}

// first returns the set of the places 0 to n-1.
func first(n int) Set {
	if n >= MostCards {
		return ^Set(0)
	}
	return 1<<n - 1
}

// Has reports whether the place is in the set.
func (s Set) Has(place int) bool { return s&one(place) != 0 }

// Len returns how many cards are in the set.
func (s Set) Len() int { return bits.OnesCount64(uint64(s)) }

// Within reports whether all of s is in t.
func (s Set) Within(t Set) bool { return s&^t == 0 }

// Places yields the places from the lowest to the highest.
func (s Set) Places() iter.Seq[int] {
	return func(yield func(int) bool) {
		for ; s != 0; s &= s - 1 {
			if !yield(bits.TrailingZeros64(uint64(s))) {
				return
			}
		}
	}
}
