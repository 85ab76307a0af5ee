package bench

import (
	"fmt"
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// measuredBooks has readings of all nodes, and of all their cards: cool and idle, or
// busy, so that every card is at the threshold of its utilisation.
func measuredBooks(nodes int, utilisation int64) *ledger.Ledger {
	l := world(nodes, few)
	for id, n := range l.Snapshot().Nodes() {
		r := ledger.Readings{CPU: gpu.Measured(40), Memory: gpu.Measured(50), Cards: map[gpu.CardID]gpu.Reading{}}
		for i := range n.Cards {
			r.Cards[n.Cards[i].ID] = gpu.Reading{
				MemoryUsed: gpu.Measured(int64(n.Cards[i].Used.Memory)), Utilisation: gpu.Measured(utilisation),
				Temperature: gpu.Measured(60), Power: gpu.Measured(300), PowerLimit: gpu.Measured(700),
			}
		}
		l.SetReadings(id, r)
	}
	return l
}

// BenchmarkFilterMeasuredHTTP is a whole /filter of which nothing is remembered, where
// nothing is measured, where
// everything is, and where all cards are busy.
func BenchmarkFilterMeasuredHTTP(b *testing.B) {
	const nodes = 1000
	for _, of := range []struct {
		name  string
		books *ledger.Ledger
	}{
		{"nothing", world(nodes, few)}, {"idle", measuredBooks(nodes, 20)}, {"busy", measuredBooks(nodes, 100)},
	} {
		for kind := range pods {
			b.Run(fmt.Sprintf("measured=%s/pod=%s", of.name, kind), func(b *testing.B) {
				body := question(b, kind, nodes)
				var spent int64
				for range b.N {
					h := extenderOf(of.books) // another engine remembers nothing
					before := processor(b)
					answer(b, h, "/filter", body)
					spent += int64(processor(b) - before)
				}
				b.ReportMetric(float64(spent)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}
