package engine

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/demand"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/policy"
)

// What is remembered of nodes must never be told of another state of theirs:
// whatever happens, an engine that has answered before and one that has not
// answer alike. So it is while what is asked for is learned, and scores go by it.
func TestRememberedVerdictsAreTrue(t *testing.T) {
	packing, _ := policy.Preset(policy.Packing)
	packing.Shortlist = 2
	pipe := packing.Pipeline()
	for name, change := range map[string]func(*Config){
		"by default": func(*Config) {},
		"learning":   func(cfg *Config) { cfg.Demand, cfg.Pipeline = demand.New(), func() *pipeline.Pipeline { return pipe } },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(3, 2, 1, 2)
			cfg := c.cfg
			change(&cfg)
			c.Engine = New(cfg)
			c.mustRememberTruly(t)
		})
	}
}

func (c cluster) mustRememberTruly(t *testing.T) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	nodes := []gpu.NodeID{"n1", "n2", "n3", "n4", "n5"}
	asks := []gpu.Ask{whole(1), whole(2), slice(100), slice(300), slice(900), percent(30), {Count: 1, Cores: 20}}
	for step := range 3000 {
		c.change(random, step, nodes)
		r := pod([]string{"asks", "c0", "c1"}[random.IntN(3)], asks[random.IntN(len(asks))])
		r.Namespace = []string{"red", "blue"}[random.IntN(2)]
		if random.IntN(4) == 0 {
			r.NotCards = []gpu.CardID{"n1-d0"}
		}
		c.Learn(&r) // or it would learn of the pod between the two answers, once
		c.look(c.ledger.Snapshot())
		fresh := New(c.cfg)
		if diff := cmp.Diff(fresh.Filter(&r, nodes), c.Filter(&r, nodes)); diff != "" {
			t.Fatalf("step %d, %+v (-fresh +remembering):\n%s", step, r, diff)
		}
		c.hints.drop(r.Pod) // the fresh one knows nothing of it
		c.mustTryTruly(t, &r, nodes, "p3", "p4", "p5", "p6")
	}
}

// change does something to a node or a pod.
func (c cluster) change(random *rand.Rand, step int, nodes []gpu.NodeID) {
	node := nodes[random.IntN(len(nodes))]
	name := fmt.Sprintf("p%d", random.IntN(12))
	switch random.IntN(10) {
	case 0:
		f := sized(node, []gpu.MiB{1000, 600, 1000}[:1+random.IntN(3)]...)
		f.Unavailable, f.Dedicated = random.IntN(3) == 0, []string{"", "", "", "red"}[random.IntN(4)]
		c.ledger.SetNode(f)
	case 1:
		c.ledger.RemoveNode(node)
	case 2:
		c.ledger.Fence(map[gpu.NodeID][]gpu.CardID{node: {gpu.CardID(string(node) + "-d0")}})
	case 3:
		c.ledger.Release(gpu.PodID(name))
	case 4:
		c.ledger.Govern(randomRules(random))
	case 5:
		share := gpu.Share{Card: gpu.CardID(string(node) + "-d0"), Vendor: gpu.Nvidia, Memory: 500, Cores: 10}
		p := gpu.Placement{Pod: gpu.PodID(fmt.Sprintf("c%d", random.IntN(4))), Node: node, Namespace: []string{"red", "blue"}[random.IntN(2)], Grants: []gpu.Grant{{Container: "c0", Shares: []gpu.Share{share}}}}
		_ = c.ledger.Claim(p, []gpu.PodID{gpu.PodID(fmt.Sprintf("p%d", random.IntN(12)))})
	case 6:
		c.ledger.Unclaim(gpu.PodID(fmt.Sprintf("c%d", random.IntN(4))))
	default:
		share := gpu.Share{Card: gpu.CardID(string(node) + "-d0"), Vendor: gpu.Nvidia, Memory: 100, Cores: 10}
		c.ledger.Confirm(gpu.Placement{Pod: gpu.PodID(name), Node: node, Namespace: []string{"red", "blue"}[random.IntN(2)], Grants: []gpu.Grant{{Container: "c0", Shares: []gpu.Share{share}}}})
	}
}

