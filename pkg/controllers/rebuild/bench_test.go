package rebuild

import (
	"fmt"
	"testing"
)

// BenchmarkRound is a round over 40,000 pods, half of them of 500 services, on 5,000
// nodes that are all ready.
func BenchmarkRound(b *testing.B) {
	w := newWorld()
	for i := range 500 {
		w.group(fmt.Sprint("g", i))
	}
	for i := range 5_000 {
		w.node(fmt.Sprint("n", i))
	}
	for i := range 40_000 {
		w.pod(fmt.Sprint("p", i), fmt.Sprint("g", i%1000), fmt.Sprint("n", i%5000))
	}
	w.see()
	b.ReportAllocs()
	for b.Loop() {
		w.c.round(quiet())
	}
}
