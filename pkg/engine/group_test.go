package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/policy"
	"heteroflow.io/heteroflow/pkg/topology"
)

// racked has so many nodes in each of three racks, with four cards each, and scores
// as by default.
func racked(perRack int) cluster {
	c := newCluster()
	for i := range 3 * perRack {
		id := gpu.NodeID(fmt.Sprintf("n%d", i+1))
		c.ledger.SetNode(inRack(id, i%3))
	}
	cfg, pipe := c.cfg, policy.Default().Pipeline()
	cfg.Pipeline = func() *pipeline.Pipeline { return pipe }
	c.Engine = New(cfg)
	return c
}

func inRack(id gpu.NodeID, rack int) ledger.Facts {
	return ledger.Facts{ID: id, Cards: cards(id, 4), Location: topology.Location{Zone: "z", Rack: fmt.Sprintf("r%d", rack)}}
}

func in(group gpu.GroupID, r gpu.Request) gpu.Request {
	r.Group = group
	return r
}

// A burst of a job's pods ends in one rack: each sees where those before it are
// expected, although none is bound yet.
func TestGroupGathersInOneRack(t *testing.T) {
	c := racked(2)
	nodes := c.all()
	racks := map[string]int{}
	for i := range 8 {
		r := in("job", pod(fmt.Sprintf("p%d", i), whole(1)))
		best := winner(c.Score(&r, nodes))
		n, _ := c.ledger.Snapshot().Node(best)
		racks[n.Location.Rack]++
	}
	if diff := cmp.Diff(map[string]int{"r0": 8}, racks); diff != "" {
		t.Errorf("pods by rack (-want +got):\n%s", diff)
	}
	other := in("other job", pod("q", whole(1)))
	n, _ := c.ledger.Snapshot().Node(winner(c.Score(&other, nodes)))
	if n.Location.Rack == "r0" {
		t.Error("another job goes where that one is")
	}
}

func winner(s []Scored) gpu.NodeID {
	best := s[0]
	for _, n := range s {
		if n.Score > best.Score {
			best = n
		}
	}
	return best.Node
}

// Nearness is a wish: who finds no room beside his group goes elsewhere.
func TestGroupOverflows(t *testing.T) {
	c := racked(1)
	for i := range 12 {
		r := in("job", pod(fmt.Sprintf("p%d", i), whole(1)))
		f := c.Filter(&r, c.all())
		if len(f.Feasible) == 0 {
			t.Fatalf("pod %d is refused: %s", i, f.Reason)
		}
		if len(f.Feasible) > 1 {
			c.Score(&r, f.Feasible)
		}
	}
}

// A score that goes by where a group is must never be told of another moment, nor
// to another group.
func TestRememberedScoresOfGroupsAreTrue(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := racked(2)
	nodes := c.all()
	groups := []gpu.GroupID{"", "g", "h", "nobody's"}
	for step := range 2000 {
		node := nodes[random.IntN(len(nodes))]
		name := fmt.Sprintf("p%d", random.IntN(8))
		switch random.IntN(6) {
		case 0:
			f := inRack(node, random.IntN(3))
			f.RDMA = ledger.RDMA{Stated: random.IntN(2) == 0, Able: true, Gbps: 100}
			c.ledger.SetNode(f)
		case 1:
			c.ledger.Release(gpu.PodID(name))
		case 2:
			share := gpu.Share{Card: gpu.CardID(string(node) + "-d0"), Vendor: gpu.Nvidia, Memory: 100, Cores: 10}
			c.ledger.Confirm(gpu.Placement{
				Pod: gpu.PodID(name), Node: node, Namespace: "ns", Group: groups[random.IntN(len(groups)-1)],
				Grants: []gpu.Grant{{Container: "c0", Shares: []gpu.Share{share}}},
			})
		}
		r := in(groups[random.IntN(len(groups))], pod("asks", slice(100)))
		fresh := New(c.cfg)
		if diff := cmp.Diff(fresh.Score(&r, nodes), c.Score(&r, nodes)); diff != "" {
			t.Fatalf("step %d, group %q (-fresh +remembering):\n%s", step, r.Group, diff)
		}
		if diff := cmp.Diff(fresh.Filter(&r, nodes), c.Filter(&r, nodes)); diff != "" {
			t.Fatalf("step %d, group %q, filter (-fresh +remembering):\n%s", step, r.Group, diff)
		}
		c.hints.drop(r.Pod)
	}
}

// A thousand jobs must not drive each other out of the memory: it holds a few hundred kinds at most.
func TestGroupsAreOneShape(t *testing.T) {
	c := racked(1)
	for i := range 50 {
		r := in(gpu.GroupID(fmt.Sprint(i)), pod("a", whole(1)))
		c.Filter(&r, c.all())
	}
	alone := pod("b", whole(1))
	c.Filter(&alone, c.all())
	if n := len(c.verdicts.shapes); n != 2 {
		t.Errorf("%d shapes are remembered, want 2: with a group and without", n)
	}
}

// A bind leaves the group in the books as the informer will find it.
func TestBindKeepsTheGroup(t *testing.T) {
	c := racked(1)
	r := in("job", pod("a", whole(1)))
	c.server.create(r)
	if _, err := c.Bind(t.Context(), target("a", "n2")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]gpu.NodeID{"n2"}, c.ledger.Snapshot().Members("job")); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}
