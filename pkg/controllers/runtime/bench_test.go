package runtime

import (
	"fmt"
	"testing"
)

// BenchmarkRound is a round over 40,000 pods of which none is to be told or ended.
func BenchmarkRound(b *testing.B) {
	w := newWorld()
	for i := range 40_000 {
		w.pod(fmt.Sprint("p", i), may("24h"))
	}
	w.see()
	b.ReportAllocs()
	for b.Loop() {
		w.c.round(quiet())
	}
}
