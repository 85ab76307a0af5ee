package engine

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

func TestFilter(t *testing.T) {
	c := newCluster(1, 2, 1, 0)
	mustReserve(c, "earlier", "n1-d0")
	r := pod("a", whole(1))
	got := c.Filter(&r, []gpu.NodeID{"n3", "n9", "n1", "n2", "n4"})
	want := Filtered{
		Feasible: []gpu.NodeID{"n3", "n2"},
		Fit:      2,
		Refused: []Refused{
			{"n9", pipeline.Verdict{Reason: gpu.NodeNotRegistered}},
			{"n1", pipeline.Verdict{Reason: gpu.InsufficientGPUCount, Want: 1}},
			{"n4", pipeline.Verdict{Reason: gpu.NodeNotRegistered}},
		},
		Reason: gpu.InsufficientGPUCount,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("filtered (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]gpu.PodID{"earlier"}, c.ledger.Pods()); diff != "" {
		t.Errorf("filter has changed the ledger (-want +got):\n%s", diff)
	}
}

// When no node asked about fits, the whole cluster says why.
func TestFilterLooksAtTheWholeCluster(t *testing.T) {
	c := newCluster(1, 1, 1, 1, 0)
	for _, id := range []gpu.NodeID{"n1", "n2"} {
		all := cards(id, 1)
		all[0].Vendor = gpu.Ascend
		c.ledger.SetNode(ledger.Facts{ID: id, Cards: all})
	}
	r := pod("a", slice(901))
	r.Vendor = gpu.Nvidia
	got := c.Filter(&r, []gpu.NodeID{"n1"})
	want := Filtered{
		Feasible: []gpu.NodeID{},
		Refused:  []Refused{{"n1", pipeline.Verdict{Reason: gpu.DeviceTypeMismatch, Want: 1}}},
		Reason:   gpu.InsufficientGPUMemory,
		Summary: Summary{Nodes: 5, Counts: []Count{
			{Reason: gpu.DeviceTypeMismatch, Nodes: 2, Want: 1, Best: "n1"},
			{Reason: gpu.InsufficientGPUMemory, Nodes: 2, Have: 900, Want: 901, Best: "n3"},
			{Reason: gpu.NodeNotRegistered, Nodes: 1, Best: "n5"},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("filtered (-want +got):\n%s", diff)
	}
}

// A node that would do but was not asked about is said to be there.
func TestFilterCountsUnofferedNodes(t *testing.T) {
	c := newCluster(1, 1, 1)
	mustReserve(c, "earlier", "n1-d0")
	r := pod("a", whole(1))
	got := c.Filter(&r, []gpu.NodeID{"n1"})
	want := Summary{Nodes: 3, Unoffered: 2, Counts: []Count{{Reason: gpu.InsufficientGPUCount, Nodes: 1, Want: 1, Best: "n1"}}}
	if diff := cmp.Diff(want, got.Summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

// Nodes that the cache does not know (yet) say nothing about the pod.
func TestFilterOfUnknownNodes(t *testing.T) {
	tests := map[string]struct {
		perNode []int
		asked   []gpu.NodeID
		want    gpu.Reason
	}{
		"nothing is known":                    {nil, []gpu.NodeID{"x", "y"}, gpu.NodeNotRegistered},
		"what is known would do":              {[]int{1}, []gpu.NodeID{"x", "y"}, gpu.NodeNotRegistered},
		"what is known counts, not the three": {[]int{0, 0}, []gpu.NodeID{"x", "y", "z"}, gpu.NodeNotRegistered},
		"nothing is asked":                    {nil, nil, gpu.NoSchedulableNodes},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(tc.perNode...)
			r := pod("a", whole(1))
			got := c.Filter(&r, tc.asked)
			if got.Reason != tc.want || len(got.Refused) != len(tc.asked) {
				t.Errorf("%d refused for %s, want %d for %s", len(got.Refused), got.Reason, len(tc.asked), tc.want)
			}
			if got.Summary.Nodes != len(tc.perNode) {
				t.Errorf("%d nodes in the summary, want %d", got.Summary.Nodes, len(tc.perNode))
			}
		})
	}
}

// What an earlier bind holds for the pod itself, its outcome unknown, is not in
// the pod's way: only the next bind finds out, so it has to get there.
func TestFilterOfPodWithHold(t *testing.T) {
	c := newCluster(1)
	mustReserve(c, "a", "n1-d0")
	r, other := pod("a", whole(1)), pod("b", whole(1))
	if got := c.Filter(&r, []gpu.NodeID{"n1"}); len(got.Feasible) != 1 {
		t.Errorf("refused for %s because of itself", got.Reason)
	}
	if got := c.Filter(&other, []gpu.NodeID{"n1"}); len(got.Feasible) != 0 {
		t.Error("another pod is offered the card")
	}
	if got := c.Score(&r, []gpu.NodeID{"n1"}); got[0].Total != 100 {
		t.Errorf("score %v, want that of an empty node", got[0].Total)
	}
	h, _ := c.ledger.Hold("a")
	c.ledger.Confirm(h.Placement)
	if got := c.Filter(&r, []gpu.NodeID{"n1"}); len(got.Feasible) != 0 {
		t.Error("what a bound pod has is offered")
	}
}

// The text in FailedNodes becomes the pod's condition, and each change of that
// wakes the pod at once: it must not depend on which nodes, and in which order,
// kube-scheduler happened to draw.
func TestFilterReasonIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, r, all := drawCluster(t)
		first := c.Filter(&r, c.infeasible(&r, all))
		for range 5 {
			some := rapid.SliceOfDistinct(rapid.SampledFrom(append(all, "unknown")), rapid.ID).Draw(t, "asked")
			got := c.Filter(&r, some)
			known := 0
			for _, id := range some {
				if id != "unknown" {
					known++
				}
			}
			if len(got.Feasible) > 0 || known == 0 {
				continue
			}
			if got.Reason != first.Reason {
				t.Fatalf("asked about %v: %s, about all that do not fit: %s", some, got.Reason, first.Reason)
			}
			if got.Summary.String() != first.Summary.String() || got.Summary.Codes() != first.Summary.Codes() {
				t.Fatalf("asked about %v: %s, about all that do not fit: %s", some, got.Summary, first.Summary)
			}
		}
	})
}

