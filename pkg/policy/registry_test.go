package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

func TestPluginNames(t *testing.T) {
	want := []string{"availability", "gpu-filter", "affinity", "tenant", "load", "resource-filter", "spread", "binpack", "topology-aware", "topology", "nvlink", "rdma", "thermal", "network", "fragment"}
	if diff := cmp.Diff(want, PluginNames()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// layouts are the plugins of the defaults that exclude each other.
func layouts() []Plugin { return Default().Plugins[:3] }

// Spread and binpack exclude each other: who is in force, and with what weight.
func TestPipelineLayouts(t *testing.T) {
	// cpu, memory and gpu are each a quarter used: binpack 25, spread 75.
	quarter := &ledger.Node{
		Facts:   ledger.Facts{CPU: 4, Memory: 4},
		UsedCPU: 1, UsedMemory: 1,
		Cards: []ledger.Card{{Card: gpu.Card{Usable: 4, UsableCores: 4}, Used: gpu.Use{Memory: 1, Cores: 1}}},
	}
	spread := func(on bool, weight float64) Plugin { return Plugin{Name: "spread", Enabled: on, Weight: weight} }
	binpack := func(on bool, weight float64) Plugin { return Plugin{Name: "binpack", Enabled: on, Weight: weight} }
	tests := map[string]struct {
		plugins []Plugin
		asked   gpu.Policy
		want    float64
		parts   []pipeline.Part
	}{
		"default is spread":                        {layouts(), "", 75, []pipeline.Part{{Plugin: "spread", Score: 75, Weight: 1}}},
		"binpack beside spread wins":               {[]Plugin{spread(true, 1), binpack(true, 2)}, "", 25, []pipeline.Part{{Plugin: "binpack", Score: 25, Weight: 2}}},
		"binpack alone":                            {[]Plugin{spread(false, 1), binpack(true, 1)}, "", 25, []pipeline.Part{{Plugin: "binpack", Score: 25, Weight: 1}}},
		"both off is neutral":                      {[]Plugin{spread(false, 1), binpack(false, 1)}, "", 50, nil},
		"neither named is neutral":                 {nil, "", 50, nil},
		"the pod asks for the other":               {layouts(), gpu.Binpack, 25, []pipeline.Part{{Plugin: "binpack", Score: 25, Weight: 1}}},
		"the pod asks for what is off":             {[]Plugin{spread(false, 3), binpack(false, 1)}, gpu.Spread, 75, []pipeline.Part{{Plugin: "spread", Score: 75, Weight: 3}}},
		"off without a weight weighs 1":            {nil, gpu.Binpack, 25, []pipeline.Part{{Plugin: "binpack", Score: 25, Weight: 1}}},
		"on with weight 0 is neutral":              {[]Plugin{spread(true, 0)}, "", 50, nil},
		"topology-aware, of a pod of single cards": {[]Plugin{spread(true, 1), {Name: "topology-aware", Enabled: true, Weight: 1}}, "", 75, []pipeline.Part{{Plugin: "spread", Score: 75, Weight: 1}}},
		"... that asks for it itself":              {layouts(), gpu.TopologyAware, 75, []pipeline.Part{{Plugin: "spread", Score: 75, Weight: 1}}},
		"binpack with weight 0 still wins":         {[]Plugin{spread(true, 1), binpack(true, 0)}, "", 50, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := Default()
			s.Plugins = tc.plugins
			got, parts := s.Pipeline().Rate(&pipeline.Cycle{Request: &gpu.Request{NodePolicy: tc.asked}}, quarter)
			if got != tc.want {
				t.Errorf("score %v, want %v", got, tc.want)
			}
			if diff := cmp.Diff(tc.parts, parts); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}

// The card policy is binpack, whatever the nodes' is, unless the pod names one.
func TestPipelineCardPolicies(t *testing.T) {
	l := ledger.New(tenancy.Separate{})
	card := gpu.Card{Vendor: gpu.Nvidia, Healthy: true, Memory: 10, Usable: 10, Cores: 100, UsableCores: 100, MaxSlices: 9, Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft}
	var cards []gpu.Card
	for _, id := range []gpu.CardID{"d0", "d1", "d2"} {
		card.ID = id
		cards = append(cards, card)
	}
	l.SetNode(ledger.Facts{ID: "n1", Cards: cards})
	for pod, held := range map[gpu.PodID]gpu.Share{"a": {Card: "d0", Memory: 2}, "b": {Card: "d1", Memory: 5}} {
		l.Confirm(gpu.Placement{Pod: pod, Node: "n1", Namespace: "red", Grants: []gpu.Grant{{Shares: []gpu.Share{held}}}})
	}
	n, _ := l.Snapshot().Node("n1")
	red, _ := l.Snapshot().Owner("red")
	for asked, want := range map[gpu.Policy]gpu.CardID{"": "d1", gpu.Binpack: "d1", gpu.Spread: "d2"} {
		r := &gpu.Request{Tenant: red, NUMA: gpu.NoNUMA, CardPolicy: asked, Asks: []gpu.Ask{{Count: 1, Memory: 1}}}
		p, v := Default().Pipeline().Assign(&pipeline.Cycle{Request: r}, n)
		if !v.OK() {
			t.Fatalf("%q: %+v", asked, v)
		}
		if got := p.Grants[0].Shares[0].Card; got != want {
			t.Errorf("%q: on %s, want %s", asked, got, want)
		}
	}
}

// topology-aware stands in for spread and binpack for pods that want several cards for
// one container: where it is enabled, or the pod names it.
func TestTopologyAwareIsALayout(t *testing.T) {
	card := gpu.Card{Vendor: gpu.Nvidia, Healthy: true, Memory: 10, Usable: 10, Cores: 100, UsableCores: 100, MaxSlices: 9, Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft}
	n := &ledger.Node{Facts: ledger.Facts{ID: "n1"}}
	for i, numa := range []int{0, 1, 0} {
		c := card
		c.ID, c.Index, c.NUMA = gpu.CardID([]string{"a", "b", "c"}[i]), i, numa
		n.Cards = append(n.Cards, ledger.Card{Card: c})
	}
	enabled := Default()
	enabled.Plugins = append([]Plugin{{Name: "topology-aware", Enabled: true, Weight: 2}}, enabled.Plugins[3:]...)
	tests := map[string]struct {
		settings Settings
		asked    gpu.Policy
		scorer   string
		cards    []int // that the container gets
	}{
		"by default":       {Default(), "", "spread", []int{0, 1}},
		"the pod names it": {Default(), gpu.TopologyAware, "topology-aware", []int{0, 2}},
		"enabled":          {enabled, "", "topology-aware", []int{0, 2}},
		"the pod does not": {enabled, gpu.Spread, "spread", []int{0, 1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &gpu.Request{NUMA: gpu.NoNUMA, NodePolicy: tc.asked, CardPolicy: tc.asked, Asks: []gpu.Ask{{Container: "c", Count: 2, Whole: true}}}
			pipe, c := tc.settings.Pipeline(), &pipeline.Cycle{Request: r}
			if _, parts := pipe.Rate(c, n); len(parts) == 0 || parts[0].Plugin != tc.scorer {
				t.Errorf("rated by %v, want %s first", parts, tc.scorer)
			}
			p, v := pipe.Assign(c, n)
			if !v.OK() {
				t.Fatalf("refused: %+v", v)
			}
			var got []int
			for _, s := range p.Grants[0].Shares {
				got = append(got, s.Index)
			}
			if diff := cmp.Diff(tc.cards, got); diff != "" {
				t.Errorf("cards (-want +got):\n%s", diff)
			}
		})
	}
}
