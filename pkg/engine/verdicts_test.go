package engine

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/policy"
)

// What is remembered of nodes must never be told of another state of theirs:
// whatever happens, an engine that has answered before and one that has not
// answer alike.
func TestRememberedVerdictsAreTrue(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := newCluster(3, 2, 1, 2)
	nodes := []gpu.NodeID{"n1", "n2", "n3", "n4", "n5"}
	asks := []gpu.Ask{whole(1), whole(2), slice(100), slice(300), slice(900)}
	for step := range 2000 {
		c.change(random, step, nodes)
		r := pod("asks", asks[random.IntN(len(asks))])
		r.Namespace = []string{"red", "blue"}[random.IntN(2)]
		if random.IntN(4) == 0 {
			r.NotCards = []gpu.CardID{"n1-d0"}
		}
		fresh := New(c.cfg)
		if diff := cmp.Diff(fresh.Filter(&r, nodes), c.Filter(&r, nodes)); diff != "" {
			t.Fatalf("step %d, %+v (-fresh +remembering):\n%s", step, r, diff)
		}
	}
}

// change does something to a node or a pod.
func (c cluster) change(random *rand.Rand, step int, nodes []gpu.NodeID) {
	node := nodes[random.IntN(len(nodes))]
	name := fmt.Sprintf("p%d", random.IntN(12))
	switch random.IntN(6) {
	case 0:
		c.ledger.SetNode(ledger.Facts{ID: node, Cards: cards(node, 1+random.IntN(3)), Unavailable: random.IntN(3) == 0})
	case 1:
		c.ledger.RemoveNode(node)
	case 2:
		c.ledger.Fence(map[gpu.NodeID][]gpu.CardID{node: {gpu.CardID(string(node) + "-d0")}})
	case 3:
		c.ledger.Release(gpu.PodID(name))
	default:
		share := gpu.Share{Card: gpu.CardID(string(node) + "-d0"), Vendor: gpu.Nvidia, Memory: 100, Cores: 10}
		c.ledger.Confirm(gpu.Placement{Pod: gpu.PodID(name), Node: node, Namespace: "red", Grants: []gpu.Grant{{Container: "c0", Shares: []gpu.Share{share}}}})
	}
}

// Another policy says other things of the same nodes.
func TestVerdictsAreThoseOfThePolicy(t *testing.T) {
	c := newCluster(1)
	current := c.cfg.Pipeline()
	c.Engine = New(Config{Ledger: c.ledger, Now: time.Now, Pods: c.server, Binder: c.server, Pipeline: func() *pipeline.Pipeline { return current }})
	r := pod("a", whole(1))
	feasible := func() int { return len(c.Filter(&r, []gpu.NodeID{"n1"}).Feasible) }
	if feasible() != 1 {
		t.Fatal("the node does not fit")
	}
	current = pipeline.New(pipeline.Config{Filters: []pipeline.Filter{nothing{}}})
	if feasible() != 0 {
		t.Error("the old policy's verdict is told under the new one")
	}
	current = policy.Default().Pipeline()
	if feasible() != 1 {
		t.Error("the verdict of the policy between is told")
	}
}

// The memory is bounded, and safe for many at once.
func TestVerdictsAreBounded(t *testing.T) {
	c := newCluster(2, 2)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 3 * mostShapes {
				r := pod("a", slice(gpu.MiB(1+i)))
				if f := c.Filter(&r, []gpu.NodeID{"n1", "n2"}); len(f.Feasible) != 2 {
					t.Errorf("feasible %v", f.Feasible)
				}
			}
		})
	}
	all.Wait()
	if n := len(c.verdicts.shapes); n != mostShapes {
		t.Errorf("%d shapes are remembered, want %d", n, mostShapes)
	}
}
