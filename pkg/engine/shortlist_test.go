package engine

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/policy"
)

// naming returns the cluster under a policy with a shortlist of that length.
func (c cluster) naming(most int) cluster {
	settings := policy.Default()
	settings.Shortlist = most
	pipe := settings.Pipeline()
	c.cfg.Pipeline = func() *pipeline.Pipeline { return pipe }
	c.Engine = New(c.cfg)
	return c
}

func TestShortlist(t *testing.T) {
	nodes := []gpu.NodeID{"n3", "n4", "n1", "n9", "n2"} // by score: n1, n2 and n4 alike, n3, which is full
	preferred := pod("a", slice(100))
	preferred.SoftPreferences = true
	taint := func(c cluster) {
		c.ledger.SetNode(ledger.Facts{ID: "n4", Cards: cards("n4", 2), PreferNoSchedule: true})
	}
	tests := map[string]struct {
		most    int
		request gpu.Request
		change  func(cluster)
		want    []gpu.NodeID
	}{
		"the best, in the order asked":       {most: 2, request: pod("a", slice(100)), want: []gpu.NodeID{"n1", "n2"}},
		"of equals the first by name":        {most: 1, request: pod("a", slice(100)), change: func(c cluster) { mustReserve(c, "b", "n1-d0") }, want: []gpu.NodeID{"n1"}},
		"as many as fit":                     {most: 4, request: pod("a", slice(100)), want: []gpu.NodeID{"n4", "n1", "n2"}},
		"all":                                {most: 0, request: pod("a", slice(100)), want: []gpu.NodeID{"n4", "n1", "n2"}},
		"the pod has soft preferences":       {most: 1, request: preferred, want: []gpu.NodeID{"n4", "n1", "n2"}},
		"a node is tainted PreferNoSchedule": {most: 1, request: pod("a", slice(100)), change: taint, want: []gpu.NodeID{"n4", "n1", "n2"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := loaded().naming(tc.most)
			if tc.change != nil {
				tc.change(c)
			}
			for range 2 { // the second answer comes from memory
				got := c.Filter(&tc.request, nodes)
				if diff := gocmp.Diff(tc.want, got.Feasible); diff != "" {
					t.Errorf("feasible (-want +got):\n%s", diff)
				}
				var refused []gpu.NodeID
				for _, r := range got.Refused {
					refused = append(refused, r.Node)
				}
				if diff := gocmp.Diff([]gpu.NodeID{"n3", "n9"}, refused); diff != "" {
					t.Errorf("refused (-want +got):\n%s", diff)
				}
				if got.Fit != 3 {
					t.Errorf("%d fit, want 3", got.Fit)
				}
			}
		})
	}
}

// Whatever the shortlist leaves out, it never leaves out a better node than one
// that it names: Score, asked about all, would have chosen from it.
func TestShortlistHasTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, r, all := drawCluster(t)
		most := rapid.IntRange(1, 4).Draw(t, "most")
		every := c.naming(0).Filter(&r, all).Feasible
		some := c.naming(most)
		for range 2 {
			if got, want := some.Filter(&r, all).Feasible, best(c.Score(&r, every), most); !slices.Equal(got, want) {
				t.Fatalf("named %v, want %v", got, want)
			}
		}
	})
}

// best names the first of them by score, in the order given.
func best(scored []Scored, most int) (ids []gpu.NodeID) {
	least := slices.SortedFunc(slices.Values(scored), func(a, b Scored) int { return cmp.Compare(b.Score, a.Score) })
	if len(least) > most {
		least = least[:most]
	}
	for _, s := range scored {
		if slices.ContainsFunc(least, func(l Scored) bool { return l.Node == s.Node }) {
			ids = append(ids, s.Node)
		}
	}
	return ids
}

// A score that is remembered is that of the node as it is.
func TestShortlistFollowsTheNodes(t *testing.T) {
	c := newCluster(2, 2, 2).naming(1)
	r := pod("a", slice(100))
	nodes := []gpu.NodeID{"n1", "n2", "n3"}
	for i, want := range nodes {
		if got := c.Filter(&r, nodes).Feasible; !slices.Equal(got, []gpu.NodeID{want}) {
			t.Errorf("named %v, want %s", got, want)
		}
		mustReserve(c, gpu.PodID(fmt.Sprint(i)), gpu.CardID(want+"-d0"))
	}
}
