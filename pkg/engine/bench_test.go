package engine

import (
	"fmt"
	"testing"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
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

// BenchmarkFilterBesideKept asks about a cluster where services keep cards of one node in
// five, for a pod from whom all is kept. At most 0.5 ms more is wanted than where nothing
// is. The pods end by turns before and after in the last of them, and so remember nothing of
// those nodes for each other.
func BenchmarkFilterBesideKept(b *testing.B) {
	const nodes = 1000
	now := time.Now()
	r, short := pod("a", slice(500)), lasting(time.Minute, pod("b", slice(500)))
	for _, what := range []string{"nothing kept", "kept", "kept by turns"} {
		c, ids := pool(nodes)
		c.cfg.Now = func() time.Time { return now }
		if what != "nothing kept" {
			for i := 0; i < nodes; i += 50 { // ten nodes of each service
				s := ledger.Service{Group: gpu.GroupID(fmt.Sprint("service-", i)), From: now.Add(time.Hour)}
				for _, id := range ids[i : i+10] {
					for card := 4; card < 8; card++ {
						share := alone
						share.Card = gpu.CardID(fmt.Sprintf("%s-d%d", id, card))
						s.Kept = append(s.Kept, gpu.Placement{Pod: gpu.PodID(share.Card), Namespace: "ns", Node: id, Group: s.Group, Grants: []gpu.Grant{{Shares: []gpu.Share{share}}}})
					}
				}
				c.ledger.SetService(s)
			}
		}
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if what == "kept by turns" && i%2 == 1 {
					c.Filter(&short, ids)
				} else {
					c.Filter(&r, ids)
				}
			}
		})
	}
}

// BenchmarkFilterBeforeClosings asks for a pod that fits nowhere, while services that close this evening
// are on one node in five and leave room for none.
func BenchmarkFilterBeforeClosings(b *testing.B) {
	const nodes = 1000
	now := time.Now()
	r := lasting(time.Minute, pod("a", whole(9)))
	for _, services := range []int{0, 20, 200} {
		c, ids := pool(nodes)
		c.cfg.Now = func() time.Time { return now }
		for i := range services {
			g := gpu.GroupID(fmt.Sprintf("service-%d", i))
			for k := i; k < nodes; k += 100 {
				id := ids[k]
				c.ledger.Confirm(gpu.Placement{Pod: gpu.PodID(fmt.Sprint(g, k)), Node: id, Namespace: "ns", Group: g, Grants: []gpu.Grant{{Shares: []gpu.Share{{Card: gpu.CardID(id) + "-d7", Memory: 300}}}}})
			}
			c.ledger.SetService(ledger.Service{Group: g, Closing: &ledger.Closing{At: now.Add(time.Hour), Until: now.Add(2 * time.Hour)}})
		}
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Filter(&r, ids)
			}
		})
	}
}
