package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/demand"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/tenancy"
	"heteroflow.io/heteroflow/pkg/topology"
)

// Every preset is valid, the caller's own, and beside the plugins like the defaults.
func TestPresetsAreValid(t *testing.T) {
	for _, name := range append(Presets(), "") {
		s, known := Preset(name)
		if err := s.Validate(); !known || err != nil {
			t.Errorf("%q: known %t, %v", name, known, err)
		}
		if len(s.Plugins) != len(Default().Plugins) {
			t.Errorf("%q: %d plugins, of %d", name, len(s.Plugins), len(Default().Plugins))
		}
		s.Plugins[0].Weight = 7
		if again, _ := Preset(name); again.Plugins[0].Weight == 7 {
			t.Errorf("%q has been changed for everybody", name)
		}
		s.Plugins = Default().Plugins
		if diff := cmp.Diff(Default(), s); diff != "" {
			t.Errorf("%q, beside the plugins (-default +got):\n%s", name, diff)
		}
	}
	for _, name := range []string{"Packing", "default", "binpack"} {
		if _, known := Preset(name); known {
			t.Errorf("%q is known", name)
		}
	}
}

// What counts in a node's score by each preset, for a pod that wishes for all that it can.
func TestPresetsWeigh(t *testing.T) {
	l := ledger.New(tenancy.Separate{})
	cards := []gpu.Card{
		{ID: "a", Vendor: gpu.Nvidia, Healthy: true, Memory: 10, Usable: 10, Cores: 100, UsableCores: 100, MaxSlices: 9, Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft},
		{ID: "b", Index: 1, Vendor: gpu.Nvidia, Healthy: true, Memory: 10, Usable: 10, Cores: 100, UsableCores: 100, MaxSlices: 9, Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft},
	}
	links, err := topology.NewBuilder(cards)
	if err != nil {
		t.Fatal(err)
	}
	links.Pair("a", "b", "NV4")
	l.SetNode(ledger.Facts{ID: "n1", Cards: cards, Links: links.Links(), Location: topology.Location{Zone: "z", Rack: "r"}, RDMA: ledger.RDMA{Stated: true, Able: true}})
	l.SetReadings("n1", ledger.Readings{Cards: map[gpu.CardID]gpu.Reading{"a": {Temperature: gpu.Measured(60)}}})
	n, _ := l.Snapshot().Node("n1")
	r := &gpu.Request{Zone: "z", RDMA: gpu.Preferred, Group: "g", NUMA: gpu.NoNUMA, Asks: []gpu.Ask{{Container: "c", Count: 2, Whole: true}}}
	for name, want := range map[string]map[string]float64{
		"":            {"spread": 1, "topology": 1, "rdma": 1, "network": 1, "fragment": 1, "nvlink": 1, "thermal": 1},
		Packing:       {"topology": 1, "rdma": 1, "network": 1, "fragment": 1},
		Heterogeneous: {"fragment": 0.4, "thermal": 0.35, "network": 0.25},
	} {
		s, _ := Preset(name)
		pipe := s.Pipeline()
		got := map[string]float64{}
		_, parts := pipe.Rate(&pipeline.Cycle{Request: r}, n)
		for _, p := range parts {
			got[p.Plugin] = p.Weight
			if name == Heterogeneous && p.Plugin == "fragment" && p.Score != 100 {
				t.Errorf("fragment rates %v: the formula of the node alone has 100 for whole cards", p.Score)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q weighs (-want +got):\n%s", name, diff)
		}
		l.SetReadings("n1", ledger.Readings{Cards: map[gpu.CardID]gpu.Reading{"a": {Temperature: gpu.Measured(78)}, "b": {Temperature: gpu.Measured(300)}}})
		hot, _ := l.Snapshot().Node("n1")
		one := *r
		one.Asks = []gpu.Ask{{Container: "c", Count: 1, Whole: true}}
		if v := pipe.Judge(&pipeline.Cycle{Request: &one}, hot, &pipeline.Scratch{}); v.Reason != gpu.Overheated {
			t.Errorf("%q on a hot node: %+v", name, v)
		}
	}
}

// Where fragment is on it chooses the cards of a pod that names no policy: as binpack
// does while nothing is known of what is asked for. Where it is off binpack does, and a
// pod that names a policy gets its cards by that.
func TestWhoChoosesTheCards(t *testing.T) {
	card := gpu.Card{Vendor: gpu.Nvidia, Healthy: true, Memory: 100, Usable: 100, Cores: 100, UsableCores: 100, MaxSlices: 9, Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft}
	l := ledger.New(tenancy.Separate{})
	var cards []gpu.Card
	for _, id := range []gpu.CardID{"d0", "d1", "d2"} {
		card.ID = id
		cards = append(cards, card)
	}
	l.SetNode(ledger.Facts{ID: "n1", Cards: cards})
	// d0 is the fuller one; a half would leave a tenth of it, and nothing of the memory of d1.
	for pod, s := range map[gpu.PodID]gpu.Share{"a": {Card: "d0", Memory: 40, Cores: 40}, "b": {Card: "d1", Memory: 50}} {
		l.Confirm(gpu.Placement{Pod: pod, Node: "n1", Namespace: "red", Grants: []gpu.Grant{{Shares: []gpu.Share{s}}}})
	}
	n, _ := l.Snapshot().Node("n1")
	red, _ := l.Snapshot().Owner("red")
	half := gpu.Request{Tenant: red, NUMA: gpu.NoNUMA, Asks: []gpu.Ask{{Count: 1, Memory: 50, Cores: 50}}}
	learner := demand.New()
	for range 100 {
		learner.Note(&half)
	}
	learned := learner.Outlook(func() demand.Supply { return demand.Supply{demand.KindOf(&card): 3} })
	off, bestfit := Default(), Default()
	off.Plugins = instead(off.Plugins, Plugin{Name: "fragment"})
	bestfit.Plugins = instead(bestfit.Plugins, Plugin{Name: "fragment", Enabled: true, Args: []byte(`{"mode":"bestfit"}`)})
	tests := map[string]struct {
		s       Settings
		outlook *demand.Outlook
		asked   gpu.Policy
		want    gpu.CardID
	}{
		"by default":                    {Default(), learned, "", "d1"},
		"while nothing is known":        {Default(), nil, "", "d0"},
		"by fit alone":                  {bestfit, nil, "", "d1"},
		"off":                           {off, learned, "", "d0"},
		"the pod spreads":               {Default(), learned, gpu.Spread, "d2"},
		"the pod names fragment itself": {Default(), learned, byFragments, "d1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := half
			r.CardPolicy = tc.asked
			p, v := tc.s.Pipeline().Assign(&pipeline.Cycle{Request: &r, Outlook: tc.outlook}, n)
			if !v.OK() {
				t.Fatalf("refused: %+v", v)
			}
			if got := p.Grants[0].Shares[0].Card; got != tc.want {
				t.Errorf("on %s, want %s", got, tc.want)
			}
		})
	}
}
