package codec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/topology"
)

func TestLocations(t *testing.T) {
	got, err := Locations([]byte(`
nodes:
- {name: a, region: west, zone: west-1, rack: r1, switch: s1}
- {name: b, rack: 2}
`))
	want := map[gpu.NodeID]topology.Location{"a": {Region: "west", Zone: "west-1", Rack: "r1", Switch: "s1"}, "b": {Rack: "2"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	for _, nothing := range []string{"", "# nobody\n", "nodes: []"} {
		if got, err := Locations([]byte(nothing)); len(got) != 0 || err != nil {
			t.Errorf("%q: %v, %v", nothing, got, err)
		}
	}
}

func TestFaultsOfLocations(t *testing.T) {
	for name, tc := range map[string]struct{ text, says string }{
		"no name":         {"nodes: [{rack: r}]", "nodes[0].name: is missing"},
		"named twice":     {"nodes: [{name: a, rack: r}, {name: a, rack: s}]", "nodes[1].name: a is named twice"},
		"nothing of it":   {"nodes: [{name: a}]", "nodes[0]: name a region, zone, rack or switch of a"},
		"a typo":          {"nodes: [{name: a, rak: r}]", `"rak"`},
		"of another kind": {"nodes: {a: r}", "nodes"},
		"no YAML":         {"nodes: [", "yaml"},
		"two documents":   {"nodes: []\n---\nnodes: []", "two documents"},
		"a key twice":     {"nodes: []\nnodes: []", "already"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Locations([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want it to say %s", err, tc.says)
			}
		})
	}
}
