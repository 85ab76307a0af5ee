package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Rivals are those with whom the pod cannot be on a card, and nobody else: one of
// them is going to be ended.
func TestRivals(t *testing.T) {
	type pods = []gpu.Placement
	tests := map[string]struct {
		bound pods
		fence gpu.CardID
		want  []gpu.PodID
	}{
		"alone":                           {bound: pods{pod("p", whole("a"))}},
		"on other cards":                  {bound: pods{pod("p", whole("a")), pod("o", whole("b"))}},
		"two whole cards":                 {bound: pods{pod("p", whole("a")), pod("o", whole("a"))}, want: []gpu.PodID{"o"}},
		"a slice on a whole card":         {bound: pods{pod("p", slice("a", 1, 0)), pod("o", whole("a"))}, want: []gpu.PodID{"o"}},
		"a whole card on a slice":         {bound: pods{pod("p", whole("a")), pod("o", slice("a", 1, 0))}, want: []gpu.PodID{"o"}},
		"slices that fit":                 {bound: pods{pod("p", slice("a", 45, 50)), pod("o", slice("a", 45, 50))}},
		"too much memory":                 {bound: pods{pod("p", slice("a", 46, 0)), pod("o", slice("a", 45, 0))}, want: []gpu.PodID{"o"}},
		"too much compute":                {bound: pods{pod("p", slice("a", 1, 51)), pod("o", slice("a", 1, 50))}, want: []gpu.PodID{"o"}},
		"a slot too many":                 {bound: pods{pod("p", slice("a", 1, 0)), pod("m", slice("a", 1, 0)), pod("n", slice("a", 1, 0)), pod("o", slice("a", 1, 0))}, want: []gpu.PodID{"m", "n", "o"}},
		"other tenants":                   {bound: pods{of("u", pod("p", slice("a", 1, 0))), of("v", pod("o", slice("a", 1, 0)))}, want: []gpu.PodID{"o"}},
		"on one of several cards":         {bound: pods{pod("p", whole("a"), whole("b"), whole("c")), pod("o", whole("b"))}, want: []gpu.PodID{"o"}},
		"one rival on several cards":      {bound: pods{pod("p", whole("a"), whole("b")), pod("o", whole("a"), whole("b"))}, want: []gpu.PodID{"o"}},
		"beside one and not the other":    {bound: pods{pod("p", slice("a", 1, 0), whole("b")), pod("m", slice("a", 1, 0)), pod("o", whole("b"))}, want: []gpu.PodID{"o"}},
		"slices that fit on a fence":      {bound: pods{pod("p", slice("a", 45, 0)), pod("o", slice("a", 45, 0))}, fence: "a"},
		"a card that is not listed":       {bound: pods{pod("p", whole("x")), pod("o", whole("x"))}},
		"a node that is not known":        {bound: pods{on("n9", pod("p", whole("a"))), on("n9", pod("o", whole("a")))}},
		"nobody":                          {bound: pods{pod("o", whole("a"))}},
		"one too large for an empty card": {bound: pods{pod("p", slice("a", 91, 0))}},
		"too large, with somebody beside": {bound: pods{pod("p", slice("a", 91, 0)), pod("o", slice("a", 1, 0))}, want: []gpu.PodID{"o"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := world(t)
			for _, p := range tc.bound {
				l.Confirm(p)
			}
			if tc.fence != "" {
				l.Fence(map[gpu.NodeID][]gpu.CardID{"n1": {tc.fence}})
			}
			if diff := cmp.Diff(tc.want, l.Rivals("p")); diff != "" {
				t.Errorf("rivals (-want +got):\n%s", diff)
			}
		})
	}
}

// A hold without an outcome is a rival, and one that lingers too.
func TestRivalsInEveryState(t *testing.T) {
	l := world(t)
	if err := l.Reserve(pod("held", whole("a"))); err != nil {
		t.Fatal(err)
	}
	l.Confirm(pod("gone", whole("b")))
	l.Linger("gone", start)
	l.Confirm(pod("p", whole("a"), whole("b")))
	if diff := cmp.Diff([]gpu.PodID{"held", "gone"}, l.Rivals("p")); diff != "" {
		t.Errorf("rivals (-want +got):\n%s", diff)
	}
}
