package simulate

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPart(t *testing.T) {
	of := func(name, model string) Node { return Node{name, 1000, 1000, 1, model} }
	// Of kinds A, B and C there are 4, 2 and 1.
	nodes := []Node{of("a1", "A"), of("b1", "B"), of("a2", "A"), of("c1", "C"), of("a3", "A"), of("b2", "B"), of("a4", "A")}
	tests := map[string]struct {
		nodes int
		want  []string
	}{
		"all":                        {7, []string{"a1", "b1", "a2", "c1", "a3", "b2", "a4"}},
		"more than there are":        {9, []string{"a1", "b1", "a2", "c1", "a3", "b2", "a4"}},
		"none":                       {0, nil},
		"the largest remainder":      {1, []string{"a1"}},                   // 4/7, 2/7, 1/7
		"one each, and what is over": {3, []string{"a1", "b1", "a2"}},       // 12/7, 6/7, 3/7: one, and one more of A and B
		"a share of less than one":   {4, []string{"a1", "b1", "a2", "c1"}}, // 16/7, 8/7, 4/7
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pods := []Pod{{Name: "p"}}
			part := (&Trace{Name: "some", Nodes: nodes, Pods: pods}).Part(tc.nodes)
			var got []string
			for _, n := range part.Nodes {
				got = append(got, n.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(pods, part.Pods); diff != "" || part.Name != "some" {
				t.Errorf("of %q; pods (-want +got):\n%s", part.Name, diff)
			}
		})
	}
}

// Nodes of the same size are one kind only if they have the same cards.
func TestPartTellsKindsApart(t *testing.T) {
	nodes := []Node{{"a", 1000, 1000, 1, "A"}, {"b", 2000, 1000, 1, "A"}, {"c", 1000, 2000, 1, "A"}, {"d", 1000, 1000, 2, "A"}, {"e", 1000, 1000, 1, "B"}}
	for i := range 2 * len(nodes) {
		nodes = append(nodes, nodes[i])
	}
	part := (&Trace{Nodes: nodes}).Part(5)
	if diff := cmp.Diff(nodes[:5], part.Nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

// Whatever the trace: there are as many nodes as were asked for, and of each kind its
// share, rounded one way or the other.
func TestPartIsLikeTheWhole(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 200 {
		trace := someTrace(r, 1+r.Intn(80), 1)
		want := r.Intn(len(trace.Nodes) + 1)
		part := trace.Part(want)
		if len(part.Nodes) != want {
			t.Fatalf("%d nodes of %d, want %d", len(part.Nodes), len(trace.Nodes), want)
		}
		all, taken := map[Node]int{}, map[Node]int{}
		for _, n := range trace.Nodes {
			all[kindOf(n)]++
		}
		for _, n := range part.Nodes {
			taken[kindOf(n)]++
		}
		for kind, n := range all {
			share := float64(n*want) / float64(len(trace.Nodes))
			if off := float64(taken[kind]) - share; off <= -1 || off >= 1 {
				t.Errorf("%d of %+v, whose share is %.2f", taken[kind], kind, share)
			}
		}
	}
}
