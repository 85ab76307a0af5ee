package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFloor(t *testing.T) {
	f := Floor{Nodes: 128}
	zones, racks, hots := map[string]int{}, map[string]int{}, map[string]bool{}
	for i, spec := range f.specs() {
		zones[spec.Labels[labelZone]]++
		rack := spec.Labels[labelRack]
		racks[rack]++
		if hot(rackOf(i)) {
			hots[rack] = true
		}
	}
	if diff := cmp.Diff(map[string]int{"zone-0": 64, "zone-1": 64}, zones); diff != "" {
		t.Errorf("zones (-want +got):\n%s", diff)
	}
	for rack, nodes := range racks {
		if nodes != perRack {
			t.Errorf("%s has %d nodes", rack, nodes)
		}
	}
	if len(racks) != f.Racks() || f.Racks() != 16 || f.Cards() != 1024 {
		t.Errorf("%d racks of nodes, %d racks, %d cards", len(racks), f.Racks(), f.Cards())
	}
	if diff := cmp.Diff(map[string]bool{"rack-01": true, "rack-05": true, "rack-09": true, "rack-13": true}, hots); diff != "" {
		t.Errorf("hot racks (-want +got):\n%s", diff)
	}
	if n := len(f.places()); n != f.Cards() {
		t.Errorf("%d places of %d cards: do two have one name?", n, f.Cards())
	}
}
