package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

func TestSummaryText(t *testing.T) {
	tests := map[string]struct {
		summary Summary
		text    string
		codes   string
	}{
		"as in the design": {
			Summary{Nodes: 5, Counts: []Count{{gpu.InsufficientGPUMemory, 3, 6144, 10000, "n2"}, {gpu.DeviceTypeMismatch, 2, 0, 1, "n4"}}},
			"0/5 nodes: 3 InsufficientGPUMemory (most free: 6144 of 10000 MiB on n2), 2 DeviceTypeMismatch",
			"DeviceTypeMismatch,InsufficientGPUMemory",
		},
		"each unit": {
			Summary{Nodes: 3, Counts: []Count{{gpu.InsufficientGPUCores, 1, 0, 30, "n1"}, {gpu.InsufficientGPUCount, 1, 3, 4, "n2"}, {gpu.InsufficientGPUSlots, 1, 0, 1, "n3"}}},
			"0/3 nodes: 1 InsufficientGPUCores (most free: 0 of 30 percent on n1), 1 InsufficientGPUCount (most free: 3 of 4 cards on n2), 1 InsufficientGPUSlots (most free: 0 of 1 slots on n3)",
			"InsufficientGPUCores,InsufficientGPUCount,InsufficientGPUSlots",
		},
		"no figures": {
			Summary{Nodes: 2, Counts: []Count{{gpu.NodeUnavailable, 2, 0, 0, "n1"}}},
			"0/2 nodes: 2 NodeUnavailable", "NodeUnavailable",
		},
		"some were not offered": {
			Summary{Nodes: 7, Unoffered: 5, Counts: []Count{{gpu.NodeUnavailable, 2, 0, 0, "n1"}}},
			"0/7 nodes: 2 NodeUnavailable, 5 with room that kube-scheduler did not offer (taints, CPU, affinity or its sample)", "NodeUnavailable",
		},
		"all were not offered": {
			Summary{Nodes: 5, Unoffered: 5},
			"0/5 nodes: 5 with room that kube-scheduler did not offer (taints, CPU, affinity or its sample)", "",
		},
		"no nodes": {Summary{}, "0/0 nodes", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.text, tc.summary.String()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.codes, tc.summary.Codes()); diff != "" {
				t.Errorf("codes (-want +got):\n%s", diff)
			}
		})
	}
}

type refusal struct {
	node gpu.NodeID
	v    pipeline.Verdict
}

func TestTally(t *testing.T) {
	short := func(node gpu.NodeID, have, want int64) refusal {
		return refusal{node, pipeline.Verdict{Reason: gpu.InsufficientGPUMemory, Have: have, Want: want}}
	}
	plain := func(node gpu.NodeID, r gpu.Reason) refusal { return refusal{node, pipeline.Verdict{Reason: r}} }
	tests := map[string]struct {
		refused  []refusal
		dominant gpu.Reason
		counts   []Count
	}{
		"nothing": {nil, gpu.NoSchedulableNodes, nil},
		"the most frequent": {
			[]refusal{plain("a", gpu.InsufficientGPUCount), plain("b", gpu.InsufficientGPUCores), plain("c", gpu.InsufficientGPUCores)},
			gpu.InsufficientGPUCores,
			[]Count{{gpu.InsufficientGPUCores, 2, 0, 0, "b"}, {gpu.InsufficientGPUCount, 1, 0, 0, "a"}},
		},
		"of those that pass by waiting": {
			[]refusal{plain("a", gpu.InsufficientGPUCount), plain("b", gpu.DeviceTypeMismatch), plain("c", gpu.DeviceTypeMismatch)},
			gpu.InsufficientGPUCount,
			[]Count{{gpu.DeviceTypeMismatch, 2, 0, 0, "b"}, {gpu.InsufficientGPUCount, 1, 0, 0, "a"}},
		},
		"none passes by waiting": {
			[]refusal{plain("a", gpu.NodeUnavailable), plain("b", gpu.DeviceTypeMismatch), plain("c", gpu.DeviceTypeMismatch)},
			gpu.DeviceTypeMismatch,
			[]Count{{gpu.DeviceTypeMismatch, 2, 0, 0, "b"}, {gpu.NodeUnavailable, 1, 0, 0, "a"}},
		},
		"a tie goes by name": {
			[]refusal{plain("a", gpu.InsufficientGPUSlots), plain("b", gpu.InsufficientGPUCores)},
			gpu.InsufficientGPUCores,
			[]Count{{gpu.InsufficientGPUCores, 1, 0, 0, "b"}, {gpu.InsufficientGPUSlots, 1, 0, 0, "a"}},
		},
		"the node that comes nearest": {
			[]refusal{short("a", 5, 10), short("b", 7, 10), short("c", 6, 10)}, gpu.InsufficientGPUMemory,
			[]Count{{gpu.InsufficientGPUMemory, 3, 7, 10, "b"}},
		},
		"nearest by its share of what is asked there": {
			[]refusal{short("a", 900, 1000), short("b", 1000, 4000)}, gpu.InsufficientGPUMemory,
			[]Count{{gpu.InsufficientGPUMemory, 2, 900, 1000, "a"}},
		},
		"equally near goes by name": {
			[]refusal{short("c", 7, 10), short("b", 7, 10), short("d", 7, 10)}, gpu.InsufficientGPUMemory,
			[]Count{{gpu.InsufficientGPUMemory, 3, 7, 10, "b"}},
		},
		"none has anything": {
			[]refusal{short("c", 0, 10), short("b", 0, 20)}, gpu.InsufficientGPUMemory,
			[]Count{{gpu.InsufficientGPUMemory, 2, 0, 20, "b"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for range 5 { // whatever their order
				var got tally
				for _, i := range rand.Perm(len(tc.refused)) {
					got.add(tc.refused[i].node, tc.refused[i].v)
				}
				if got.dominant() != tc.dominant {
					t.Errorf("dominant %s, want %s", got.dominant(), tc.dominant)
				}
				if diff := cmp.Diff(tc.counts, got.summary().Counts); diff != "" {
					t.Errorf("counts (-want +got):\n%s", diff)
				}
			}
		})
	}
}
