package policy

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/tenancy"
	"heteroflow.io/heteroflow/pkg/topology"
)

// What goes by labels is on by default, each with weight 1; off it does not count,
// and a pod that requires RDMA is kept from nodes without it all the same.
func TestPluginsOfLabels(t *testing.T) {
	n := &ledger.Node{Facts: ledger.Facts{ID: "n1", Location: topology.Location{Zone: "z"}, RDMA: ledger.RDMA{Stated: true}}}
	r := &gpu.Request{Zone: "z", RDMA: gpu.Required, Group: "g", Asks: []gpu.Ask{{Count: 1, Whole: true}}}
	scores := func(s Settings) map[string]float64 {
		got := map[string]float64{}
		_, parts := s.Pipeline().Rate(&pipeline.Cycle{Request: r}, n)
		for _, p := range parts {
			if got[p.Plugin] = p.Score; p.Weight != 1 {
				t.Errorf("%s weighs %v", p.Plugin, p.Weight)
			}
		}
		return got
	}
	got := scores(Default())
	for name, want := range map[string]float64{"topology": 65, "rdma": 40, "network": 50} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	off := Default()
	off.Plugins = slices.Clone(off.Plugins)
	for i := range off.Plugins {
		off.Plugins[i].Enabled = off.Plugins[i].Name == "spread"
	}
	if diff := cmp.Diff([]string{"spread"}, names(scores(off))); diff != "" {
		t.Errorf("with all off (-want +got):\n%s", diff)
	}
	if v := off.Pipeline().Judge(&pipeline.Cycle{Request: r}, n, &pipeline.Scratch{}); v.Reason != gpu.RDMAUnsupported {
		t.Errorf("refused for %q", v.Reason)
	}
}

func names(scores map[string]float64) (all []string) {
	for name := range scores {
		all = append(all, name)
	}
	return all
}

// For a pod that they are not about the plugins do not count: its totals lie as far
// apart as without them.
func TestPluginsOfLabelsOfWhoDoesNotCare(t *testing.T) {
	n := &ledger.Node{Facts: ledger.Facts{ID: "n1", Location: topology.Location{Zone: "z"}, RDMA: ledger.RDMA{Stated: true, Able: true}}}
	tests := map[string]struct {
		asks gpu.Request
		want []string
	}{
		"no wish":  {gpu.Request{}, []string{"spread", "fragment", "thermal"}},
		"a rack":   {gpu.Request{Rack: "r"}, []string{"spread", "topology", "fragment", "thermal"}},
		"a zone":   {gpu.Request{Zone: "z"}, []string{"spread", "topology", "fragment", "thermal"}},
		"a region": {gpu.Request{Region: "eu"}, []string{"spread", "topology", "fragment", "thermal"}},
		"training": {gpu.Request{Type: gpu.Training}, []string{"spread", "rdma", "fragment", "thermal"}},
		"a group":  {gpu.Request{Group: "g"}, []string{"spread", "topology", "rdma", "network", "fragment", "thermal"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			_, parts := Default().Pipeline().Rate(&pipeline.Cycle{Request: &tc.asks}, n)
			for _, p := range parts {
				got = append(got, p.Plugin)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArgumentsReachThePlugin(t *testing.T) {
	silent := ledger.New(tenancy.Separate{})
	silent.SetNode(ledger.Facts{ID: "n1", Cards: []gpu.Card{{
		ID: "d0", Vendor: gpu.Nvidia, Healthy: true, Memory: 10, Cores: 100, MaxSlices: 1, Mode: gpu.ModeSlice,
	}}})
	n, _ := silent.Snapshot().Node("n1")
	r := &gpu.Request{NUMA: gpu.NoNUMA, RDMA: gpu.Required, Asks: []gpu.Ask{{Count: 1, Whole: true}}}
	for args, want := range map[string]gpu.Reason{"": "", `{}`: "", `{"strict":false}`: "", `{"strict":true}`: gpu.RDMAUnsupported} {
		s := Default()
		s.Plugins = []Plugin{{Name: "rdma", Enabled: true, Weight: 1, Args: []byte(args)}}
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		if v := s.Pipeline().Judge(&pipeline.Cycle{Request: r}, n, &pipeline.Scratch{}); v.Reason != want {
			t.Errorf("%s: %q, want %q", args, v.Reason, want)
		}
	}
}

// Where no node carries a label the order of the nodes is as without the plugins
// that go by them, whatever the pod wishes and wherever its group is.
func TestMissingLabelsChangeNothing(t *testing.T) {
	plain := Default()
	plain.Plugins = layouts()
	rapid.Check(t, func(t *rapid.T) {
		l := ledger.New(tenancy.Separate{})
		for i := range 5 {
			id := gpu.NodeID(fmt.Sprintf("n%d", i))
			l.SetNode(ledger.Facts{ID: id, CPU: 1000, Memory: 1000})
			if used := rapid.IntRange(0, 8).Draw(t, "used"); used > 0 {
				l.Confirm(gpu.Placement{Pod: gpu.PodID(id), Node: id, CPU: gpu.MilliCPU(125 * used), Group: pick[gpu.GroupID](t, "group", "", "g")})
			}
		}
		r := &gpu.Request{
			Region: pick(t, "region", "", "a"), Zone: pick(t, "zone", "", "a"), Rack: pick(t, "rack", "", "a"),
			RDMA: pick(t, "rdma", "", gpu.Preferred, gpu.Required), Type: pick(t, "type", "", gpu.Training), Group: "g",
			NodePolicy: pick(t, "policy", "", gpu.Binpack, gpu.Spread),
		}
		if diff := cmp.Diff(ranking(plain, r, l.Snapshot()), ranking(Default(), r, l.Snapshot())); diff != "" {
			t.Fatalf("order (-without +with):\n%s", diff)
		}
	})
}

func ranking(s Settings, r *gpu.Request, in ledger.Snapshot) []gpu.NodeID {
	pipe, c := s.Pipeline(), &pipeline.Cycle{Request: r, Peers: pipeline.PeersOf(r.Group, in)}
	score := func(id gpu.NodeID) float64 {
		n, _ := in.Node(id)
		return pipe.Total(c, n, &pipeline.Scratch{})
	}
	var all []gpu.NodeID
	for id := range in.Nodes() {
		all = append(all, id)
	}
	slices.SortStableFunc(all, func(a, b gpu.NodeID) int {
		const same = 1e-9
		switch d := score(b) - score(a); {
		case d > same:
			return 1
		case d < -same:
			return -1
		}
		return 0
	})
	return all
}
