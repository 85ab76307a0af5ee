package bench

import (
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/policy"
	"heteroflow.io/heteroflow/pkg/tenancy"
	"heteroflow.io/heteroflow/pkg/topology"
)

// machines are ways to join eight cards, by what is between two of them.
var machines = map[string]func(a, b int) string{
	"unknown":  nil,
	"nvswitch": func(int, int) string { return "NV12" },
	"pairs": func(a, b int) string {
		if a/2 == b/2 {
			return "NV4"
		}
		return "SYS"
	},
	"cubemesh": func(a, b int) string { // of a DGX-1
		switch {
		case a^b == 4 || a/4 == b/4 && a^b == 3:
			return "NV2"
		case a/4 == b/4:
			return "NV1"
		}
		return "SYS"
	},
}

// linked is the world whose nodes tell how their cards are joined.
func linked(b *testing.B, n int, between func(a, b int) string) *ledger.Ledger {
	b.Helper()
	books := world(n, few)
	if between == nil {
		return books
	}
	for _, node := range books.Snapshot().Nodes() {
		f := node.Facts
		builder, err := topology.NewBuilder(f.Cards)
		if err != nil {
			b.Fatal(err)
		}
		for i := range f.Cards {
			for j := range i {
				builder.Pair(f.Cards[j].ID, f.Cards[i].ID, between(j, i))
			}
		}
		f.Links = builder.Links()
		books.SetNode(f)
	}
	return books
}

// BenchmarkFirstOfABurst judges and rates 1,000 nodes of which nothing is
// remembered, which is once for each kind of request.
func BenchmarkFirstOfABurst(b *testing.B) {
	for name, between := range machines {
		books := linked(b, 1000, between)
		pipe := policy.Default().Pipeline()
		for kind, cards := range map[string]int{"whole2": 2, "whole8": 8} {
			b.Run("links="+name+"/pod="+kind, func(b *testing.B) {
				s := books.Snapshot()
				tenant, _ := s.Owner("bench")
				c := &pipeline.Cycle{Nodes: s.Len(), Request: &gpu.Request{
					Namespace: "bench", Tenant: tenant, NUMA: gpu.NoNUMA, Asks: []gpu.Ask{{Container: "main", Count: cards, Whole: true}},
				}}
				var scratch pipeline.Scratch
				b.ReportAllocs()
				for b.Loop() {
					for i := range s.Len() {
						if n := s.At(i); pipe.Judge(c, n, &scratch).OK() {
							pipe.Total(c, n, &scratch)
						}
					}
				}
			})
		}
	}
}

// BenchmarkFilterHTTPLinked is a whole /filter, of which most is remembered.
func BenchmarkFilterHTTPLinked(b *testing.B) {
	for name, between := range machines {
		books := linked(b, 1000, between)
		books.Govern(tenancy.Separate{})
		b.Run("links="+name, func(b *testing.B) { measure(b, extenderOf(books), "/filter", question(b, "whole8", 1000)) })
	}
}
