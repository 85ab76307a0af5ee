package simulate

import (
	"math/rand"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// naive places as a cluster does, and remembers nothing.
func naive(c *cluster, s Shape, id gpu.PodID) (gpu.NodeID, bool) {
	r := request(s)
	r.Pod, r.Name = id, string(id)
	cycle, best, most := c.cycle(&r, c.ledger.Snapshot()), (*ledger.Node)(nil), 0.0
	for _, n := range c.ledger.Snapshot().Nodes() {
		if !fits(&r, n) || !c.pipe.Judge(cycle, n, &pipeline.Scratch{}).OK() {
			continue
		}
		if total, _ := c.pipe.Rate(cycle, n); best == nil || total > most {
			best, most = n, total
		}
	}
	if best == nil {
		return "", false
	}
	p, _ := c.pipe.Assign(cycle, best)
	return best.ID, c.ledger.Reserve(p) == nil
}

// What is remembered must never show: pods come and go, and each is placed where one
// that judges all nodes anew places it, on the same cards.
func TestPlaceIsAsIfNothingWereRemembered(t *testing.T) {
	for _, name := range []string{"packing", "default", "fgd", "bestfit"} {
		t.Run(name, func(t *testing.T) {
			policies, err := Policies([]string{name})
			if err != nil {
				t.Fatal(err)
			}
			for seed := range int64(5) {
				r := rand.New(rand.NewSource(seed))
				trace := someTrace(r, 12, 40)
				rank := r.Perm(len(trace.Nodes))
				ours := newCluster(trace.Nodes, rank, policies[0].Pipeline(trace))
				plain := newCluster(trace.Nodes, rank, policies[0].Pipeline(trace))
				for i := range 300 {
					id := gpu.PodID(strconv.Itoa(i))
					if gone := gpu.PodID(strconv.Itoa(r.Intn(i + 1))); r.Intn(3) == 0 {
						ours.end(gone)
						plain.ledger.Release(gone)
					}
					s := trace.Pods[r.Intn(len(trace.Pods))].Shape
					ours.note(s)
					plain.note(s)
					placed, err := ours.place(s, id)
					if err != nil {
						t.Fatal(err)
					}
					_, fits := naive(plain, s, id)
					got, _ := ours.ledger.Hold(id)
					want, _ := plain.ledger.Hold(id)
					if diff := cmp.Diff(want.Placement, got.Placement); diff != "" || placed != fits {
						t.Fatalf("seed %d, pod %d, placed %v, want %v (-want +got):\n%s", seed, i, placed, fits, diff)
					}
				}
			}
		})
	}
}

func TestRequest(t *testing.T) {
	base := gpu.Request{Namespace: "trace", Tenant: "trace", CPU: 5, Memory: 3 << 20, NUMA: gpu.NoNUMA}
	with := func(models []string, asks ...gpu.Ask) gpu.Request {
		r := base
		r.Models, r.Asks = models, asks
		return r
	}
	tests := map[string]struct {
		shape Shape
		want  gpu.Request
	}{
		"no card":      {Shape{CPU: 5, Memory: 3}, with(nil)},
		"all but all":  {Shape{CPU: 5, Memory: 3, Cards: 1, Milli: 999}, with(nil, gpu.Ask{Container: "main", Count: 1, Memory: 999})},
		"a whole one":  {Shape{CPU: 5, Memory: 3, Cards: 1, Milli: 1000}, with(nil, gpu.Ask{Container: "main", Count: 1, Whole: true})},
		"of two kinds": {Shape{CPU: 5, Memory: 3, Cards: 8, Milli: 1000, Models: "T4|G2"}, with([]string{"T4", "G2"}, gpu.Ask{Container: "main", Count: 8, Whole: true})},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, request(tc.shape)); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

// The experiment's own rule of what fits, on what is left of a node.
func fitsByTheBook(s Shape, n *ledger.Node) bool {
	if n.CPU-n.UsedCPU < s.CPU || n.Memory-n.UsedMemory < gpu.Bytes(s.Memory)<<20 {
		return false
	}
	if s.Cards == 0 {
		return true
	}
	enough := 0
	for i := range n.Cards {
		left := wholeCard
		for _, h := range n.Cards[i].Holders {
			left -= int(h.Use.Memory)
		}
		if left >= s.Milli {
			enough++
		}
	}
	return enough >= s.Cards && (s.Models == "" || slices.Contains(s.models(), n.Cards[0].Model))
}

// A request fits a node of ours just where its shape fits the trace's, whole cards
// included, which by our rules need a card that nobody is on.
func TestJudgeIsTheRuleOfTheBook(t *testing.T) {
	r := rand.New(rand.NewSource(7))
	models := []string{"A10", "G2", "G3", "P100", "T4", "V100M16", "V100M32"} // those of the published trace
	trace := someTrace(r, 40, 200)
	for i := range trace.Nodes {
		trace.Nodes[i].Model = models[r.Intn(len(models))]
	}
	for i := range trace.Pods {
		if s := &trace.Pods[i]; s.Cards > 0 && r.Intn(2) == 0 {
			s.Models = models[r.Intn(len(models))] + "|" + models[r.Intn(len(models))]
		}
	}
	policies, err := Policies([]string{"random"})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(trace.Nodes, r.Perm(len(trace.Nodes)), policies[0].Pipeline(trace))
	verdicts := map[bool]int{}
	for i := range 400 {
		s := trace.Pods[r.Intn(len(trace.Pods))].Shape
		request := request(s)
		for id, n := range c.ledger.Snapshot().Nodes() {
			got := fits(&request, n) && c.pipe.Judge(c.cycle(&request, c.ledger.Snapshot()), n, &pipeline.Scratch{}).OK()
			if want := fitsByTheBook(s, n); got != want {
				t.Fatalf("%s on %s, a %s: %v, want %v", s, id, n.Cards[0].Model, got, want)
			}
			verdicts[got]++
		}
		if _, err := c.place(s, gpu.PodID(strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	if verdicts[true] < 1000 || verdicts[false] < 1000 {
		t.Errorf("too one-sided to say anything: %v", verdicts)
	}
}

// Ties go to the lower rank, whatever the order in the file, and numbers do not count
// as text: rank 10 comes after rank 9.
func TestTiesGoToTheLowerRank(t *testing.T) {
	nodes := slices.Repeat([]Node{{"n", 8000, 8000, 1, "T4"}}, 12)
	rank := []int{10, 3, 7, 11, 0, 5, 9, 1, 8, 2, 6, 4}
	policies, err := Policies([]string{"bestfit"})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(nodes, rank, policies[0].Pipeline(nil))
	for i := range nodes {
		id := gpu.PodID(strconv.Itoa(i))
		if _, err := c.place(Shape{Cards: 1, Milli: 1000}, id); err != nil {
			t.Fatal(err)
		}
		if h, _ := c.ledger.Hold(id); h.Node != nodeID(i) {
			t.Errorf("pod %d is on %s", i, h.Node)
		}
	}
}
