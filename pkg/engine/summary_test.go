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
			Summary{Nodes: 5, Counts: []Count{{Reason: gpu.InsufficientGPUMemory, Nodes: 3, Have: 6144, Want: 10000, Best: "n2"}, {Reason: gpu.DeviceTypeMismatch, Nodes: 2, Want: 1, Best: "n4"}}},
			"0/5 nodes: 3 InsufficientGPUMemory (most free: 6144 of 10000 MiB on n2), 2 DeviceTypeMismatch",
			"DeviceTypeMismatch,InsufficientGPUMemory",
		},
		"each unit": {
			Summary{Nodes: 3, Counts: []Count{{Reason: gpu.InsufficientGPUCores, Nodes: 1, Want: 30, Best: "n1"}, {Reason: gpu.InsufficientGPUCount, Nodes: 1, Have: 3, Want: 4, Best: "n2"}, {Reason: gpu.InsufficientGPUSlots, Nodes: 1, Want: 1, Best: "n3"}}},
			"0/3 nodes: 1 InsufficientGPUCores (most free: 0 of 30 percent on n1), 1 InsufficientGPUCount (most free: 3 of 4 cards on n2), 1 InsufficientGPUSlots (most free: 0 of 1 slots on n3)",
			"InsufficientGPUCores,InsufficientGPUCount,InsufficientGPUSlots",
		},
		"what is measured": {
			Summary{Nodes: 3, Counts: []Count{{Reason: gpu.Overheated, Nodes: 2, Have: 81, Want: 79, Best: "n2", Gauge: gpu.CardTemperature}, {Reason: gpu.LoadThresholdExceeded, Nodes: 1, Have: 93, Want: 90, Best: "n1", Gauge: gpu.NodeCPU}}},
			"0/3 nodes: 2 Overheated (lowest: GPU temperature 81 °C, allowed below 79 on n2), 1 LoadThresholdExceeded (lowest: CPU of the node 93 percent, allowed below 90 on n1)",
			"LoadThresholdExceeded,Overheated",
		},
		"memory that nobody holds": {
			Summary{Nodes: 1, Counts: []Count{{Reason: gpu.InsufficientGPUMemory, Nodes: 1, Have: 6144, Want: 10000, Best: "n2", Foreign: 2048}}},
			"0/1 nodes: 1 InsufficientGPUMemory (most free: 6144 of 10000 MiB on n2; 2048 MiB there are used beyond what pods hold)",
			"InsufficientGPUMemory",
		},
		"no figures": {
			Summary{Nodes: 2, Counts: []Count{{Reason: gpu.NodeUnavailable, Nodes: 2, Best: "n1"}}},
			"0/2 nodes: 2 NodeUnavailable", "NodeUnavailable",
		},
		"some were not offered": {
			Summary{Nodes: 7, Unoffered: 5, Counts: []Count{{Reason: gpu.NodeUnavailable, Nodes: 2, Best: "n1"}}},
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
	cards, memory := cardLimit(4), memoryLimit(1000)
	over := func(node gpu.NodeID, l *gpu.Limit, used, asked int64) refusal {
		return refusal{node, pipeline.Verdict{Reason: gpu.QuotaExceeded, Have: used, Want: asked, Limit: l}}
	}
	beside := func(node gpu.NodeID, have, want, closed int64) refusal {
		return refusal{node, pipeline.Verdict{Reason: gpu.NoTenantEligibleGPU, Have: have, Want: want, Closed: closed}}
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
			[]Count{{Reason: gpu.InsufficientGPUCores, Nodes: 2, Best: "b"}, {Reason: gpu.InsufficientGPUCount, Nodes: 1, Best: "a"}},
		},
		"of those that pass by waiting": {
			[]refusal{plain("a", gpu.InsufficientGPUCount), plain("b", gpu.DeviceTypeMismatch), plain("c", gpu.DeviceTypeMismatch)},
			gpu.InsufficientGPUCount,
			[]Count{{Reason: gpu.DeviceTypeMismatch, Nodes: 2, Best: "b"}, {Reason: gpu.InsufficientGPUCount, Nodes: 1, Best: "a"}},
		},
		"none passes by waiting": {
			[]refusal{plain("a", gpu.NodeUnavailable), plain("b", gpu.DeviceTypeMismatch), plain("c", gpu.DeviceTypeMismatch)},
			gpu.DeviceTypeMismatch,
			[]Count{{Reason: gpu.DeviceTypeMismatch, Nodes: 2, Best: "b"}, {Reason: gpu.NodeUnavailable, Nodes: 1, Best: "a"}},
		},
		"a tie goes by name": {
			[]refusal{plain("a", gpu.InsufficientGPUSlots), plain("b", gpu.InsufficientGPUCores)},
			gpu.InsufficientGPUCores,
			[]Count{{Reason: gpu.InsufficientGPUCores, Nodes: 1, Best: "b"}, {Reason: gpu.InsufficientGPUSlots, Nodes: 1, Best: "a"}},
		},
		"the node that comes nearest": {
			[]refusal{short("a", 5, 10), short("b", 7, 10), short("c", 6, 10)}, gpu.InsufficientGPUMemory,
			[]Count{{Reason: gpu.InsufficientGPUMemory, Nodes: 3, Have: 7, Want: 10, Best: "b"}},
		},
		"nearest by its share of what is asked there": {
			[]refusal{short("a", 900, 1000), short("b", 1000, 4000)}, gpu.InsufficientGPUMemory,
			[]Count{{Reason: gpu.InsufficientGPUMemory, Nodes: 2, Have: 900, Want: 1000, Best: "a"}},
		},
		"equally near goes by name": {
			[]refusal{short("c", 7, 10), short("b", 7, 10), short("d", 7, 10)}, gpu.InsufficientGPUMemory,
			[]Count{{Reason: gpu.InsufficientGPUMemory, Nodes: 3, Have: 7, Want: 10, Best: "b"}},
		},
		"a quota, where nothing else is in the way": {
			[]refusal{plain("a", gpu.InsufficientGPUCount), plain("b", gpu.InsufficientGPUCount), over("c", &cards, 4, 1)}, gpu.QuotaExceeded,
			[]Count{{Reason: gpu.InsufficientGPUCount, Nodes: 2, Best: "a"}, {Reason: gpu.QuotaExceeded, Nodes: 1, Have: 4, Want: 1, Best: "c", Limit: &cards}},
		},
		"the node that would pass a quota by least": {
			[]refusal{over("a", &memory, 0, 1500), over("b", &memory, 0, 1200), over("c", &memory, 0, 1300)}, gpu.QuotaExceeded,
			[]Count{{Reason: gpu.QuotaExceeded, Nodes: 3, Want: 1200, Best: "b", Limit: &memory}},
		},
		"closed cards are added up": {
			[]refusal{beside("a", 0, 2, 4), beside("b", 1, 2, 3), beside("c", 0, 2, 5)}, gpu.NoTenantEligibleGPU,
			[]Count{{Reason: gpu.NoTenantEligibleGPU, Nodes: 3, Have: 1, Want: 2, Best: "b", Closed: 12}},
		},
		"none has anything": {
			[]refusal{short("c", 0, 10), short("b", 0, 20)}, gpu.InsufficientGPUMemory,
			[]Count{{Reason: gpu.InsufficientGPUMemory, Nodes: 2, Want: 20, Best: "b"}},
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
