package simulate

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// With seed 42 the number that is dropped and the shuffle of four pods leave them in
// the order 2, 3, 1, 0. What is drawn after that is said at the cases.
func TestArrive(t *testing.T) {
	one := Node{"n", 1000, 1000, 1, "T4"}
	part := func(name string, milli int) Pod { return Pod{name, Shape{Cards: 1, Milli: milli}} }
	two, none := Pod{"p1", Shape{Cards: 2, Milli: 1000}}, Pod{"p2", Shape{CPU: 1}}
	tests := map[string]struct {
		nodes []Node
		pods  []Pod
		want  []string
		rank  []int
	}{
		// Of 2,600 to 3,900: 3 is drawn, and 2,700 asked for; 1, of which one card is
		// counted, and 4,700 asked for; 1 again, which would be too much. Then the ranks.
		"too few": {
			[]Node{one, one, one}, []Pod{part("p0", 500), two, none, part("p3", 100)},
			[]string{"p2", "p3", "p1", "p0", "p3", "p1"}, []int{1, 2, 0},
		},
		// Of 1,900 to 1,300: of 4 places 3 is drawn, which leaves 1,400, and of 3 places
		// 1, which leaves 1,000.
		"too many": {
			[]Node{one}, []Pod{part("p0", 500), part("p1", 1000), none, part("p3", 400)},
			[]string{"p2", "p1"}, []int{0},
		},
		"nobody asks for cards": {[]Node{one}, []Pod{{Name: "p0"}}, []string{"p0"}, []int{0}},
		"nobody":                {[]Node{one}, nil, nil, []int{0}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := Arrive(&Trace{Nodes: tc.nodes, Pods: tc.pods}, 42)
			var got []string
			for _, p := range a.Pods {
				got = append(got, p.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.rank, a.Rank); diff != "" {
				t.Errorf("ranks (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever the trace: as much comes as was promised, to within the largest pod, and
// another seed makes other arrivals of the same trace, which stays as it is.
func TestArriveFills(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 200 {
		trace := someTrace(r, 1+r.Intn(5), 1+r.Intn(60))
		before := cmp.Diff(trace, &Trace{})
		a := Arrive(trace, r.Int63())
		most := overload * float64(trace.Capacity())
		if sum := float64(asked(a.Pods)); asked(trace.Pods) > 0 && (sum > most+7*wholeCard || sum < most-8*wholeCard) {
			t.Errorf("%g is asked for, of %g", sum, most)
		}
		if cmp.Diff(trace, &Trace{}) != before {
			t.Error("the trace has changed")
		}
	}
}

// someTrace draws a trace of two models of cards.
func someTrace(r *rand.Rand, nodes, pods int) *Trace {
	t := &Trace{Name: "some"}
	models := []string{"T4", "V100M16", "V100M32"}
	for range nodes {
		t.Nodes = append(t.Nodes, Node{"n", 32000, 65536, 1 << r.Intn(4), models[r.Intn(3)]})
	}
	for i := range pods {
		s := Shape{CPU: 1000, Memory: 2048}
		switch s.Cards = []int{0, 1, 1, 1, 2, 4, 8}[r.Intn(7)]; {
		case s.Cards == 1:
			s.Milli = 100 * (1 + r.Intn(10))
		case s.Cards > 1:
			s.Milli = wholeCard
		}
		if s.Cards > 0 {
			s.Models = []string{"", "", "T4", "V100M16|V100M32"}[r.Intn(4)]
		}
		s.CPU *= gpu.MilliCPU(1 + 3*r.Intn(3))
		t.Pods = append(t.Pods, Pod{string(nodeID(i)), s})
	}
	return t
}
