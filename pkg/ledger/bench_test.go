package ledger_test

import (
	"fmt"
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

const benchNodes, benchCards = 5000, 8

// full returns 5,000 nodes with 8 cards each, every card with two holders.
func full(b *testing.B) *ledger.Ledger {
	b.Helper()
	l := ledger.New(apart{})
	for i := range benchNodes {
		f := ledger.Facts{ID: benchNode(i), CPU: 1000, Memory: 1000, BootID: "boot"}
		for j := range benchCards {
			f.Cards = append(f.Cards, card(benchCard(i, j), j, gpu.Nvidia))
		}
		l.SetNode(f)
		for j := range benchCards * 2 {
			if err := l.Reserve(on(f.ID, pod(gpu.PodID(fmt.Sprintf("pod-%d-%d", i, j)), slice(benchCard(i, j/2), 10, 10)))); err != nil {
				b.Fatal(err)
			}
		}
	}
	l.Snapshot()
	return l
}

func benchNode(i int) gpu.NodeID { return gpu.NodeID(fmt.Sprintf("node-%05d", i)) }
func benchCard(i, j int) gpu.CardID {
	return gpu.CardID(fmt.Sprintf("GPU-%05d-8d3f-4a5b-9c1e-%012d", i, j))
}

func BenchmarkSnapshotUnchanged(b *testing.B) {
	l := full(b)
	for b.Loop() {
		l.Snapshot()
	}
}

// One change between two snapshots is the usual case under load.
func BenchmarkSnapshotAfterChange(b *testing.B) {
	l := full(b)
	p := on(benchNode(0), pod("p", slice(benchCard(0, 3), 10, 10)))
	for b.Loop() {
		if err := l.Reserve(p); err != nil {
			b.Fatal(err)
		}
		l.Snapshot()
		l.Release("p")
		l.Snapshot()
	}
}

func BenchmarkSnapshotAfterNewNode(b *testing.B) {
	l := full(b)
	for b.Loop() {
		l.SetNode(ledger.Facts{ID: "node-new"})
		l.Snapshot()
		l.RemoveNode("node-new")
		l.Snapshot()
	}
}

func BenchmarkReserveRelease(b *testing.B) {
	l := full(b)
	p := on(benchNode(0), pod("p", slice(benchCard(0, 3), 10, 10)))
	for b.Loop() {
		if err := l.Reserve(p); err != nil {
			b.Fatal(err)
		}
		l.Release("p")
	}
}

func BenchmarkConfirmUnchanged(b *testing.B) {
	l := full(b)
	p := on(benchNode(0), pod("p", slice(benchCard(0, 3), 10, 10)))
	for b.Loop() {
		l.Confirm(p)
	}
}

func BenchmarkSetNodeUnchanged(b *testing.B) {
	l := full(b)
	n, _ := l.Snapshot().Node(benchNode(0))
	for b.Loop() {
		l.SetNode(n.Facts)
	}
}

func BenchmarkWithWithout(b *testing.B) {
	s := full(b).Snapshot()
	p := on(benchNode(0), pod("p", slice(benchCard(0, 3), 10, 10)))
	for b.Loop() {
		next, err := s.With(p)
		if err != nil {
			b.Fatal(err)
		}
		next.Without(p.Node, "p")
	}
}

func BenchmarkNodesAndLookups(b *testing.B) {
	s := full(b).Snapshot()
	for b.Loop() {
		for id := range s.Nodes() {
			if _, ok := s.Node(id); !ok {
				b.Fatal(id)
			}
		}
	}
}

func BenchmarkExpire(b *testing.B) {
	l := full(b)
	for b.Loop() {
		l.Expire(start)
	}
}

// What was measured of all nodes, each round of it something else.
func BenchmarkSetReadings(b *testing.B) {
	l := full(b)
	rounds := [2][]ledger.Readings{}
	for k := range rounds {
		for i := range benchNodes {
			r := ledger.Readings{CPU: gpu.Measured(50), Cards: map[gpu.CardID]gpu.Reading{}}
			for j := range benchCards {
				r.Cards[benchCard(i, j)] = gpu.Reading{MemoryUsed: gpu.Measured(30), Temperature: gpu.Measured(int64(50 + k))}
			}
			rounds[k] = append(rounds[k], r)
		}
	}
	k := 0
	for b.Loop() {
		for i := range benchNodes {
			l.SetReadings(benchNode(i), rounds[k%2][i])
		}
		l.Snapshot()
		k++
	}
}

// As nearly always: nothing else was measured.
func BenchmarkSetReadingsUnchanged(b *testing.B) {
	l := full(b)
	r := ledger.Readings{CPU: gpu.Measured(50), Cards: map[gpu.CardID]gpu.Reading{}}
	for j := range benchCards {
		r.Cards[benchCard(0, j)] = gpu.Reading{MemoryUsed: gpu.Measured(30), Temperature: gpu.Measured(50)}
	}
	l.SetReadings(benchNode(0), r)
	for b.Loop() {
		l.SetReadings(benchNode(0), r)
	}
}