// infeasible returns the nodes that do not fit.
func (c cluster) infeasible(r *gpu.Request, all []gpu.NodeID) (out []gpu.NodeID) {
	for _, f := range c.Filter(r, all).Refused {
		out = append(out, f.Node)
	}
	return out
}

func drawCluster(t *rapid.T) (cluster, gpu.Request, []gpu.NodeID) {
	c := newCluster()
	var all []gpu.NodeID
	for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
		id := gpu.NodeID(fmt.Sprintf("n%d", i))
		all = append(all, id)
		f := ledger.Facts{ID: id, Cards: cards(id, rapid.IntRange(0, 2).Draw(t, "cards"))}
		f.Unavailable = rapid.IntRange(0, 5).Draw(t, "away") == 0
		for j := range f.Cards {
			f.Cards[j].Vendor = rapid.SampledFrom([]gpu.Vendor{gpu.Nvidia, gpu.Nvidia, gpu.Ascend}).Draw(t, "vendor")
			f.Cards[j].Usable = rapid.SampledFrom([]gpu.MiB{100, 300, 500}).Draw(t, "usable")
			f.Cards[j].Healthy = rapid.IntRange(0, 4).Draw(t, "ill") != 0
		}
		c.ledger.SetNode(f)
		if len(f.Cards) > 0 && rapid.Bool().Draw(t, "held") {
			whole := rapid.Bool().Draw(t, "whole")
			c.ledger.Confirm(gpu.Placement{Pod: gpu.PodID(id), Node: id, Namespace: rapid.SampledFrom([]string{"ns", "other"}).Draw(t, "namespace"),
				Grants: []gpu.Grant{{Shares: []gpu.Share{{Card: f.Cards[0].ID, Memory: 100, Cores: 100, Exclusive: whole}}}}})
		}
	}
	r := pod("a", slice(rapid.SampledFrom([]gpu.MiB{200, 400, 600}).Draw(t, "memory")))
	r.Vendor = rapid.SampledFrom([]gpu.Vendor{"", gpu.Nvidia}).Draw(t, "gpu-type")
	return c, r, all
}
