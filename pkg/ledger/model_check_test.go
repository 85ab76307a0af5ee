package ledger_test

import (
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Check compares all that the two know, holds the promises against it, and makes
// sure that the step has not reached into the snapshot before it.
func (r *run) Check(t *rapid.T) {
	s := r.ledger.Snapshot()
	r.gauges.observe(r.naive)
	if diff := cmp.Diff(r.naive.nodeIDs(), names(s)); diff != "" {
		t.Fatalf("nodes (-want +got):\n%s", diff)
	}
	for id, n := range s.Nodes() {
		r.checkNode(t, id, n)
	}
	for _, g := range append(groups(), "") {
		if diff := cmp.Diff(r.naive.members(g), s.Members(g), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("members of %q (-want +got):\n%s", g, diff)
		}
	}
	r.CheckSpent(t, s)
	r.CheckPairs(t, s)
	r.checkClaims(t, s)
	r.checkKeeping(t, s)
	r.forced = false
	pods, holders := []gpu.PodID{}, map[string][]gpu.PodID{}
	for _, id := range podIDs() {
		h, ok := r.ledger.Hold(id)
		want, known := r.naive.pods[id]
		if ok != known || ok && (h.State != want.state || !h.Until.Equal(want.until) || !cmp.Equal(h.Placement, r.naive.owned(want.p))) {
			t.Fatalf("Hold(%s) = %+v, %t, want %+v", id, h, ok, want)
		}
		if known {
			pods = append(pods, id)
			holders[want.p.Namespace] = append(holders[want.p.Namespace], id)
		}
	}
	for _, ns := range append(namespaces(), "") {
		if diff := cmp.Diff(holders[ns], r.ledger.PodsIn(ns)); diff != "" {
			t.Fatalf("pods in %q (-want +got):\n%s", ns, diff)
		}
	}
	if diff := cmp.Diff(pods, r.ledger.Pods()); diff != "" {
		t.Fatalf("pods (-want +got):\n%s", diff)
	}
	for _, id := range allCards() {
		r.checkPromise(t, id)
	}
	r.before.mustBeAsTaken(t)
	r.before = take(s)
}

func (r *run) checkNode(t *rapid.T, id gpu.NodeID, n *ledger.Node) {
	cpu, memory := r.naive.main(id)
	if n.UsedCPU != cpu || n.UsedMemory != memory {
		t.Fatalf("%s uses %d, %d, want %d, %d", id, n.UsedCPU, n.UsedMemory, cpu, memory)
	}
	if diff := cmp.Diff(r.naive.nodes[id], n.Facts); diff != "" {
		t.Fatalf("facts (-want +got):\n%s", diff)
	}
	shut := r.naive.closed(id)
	var want []ledger.Card
	for _, c := range r.naive.nodes[id].Cards {
		holders := r.naive.holders(id, c.ID)
		want = append(want, ledger.Card{
			Card: c, Used: sum(holders), Holders: holders, Claims: r.naive.claims(id, c.ID), Claimed: r.naive.claimed(id, c.ID),
			Closed: shut[c.ID], Fenced: r.naive.fenced(id, c.ID), Divided: r.naive.mixed(holders),
		})
	}
	if diff := cmp.Diff(want, n.Cards, measures()); diff != "" {
		t.Fatalf("cards of %s (-want +got):\n%s", id, diff)
	}
	for i := range n.Cards {
		checkFree(t, &n.Cards[i])
	}
	r.checkReadings(t, id, n)
}

func checkFree(t *rapid.T, c *ledger.Card) {
	left := func(all, used int64) int64 {
		if c.Closed || c.Fenced || c.Divided || c.Used.Exclusive || c.Claimed.Exclusive || used > all {
			return 0
		}
		return all - used
	}
	want := []int64{
		left(int64(c.Usable), int64(c.Used.Memory+c.Claimed.Memory+c.Foreign())), left(int64(c.UsableCores), int64(c.Used.Cores+c.Claimed.Cores)),
		left(int64(c.MaxSlices), int64(c.Used.Slots+c.Claimed.Slots)),
	}
	got := []int64{int64(c.FreeMemory()), int64(c.FreeCores()), int64(c.FreeSlots())}
	if diff := cmp.Diff(want, got); diff != "" || c.Free() != (len(c.Holders)+len(c.Claims) == 0 && !c.Closed && !c.Fenced) {
		t.Fatalf("free of %s: %t; memory, cores, slots (-want +got):\n%s", c.ID, c.Free(), diff)
	}
}

// checkPromise: a card whose holders all came by Reserve, and that has not
// changed under them, is not oversold, not crowded and not mixed.
func (r *run) checkPromise(t *rapid.T, id gpu.CardID) {
	for _, f := range r.naive.nodes {
		i := slices.IndexFunc(f.Cards, func(c gpu.Card) bool { return c.ID == id })
		if i < 0 {
			continue
		}
		holders := r.naive.holders(f.ID, id)
		if len(holders) == 0 {
			delete(r.loose, id)
		}
		forced := slices.ContainsFunc(holders, func(h ledger.Holder) bool { return r.naive.pods[h.Pod].forced })
		if over(&f.Cards[i], holders) && !forced && !r.loose[id] {
			t.Fatalf("%s is oversold: %+v", id, holders)
		}
		if crowded(holders) && !forced {
			t.Fatalf("%s is shared by whom it must not: %+v", id, holders)
		}
	}
}

// CheckRebuilt: a new ledger that is told the same in another order knows the
// same, as after a restart.
func (r *run) CheckRebuilt(t *rapid.T) {
	again := ledger.New(r.naive.rules)
	pods := slices.Sorted(slices.Values(r.ledger.Pods()))
	slices.Reverse(pods)
	for _, id := range pods {
		h := r.naive.pods[id]
		if h.state == ledger.Claimed {
			continue
		}
		again.Confirm(h.p)
		switch h.state {
		case ledger.Draining:
			_ = again.Drain(id)
		case ledger.Lingering:
			again.Linger(id, h.until)
		case ledger.Held, ledger.Bound, ledger.Claimed:
		}
	}
	again.Fence(r.naive.fences)
	for _, id := range r.naive.nodeIDs() {
		again.SetNode(r.naive.nodes[id])
	}
	for _, id := range pods {
		switch h := r.naive.pods[id]; {
		case h.onClaim:
			return // nobody goes for others who has a claim, and that it stands on one is not told
		case h.state == ledger.Claimed && again.Claim(h.p, h.victims) != nil:
			return // there is no room for it any more: who has it made goes by that
		}
	}
	for id, n := range r.ledger.Snapshot().Nodes() {
		m, _ := again.Snapshot().Node(id)
		if diff := cmp.Diff(n.Cards, m.Cards, measures()); diff != "" || n.UsedCPU != m.UsedCPU {
			t.Fatalf("%s after a restart (-before +after):\n%s", id, diff)
		}
	}
	for _, g := range groups() {
		if diff := cmp.Diff(r.ledger.Snapshot().Members(g), again.Snapshot().Members(g), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("members of %s after a restart (-before +after):\n%s", g, diff)
		}
	}
	for _, account := range anyAccounts() {
		if diff := cmp.Diff(r.ledger.Snapshot().Spent(account), again.Snapshot().Spent(account)); diff != "" {
			t.Fatalf("account %s after a restart (-before +after):\n%s", account, diff)
		}
	}
}
