package window

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// hold is what a member had.
func hold(id gpu.PodID, node gpu.NodeID, cards ...gpu.CardID) holding {
	return holding{v1alpha1.TaskGroupMember{UID: types.UID(id), Node: string(node), Allocation: string(id)}, placed(id, node, cards...)}
}

func names(all []holding) []string {
	out := []string{}
	for _, h := range all {
		out = append(out, string(h.member.UID))
	}
	return out
}

func TestTrim(t *testing.T) {
	a, b, c := hold("a", "n0", "1"), hold("b", "n0", "2"), hold("c", "n1", "1")
	all := []holding{a, b, c}
	tests := map[string]struct {
		kept    []holding
		members []gpu.Placement
		most    int32
		back    bool
		want    []string
	}{
		"nobody there":                        {all, nil, 3, true, []string{"a", "b", "c"}},
		"nobody there, and fewer are to come": {all, nil, 2, true, []string{"a", "b"}},
		"nobody is to come":                   {all, nil, 0, true, []string{}},
		"one is back on a card":               {all, []gpu.Placement{placed("x", "n0", "2")}, 3, true, []string{"a", "c"}},
		"one is back on a node":               {all, []gpu.Placement{placed("x", "n1", "4")}, 3, true, []string{"a", "b"}},
		"one is back somewhere":               {all, []gpu.Placement{placed("x", "n9", "4")}, 3, true, []string{"a", "b"}},
		"the card says more than the node":    {all, []gpu.Placement{placed("x", "n0", "1"), placed("y", "n1", "9")}, 3, true, []string{"b"}},
		"all are back":                        {all, []gpu.Placement{placed("x", "n0", "1"), placed("y", "n1", "9"), placed("z", "n2", "1")}, 3, true, []string{}},
		"more are there than are to be":       {all, []gpu.Placement{placed("x", "n0", "1"), placed("y", "n1", "9")}, 1, true, []string{}},
		"one that has never left":             {all, []gpu.Placement{c.placement}, 3, true, []string{"a", "b"}},
		"asleep, none has left yet":           {all, []gpu.Placement{a.placement, b.placement, c.placement}, 3, false, []string{"a", "b", "c"}},
		"asleep, one is still there":          {all, []gpu.Placement{c.placement}, 3, false, []string{"a", "b", "c"}},
		"asleep, one started by hand":         {all, []gpu.Placement{placed("x", "n0", "2")}, 3, false, []string{"a", "c"}},
		"asleep, and beside one that stays":   {all, []gpu.Placement{c.placement, placed("x", "n1", "1")}, 3, false, []string{"a", "c"}},
		"asleep, in the middle of an update":  {all, []gpu.Placement{a.placement, b.placement, c.placement}, 2, false, []string{"a", "b", "c"}},
		"asleep, one more has left than came": {all, []gpu.Placement{c.placement}, 2, false, []string{"a", "c"}},
		"asleep, as many have left":           {all, nil, 2, false, []string{"a", "b"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := trim(tc.kept, tc.members, tc.most, tc.back)
			want := tc.want
			gotNames := names(got)
			slices.Sort(gotNames)
			if diff := cmp.Diff(want, gotNames); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			again := names(trim(got, tc.members, tc.most, tc.back))
			slices.Sort(again)
			if diff := cmp.Diff(want, again); diff != "" {
				t.Errorf("trimmed again (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKeep(t *testing.T) {
	a, b := hold("a", "n0", "1"), hold("b", "n0", "2")
	bare := holding{v1alpha1.TaskGroupMember{UID: "bare"}, gpu.Placement{Pod: "bare", Node: "n0"}}
	tests := map[string]struct {
		holds, old []holding
		most       int32
		want       []string
	}{
		"what members have":                   {[]holding{a, b}, nil, 2, []string{"a", "b"}},
		"all who are there, of fewer":         {[]holding{a, b}, nil, 1, []string{"a", "b"}},
		"no more than there were replicas":    {[]holding{a}, []holding{b}, 1, []string{"a"}},
		"nothing of who has no card":          {[]holding{bare, a}, nil, 2, []string{"a"}},
		"what is kept of the last time":       {[]holding{a}, []holding{b}, 2, []string{"a", "b"}},
		"not the cards that a member has now": {[]holding{hold("x", "n0", "2")}, []holding{b}, 2, []string{"x"}},
		"nothing":                             {nil, nil, 3, []string{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, names(keep(tc.holds, tc.old, tc.most))); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKeptIsBounded(t *testing.T) {
	var many []holding
	for range 2 * mostKept {
		many = append(many, hold("a", "n0", "1"))
	}
	if k := kept(many, opened(), closed()); len(k.Members) != mostKept {
		t.Errorf("%d members", len(k.Members))
	}
	large := hold("a", "n0", "1")
	large.member.Allocation = strings.Repeat("x", mostText/2+1)
	if k := kept([]holding{large, large, large}, opened(), closed()); len(k.Members) != 1 {
		t.Errorf("%d large members", len(k.Members))
	}
	for after, want := range map[time.Duration]bool{-time.Hour: true, 0: true, patience - 1: true, patience: false, time.Hour: false} {
		if got := kept([]holding{hold("a", "n0", "1")}, opened(), opened().Add(after)) != nil; got != want {
			t.Errorf("%s after the opening it is kept: %v", after, got)
		}
	}
	if k := kept(nil, opened(), closed()); k != nil {
		t.Errorf("nothing is kept as %v", k)
	}
}