// randomRules has two namespaces under all kinds of rules, of which most let them
// in.
func randomRules(random *rand.Rand) rules {
	r := rules{tenants: map[string]gpu.TenantID{}}
	if random.IntN(2) == 0 {
		r.groups = [][]gpu.TenantID{{"red", "blue"}}
	}
	for _, namespace := range []string{"red", "blue"} {
		switch random.IntN(6) {
		case 0:
			r.tenants[namespace] = "" // two claim it
		case 1:
			r.tenants[namespace] = "both"
		case 2:
			r.closed = append(r.closed, namespace)
		}
		most := int64(random.IntN(2500))
		for _, l := range []gpu.Limit{cardLimit(most / 500), memoryLimit(most), coreLimit(most / 10)} {
			if random.IntN(3) == 0 {
				r = r.limiting(namespace, l)
			}
		}
	}
	return r
}

// What is remembered for one namespace must not be told to another of the tenant,
// which has another quota; nor after the quota has changed.
func TestVerdictsAreToldWithoutQuotas(t *testing.T) {
	for name, limit := range map[string]func(int64) gpu.Limit{"gate": cardLimit, "price": func(n int64) gpu.Limit { return memoryLimit(1000 * n) }} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(1, 1)
			govern := func(a, b int64) {
				c.ledger.Govern(rules{
					tenants: map[string]gpu.TenantID{"a": "red", "b": "red"},
					limits:  map[gpu.Account][]gpu.Limit{gpu.NamespaceAccount("a"): {limit(a)}, gpu.NamespaceAccount("b"): {limit(b)}},
				})
			}
			fit := func(namespace string) int {
				r := pod("asks", whole(1))
				r.Namespace = namespace
				return c.Filter(&r, c.all()).Fit
			}
			govern(1, 0)
			for range 2 {
				if a, b := fit("a"), fit("b"); a != 2 || b != 0 {
					t.Errorf("%d nodes fit a, %d b", a, b)
				}
			}
			c.joins("holder", "a", "n1-d0", alone)
			if a := fit("a"); a != 0 {
				t.Errorf("%d nodes fit a, whose quota is used up", a)
			}
			c.ledger.Release("holder")
			if a := fit("a"); a != 2 {
				t.Errorf("%d nodes fit a again", a)
			}
			govern(0, 1)
			if a, b := fit("a"), fit("b"); a != 0 || b != 2 {
				t.Errorf("%d nodes fit a, %d b", a, b)
			}
		})
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
				r := pod("a", slice(1))
				r.CPU = gpu.MilliCPU(i)
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

// What is remembered for one request must not be told to another that reads like it
// where names are run together.
func TestVerdictsTellNamesApart(t *testing.T) {
	c := newCluster(1)
	one, two := pod("one", whole(1)), pod("two", whole(1))
	one.Models, two.Models = []string{"A100 SXM"}, []string{"A100", "SXM"}
	f := sized("n1", 1000)
	f.Cards[0].Model = "A100-PCIE"
	c.ledger.SetNode(f)
	for _, tc := range []struct {
		r    gpu.Request
		fits int
	}{{one, 0}, {two, 1}, {one, 0}} {
		if got := c.Filter(&tc.r, []gpu.NodeID{"n1"}); got.Fit != tc.fits {
			t.Errorf("models %q: %d nodes fit, want %d", tc.r.Models, got.Fit, tc.fits)
		}
	}
}

// As many kinds of requests are remembered as there is room for, of many nodes few, and
// those that were asked about last.
func TestShapesByNodes(t *testing.T) {
	for nodes, want := range map[int]int{0: mostShapes, 1: mostShapes, 512: 512, 1213: 216, 5000: 52, 16384: 16, 100_000: leastShapes} {
		if got := shapesFor(nodes); got != want {
			t.Errorf("%d nodes: %d shapes, want %d", nodes, got, want)
		}
	}
	var v verdicts
	const nodes = mostEntries / 20
	first := v.shape("first", terms{}, nodes)
	for i := range 60 {
		v.shape(fmt.Sprint(i), terms{}, nodes)
		if v.shape("first", terms{}, nodes) != first {
			t.Fatalf("after %d others: forgotten, though it is asked about each time", i)
		}
	}
	if len(v.shapes) != 20 || v.shapes["59"] == nil || v.shapes["40"] != nil {
		t.Errorf("%d shapes, want the last 20", len(v.shapes))
	}
	if v.shape("first", terms{}, mostEntries/16); len(v.shapes) != 20 {
		t.Errorf("%d shapes: what is there is thrown away for nothing new", len(v.shapes))
	}
	if v.shape("another", terms{}, mostEntries/16); len(v.shapes) != 16 {
		t.Errorf("%d shapes in a cluster that has grown, want 16", len(v.shapes))
	}
	if v.shape("first", terms{outlook: &demand.Outlook{}}, nodes) == first || len(v.shapes) != 1 {
		t.Errorf("%d shapes: what was said by another outlook is remembered", len(v.shapes))
	}
}
