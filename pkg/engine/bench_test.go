package engine

import (
	"fmt"
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/policy"
)

// pool is a cluster of so many nodes with eight cards each, of which every other
// node has two in use, and the names of its nodes.
func pool(nodes int) (cluster, []gpu.NodeID) {
	perNode := make([]int, nodes)
	ids := make([]gpu.NodeID, nodes)
	for i := range perNode {
		perNode[i], ids[i] = 8, gpu.NodeID(fmt.Sprintf("n%d", i+1))
	}
	c := newCluster(perNode...)
	for _, id := range ids[:nodes/2] {
		for card, share := range []gpu.Share{{Memory: 1000, Cores: 100, Exclusive: true}, {Memory: 300, Cores: 30}} {
			share.Card = gpu.CardID(fmt.Sprintf("%s-d%d", id, card))
			c.ledger.Confirm(gpu.Placement{Pod: gpu.PodID(share.Card), Node: id, Namespace: "ns", Grants: []gpu.Grant{{Shares: []gpu.Share{share}}}})
		}
	}
	return c, ids
}

// BenchmarkFilter asks about every node of the cluster, and so does the work for
// a pod that fits nowhere, whatever kube-scheduler's sample is.
func BenchmarkFilter(b *testing.B) {
	requests := map[string]gpu.Request{
		"slice":          pod("a", slice(500)),
		"whole":          pod("a", whole(4)),
		"two containers": pod("a", whole(1), slice(500)),
		"too large":      pod("a", slice(901)),
		"too many":       pod("a", whole(9)),
	}
	for _, nodes := range []int{1000, 5000} {
		c, ids := pool(nodes)
		for _, name := range []string{"slice", "whole", "two containers", "too large", "too many"} {
			r := requests[name]
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					c.Filter(&r, ids)
				}
			})
		}
	}
}

// BenchmarkScore rates every node of the cluster.
func BenchmarkScore(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		c, ids := pool(nodes)
		r := pod("a", slice(500))
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Score(&r, ids)
			}
		})
	}
}

// BenchmarkFilterOfGroup asks for a pod whose group is on 64 nodes in 16 racks,
// under the default policy: its scores are worked out anew each time. Without a
// group most is remembered.
func BenchmarkFilterOfGroup(b *testing.B) {
	const nodes, racks = 1213, 16
	c, ids := pool(nodes)
	cfg, pipe := c.cfg, policy.Default().Pipeline()
	cfg.Pipeline = func() *pipeline.Pipeline { return pipe }
	c.Engine = New(cfg)
	for i, id := range ids {
		f := inRack(id, i%racks)
		f.Cards = cards(id, 8)
		c.ledger.SetNode(f)
		if i < 64 {
			c.ledger.Confirm(gpu.Placement{Pod: "member-" + gpu.PodID(id), Node: id, Namespace: "ns", Group: "job"})
		}
	}
	for _, group := range []gpu.GroupID{"", "nobody's", "job"} {
		b.Run("group="+string(group), func(b *testing.B) {
			r := in(group, pod("a", slice(500)))
			b.ReportAllocs()
			for b.Loop() {
				c.Filter(&r, ids)
			}
		})
	}
}
