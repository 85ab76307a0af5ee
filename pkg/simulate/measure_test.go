package simulate

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// The small cluster has a node of two cards and one of one card, which is of the lower
// rank: 3,000 thousandths. By hand, under bestfit:
//
//	600, 8 CPU    scores 69 on the large node, 88 on the small one: goes there
//	10            small node: 400 left of the card, then 390; 20 % had arrived, 20.33 now
//	500, 8 CPU    large node, its first card
//	500, 8 CPU    and that card's other half: the tightest one
//	1000, 8 CPU   the second card of the large node; 2,610 have arrived, 87 %
//	40 CPU        all that is left of the large node
//	24 CPU        all that is left of the small one
//	20, 1 CPU     nobody has a CPU left: 2,630 have arrived, 87.67 %
//	8 cards       nobody has
func TestReplayByHand(t *testing.T) {
	trace := &Trace{Nodes: []Node{{"large", 64000, 1000, 2, "T4"}, {"small", 32000, 1000, 1, "T4"}}}
	part := func(milli, cpu int) Pod {
		return Pod{Shape: Shape{Cards: min(1, milli), Milli: milli, CPU: gpu.MilliCPU(cpu * 1000)}}
	}
	arrivals := Arrivals{Rank: []int{1, 0}, Pods: []Pod{
		part(600, 8), part(10, 0), part(500, 8), part(500, 8), part(1000, 8), part(0, 40), part(0, 24), part(20, 1),
		{Shape: Shape{Cards: 8, Milli: 1000}},
	}}
	policies, err := Policies([]string{"bestfit"})
	if err != nil {
		t.Fatal(err)
	}
	run, err := Replay(trace, arrivals, policies[0])
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]float64{
		20: (20 + 61.0/3) / 2, // two arrivals
		37: 37,                // 1,110
		54: 161.0 / 3,         // 1,610
		87: 87,                // three, all of them placed
		88: 87,                // one that was not
	}
	got := map[int]float64{}
	for b, held := range run.Allocated {
		if !math.IsNaN(held) {
			got[b] = held
		}
	}
	close := cmpopts.EquateApprox(0, 1e-9)
	if diff := cmp.Diff(want, got, close); diff != "" {
		t.Errorf("held, by arrived (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{263.0 / 3, 1063.0 / 3, 7}, []float64{run.First, run.First8, float64(run.Placed)}, close); diff != "" {
		t.Errorf("first refusal, first of 8 cards, placed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[Shape]int{{CPU: 1000, Cards: 1, Milli: 20}: 1, {Cards: 8, Milli: 1000}: 1}, run.Failed); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
}

// A pod without cards that finds no room is counted, but is not the first refusal.
func TestFirstRefusalIsOfAPodWithCards(t *testing.T) {
	trace := &Trace{Nodes: []Node{{"n", 1000, 1000, 1, "T4"}}}
	policies, err := Policies([]string{"bestfit"})
	if err != nil {
		t.Fatal(err)
	}
	run, err := Replay(trace, Arrivals{Rank: []int{0}, Pods: []Pod{{Shape: Shape{CPU: 2000}}, {Shape: Shape{Memory: 1001}}}}, policies[0])
	if err != nil {
		t.Fatal(err)
	}
	if !math.IsNaN(run.First) || !math.IsNaN(run.First8) || run.failed(func(s Shape) bool { return s.Kind() == KindCPU }) != 2 {
		t.Errorf("run = %+v", run)
	}
}
