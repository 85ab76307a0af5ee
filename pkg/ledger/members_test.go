package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

func member(pod gpu.PodID, group gpu.GroupID, node gpu.NodeID) gpu.Placement {
	return gpu.Placement{Pod: pod, Namespace: "ns", Node: node, Group: group}
}

func mustBeOn(t *testing.T, s ledger.Snapshot, g gpu.GroupID, want ...gpu.NodeID) {
	t.Helper()
	if diff := cmp.Diff(want, s.Members(g), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("members of %s (-want +got):\n%s", g, diff)
	}
}

func TestMembers(t *testing.T) {
	l := ledger.New(tenancy.Separate{})
	for _, id := range []gpu.NodeID{"n1", "n2"} {
		l.SetNode(ledger.Facts{ID: id})
	}
	mustBeOn(t, l.Snapshot(), "g")
	for _, p := range []gpu.Placement{member("a", "g", "n2"), member("b", "g", "n1"), member("c", "g", "n1"), member("d", "", "n1")} {
		if err := l.Reserve(p); err != nil {
			t.Fatal(err)
		}
	}
	before := l.Snapshot()
	mustBeOn(t, before, "g", "n1", "n2")
	mustBeOn(t, before, "")

	l.Unreserve("b")
	mustBeOn(t, l.Snapshot(), "g", "n1", "n2") // c is there still
	l.Confirm(member("c", "h", "n1"))          // has another job now
	mustBeOn(t, l.Snapshot(), "g", "n2")
	mustBeOn(t, l.Snapshot(), "h", "n1")
	l.Confirm(member("a", "g", "n3")) // on a node that is not known, after all
	mustBeOn(t, l.Snapshot(), "g", "n3")
	l.Linger("a", time.Unix(1, 0))
	mustBeOn(t, l.Snapshot(), "g", "n3")
	l.Expire(time.Unix(2, 0))
	mustBeOn(t, l.Snapshot(), "g")
	mustBeOn(t, before, "g", "n1", "n2")
}

// Plans see who would be where, and change no other view.
func TestMembersInPlans(t *testing.T) {
	l := ledger.New(tenancy.Separate{})
	for _, id := range []gpu.NodeID{"n1", "n2"} {
		l.SetNode(ledger.Facts{ID: id})
	}
	now := l.Snapshot()
	one, err := now.With(member("a", "g", "n1"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := one.With(member("b", "g", "n2"))
	if err != nil {
		t.Fatal(err)
	}
	mustBeOn(t, now, "g")
	mustBeOn(t, one, "g", "n1")
	mustBeOn(t, two, "g", "n1", "n2")
	mustBeOn(t, two.Without("n1", "a"), "g", "n2")
	mustBeOn(t, two.Without("n1", "b"), "g", "n1", "n2") // which is on n2
	mustBeOn(t, l.Snapshot(), "g")
}

// Thousands of groups come and go; old views stay as they were.
func TestManyGroups(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	l := ledger.New(tenancy.Separate{})
	group := func(i int) gpu.GroupID { return gpu.GroupID(fmt.Sprintf("ns/uid=%d", i)) }
	on := map[int]gpu.NodeID{}
	const groups = 2000
	var early ledger.Snapshot
	frozen := map[int]gpu.NodeID{}
	for step := range 3 * groups {
		i := random.IntN(groups)
		pod := gpu.PodID(fmt.Sprint(i))
		if _, there := on[i]; there && random.IntN(2) == 0 {
			l.Release(pod)
			delete(on, i)
		} else {
			on[i] = gpu.NodeID(fmt.Sprintf("n%d", random.IntN(50)))
			l.Confirm(member(pod, group(i), on[i]))
		}
		if step == groups {
			early = l.Snapshot()
			for k, v := range on {
				frozen[k] = v
			}
		}
	}
	for view, want := range map[*ledger.Snapshot]map[int]gpu.NodeID{new(early): frozen, new(l.Snapshot()): on} {
		for i := range groups {
			nodes := view.Members(group(i))
			if node, there := want[i]; there && (len(nodes) != 1 || nodes[0] != node) || !there && len(nodes) > 0 {
				t.Fatalf("group %d is on %v, want %q", i, nodes, node)
			}
		}
	}
}
