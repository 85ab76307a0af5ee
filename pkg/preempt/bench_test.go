package preempt_test

import (
	"fmt"
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// crowded is a cluster of 8-card nodes that are full of pods that may be ended: one
// on each card, or two slices of each.
func crowded(nodes int, slices bool) cluster {
	var c cluster
	for i := range nodes {
		f := facts(gpu.NodeID(fmt.Sprintf("n%04d", i)), 8)
		f.CPU, f.Pods = 128_000, 110
		c.nodes = append(c.nodes, f)
		for k := range 16 {
			id := gpu.PodID(fmt.Sprintf("%s-%d", f.ID, k))
			r := sliceOn(f.ID, id, k/2, 4)
			if !slices {
				if k >= 8 {
					break
				}
				r = on(f.ID, id, k)
			}
			r.Namespace = []string{"red", "rose"}[i%2]
			c.residents = append(c.residents, r.priority(int32(i*7+k*13)%30).age(i*31%600+k))
		}
	}
	return c
}

// kinds are what a round has to plan for: whole cards, slices, processors, and what
// nobody's going would make room for.
func kinds(i int) preempt.Asker {
	all := []preempt.Asker{
		wholes(1), wholes(2), wholes(4), wholes(8), slice(3), slice(8),
		asking(gpu.Ask{Container: "a", Count: 1, Whole: true}, gpu.Ask{Container: "b", Number: 1, Count: 2, Memory: 4, Cores: 20}),
		wholes(9),
	}
	a := all[i%len(all)]
	a.Pod = gpu.PodID(fmt.Sprintf("high-%d", i))
	a.Lineage = string(a.Pod)
	return a
}

func eachCrowd(b *testing.B, run func(b *testing.B, c cluster, l *ledger.Ledger)) {
	for _, slices := range []bool{false, true} {
		b.Run(fmt.Sprintf("slices=%v", slices), func(b *testing.B) {
			c := crowded(1000, slices)
			run(b, c, c.books())
		})
	}
}

// BenchmarkRound is 200 pending pods in a cluster of 1,000 full nodes, each plan being
// carried out before the next: one op is one plan. At most 50 ms is wanted.
func BenchmarkRound(b *testing.B) {
	eachCrowd(b, func(b *testing.B, c cluster, l *ledger.Ledger) {
		p, w := &preempt.Planner{}, c.world(l)
		n, planned := 0, 0
		for b.Loop() {
			a := kinds(n)
			n++
			plan, outcome := p.Plan(w, &a)
			if outcome == preempt.Planned {
				planned++
				l.Confirm(plan.Placement)
				w.State = l.Snapshot()
			}
			if n%200 == 0 { // the next round, in which all claims have come to nothing
				b.StopTimer()
				l = c.books()
				p, w = &preempt.Planner{}, c.world(l)
				b.StartTimer()
			}
		}
		b.ReportMetric(float64(planned)/float64(n), "planned/op")
	})
}

// BenchmarkFirst is the first plan for each kind of pod, by a planner that knows
// nothing, in a round that it has looked at.
func BenchmarkFirst(b *testing.B) {
	eachCrowd(b, func(b *testing.B, c cluster, l *ledger.Ledger) {
		for i := range 8 {
			b.Run(fmt.Sprint("kind", i), func(b *testing.B) {
				a, w := kinds(i), c.world(l)
				(&preempt.Planner{}).Plan(w, &a)
				for b.Loop() {
					(&preempt.Planner{}).Plan(w, &a)
				}
			})
		}
	})
}

// BenchmarkAgain is a further plan for each kind of pod.
func BenchmarkAgain(b *testing.B) {
	eachCrowd(b, func(b *testing.B, c cluster, l *ledger.Ledger) {
		for i := range 8 {
			b.Run(fmt.Sprint("kind", i), func(b *testing.B) {
				a, w, p := kinds(i), c.world(l), &preempt.Planner{}
				p.Plan(w, &a)
				for b.Loop() {
					p.Plan(w, &a)
				}
			})
		}
	})
}

// BenchmarkLook is what each round takes before the first plan.
func BenchmarkLook(b *testing.B) {
	eachCrowd(b, func(b *testing.B, c cluster, l *ledger.Ledger) {
		a, p, base := wholes(9), &preempt.Planner{}, c.world(l)
		for b.Loop() {
			p.Plan(&preempt.World{State: base.State, Pods: base.Pods, Now: now, Rules: base.Rules, Trial: base.Trial, Policy: base.Policy}, &a)
		}
	})
}
