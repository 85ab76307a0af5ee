package ledger_test

import (
	"errors"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// claims returns who has claimed something of the card, in order.
func (m *naive) claims(node gpu.NodeID, card gpu.CardID) []ledger.Holder {
	return m.takers(node, card, func(h *naiveHold) bool { return h.state == ledger.Claimed })
}

// claimed is what the claims of a card take beyond what their victims have of it.
func (m *naive) claimed(node gpu.NodeID, card gpu.CardID) (sum gpu.Use) {
	spoken := map[gpu.PodID]bool{}
	for _, id := range m.podsOn(node) {
		h := m.pods[id]
		if h.state != ledger.Claimed {
			continue
		}
		more, on := m.use(&h.p, card)
		for _, v := range m.leaving(h, spoken) {
			if v.p.Node == node && on {
				had, _ := m.use(&v.p, card)
				more.Memory, more.Cores, more.Slots = more.Memory-had.Memory, more.Cores-had.Cores, more.Slots-had.Slots
			}
		}
		sum = sum.Plus(gpu.Use{Memory: max(0, more.Memory), Cores: max(0, more.Cores), Slots: max(0, more.Slots), Exclusive: more.Exclusive})
	}
	return sum
}

// leaving returns those who are to go for h and hold something, each for the first
// claim alone.
func (m *naive) leaving(h *naiveHold, spoken map[gpu.PodID]bool) (all []*naiveHold) {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(h.victims))) {
		if v, there := m.pods[id]; there && v.state != ledger.Claimed && !v.onClaim && !spoken[id] {
			all = append(all, v)
		}
	}
	for _, id := range h.victims {
		spoken[id] = true
	}
	return all
}

// main is what of processors and main memory the node's pods use, claims as far as
// they take more than their victims.
func (m *naive) main(node gpu.NodeID) (cpu gpu.MilliCPU, memory gpu.Bytes) {
	spoken := map[gpu.PodID]bool{}
	for _, id := range m.podsOn(node) {
		h := m.pods[id]
		c, b := h.p.CPU, h.p.Memory
		if h.state == ledger.Claimed {
			for _, v := range m.leaving(h, spoken) {
				if v.p.Node == node {
					c, b = c-v.p.CPU, b-v.p.Memory
				}
			}
		}
		cpu, memory = cpu+max(0, c), memory+max(0, b)
	}
	return cpu, memory
}

// due is what claims take of the account beyond what their victims are charged to it.
func (m *naive) due(account gpu.Account, kind gpu.Spend) gpu.Spend {
	sum, spoken := kind, map[gpu.PodID]bool{}
	for _, id := range slices.Sorted(maps.Keys(m.pods)) {
		h := m.pods[id]
		if h.state != ledger.Claimed {
			continue
		}
		more := m.spends(&h.p, kind.Vendor, kind.Resource)
		for _, v := range m.leaving(h, spoken) {
			if had := m.spends(&v.p, kind.Vendor, kind.Resource); slices.Contains(m.rules.accounts[v.p.Namespace], account) {
				more.Devices, more.Whole, more.Memory, more.Cores = more.Devices-had.Devices, more.Whole-had.Whole, more.Memory-had.Memory, more.Cores-had.Cores
			}
		}
		if slices.Contains(m.rules.accounts[h.p.Namespace], account) {
			sum.Devices, sum.Whole, sum.Memory, sum.Cores = sum.Devices+max(0, more.Devices), sum.Whole+max(0, more.Whole), sum.Memory+max(0, more.Memory), sum.Cores+max(0, more.Cores)
		}
	}
	return sum
}

// gone is the cluster without these pods, as far as they are on nodes that are known.
func (m *naive) gone(pods ...gpu.PodID) *naive {
	rest := *m
	rest.pods = maps.Clone(m.pods)
	maps.DeleteFunc(rest.pods, func(id gpu.PodID, h *naiveHold) bool {
		_, known := m.nodes[h.p.Node]
		return known && slices.Contains(pods, id) && h.state != ledger.Claimed && !h.onClaim
	})
	return &rest
}

// claim does what Claim would, and returns the errors that it may answer.
func (m *naive) claim(p gpu.Placement, victims []gpu.PodID) []error {
	h, ok := m.pods[p.Pod]
	switch {
	case !ok:
		if wrong := m.gone(victims...).wrong(&p); len(wrong) > 0 {
			return wrong
		}
		m.pods[p.Pod] = &naiveHold{p: p, state: ledger.Claimed, victims: victims, sure: true}
		m.doubt(p.Pod)
	case h.state != ledger.Held && h.state != ledger.Claimed:
		return []error{ledger.ErrIllegal}
	case h.p.Node != p.Node:
		return []error{ledger.ErrHeldElsewhere}
	case h.state == ledger.Held && !h.onClaim:
		m.unsure() // others may have counted on its going
		h.onClaim, h.victims = true, victims
	}
	return nil
}

// doubt says that claims which share a victim with the pod's, and its own, may have to
// wait for it: it counts for one of them alone.
func (m *naive) doubt(pod gpu.PodID) {
	for _, victim := range m.pods[pod].victims {
		for id, h := range m.pods {
			if id != pod && slices.Contains(h.victims, victim) {
				m.unsure()
			}
		}
	}
}

// unsure says that something has happened that no claim is a promise against.
func (m *naive) unsure() {
	for _, h := range m.pods {
		h.sure = false
	}
}

// Claim tries a random claim, with anybody as its victims.
func (r *run) Claim(t *rapid.T) {
	p := drawPlacement(t, drawPod(t))
	var victims []gpu.PodID
	for range rapid.IntRange(0, 4).Draw(t, "victims") {
		if v := drawPod(t); v != p.Pod {
			victims = append(victims, v)
		}
	}
	before := r.ledger.Snapshot()
	err := r.ledger.Claim(p, victims)
	want := r.naive.claim(p, victims)
	if (err == nil) != (len(want) == 0) || err != nil && !slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }) {
		t.Fatalf("Claim = %v, want one of %v", err, want)
	}
	r.forced = r.forced || err == nil // it is charged beside victims whose cards are of another kind
	after := r.ledger.Snapshot()
	if err != nil && freeze(before) != freeze(after) {
		t.Fatal("a refused Claim changed the books")
	}
	for id, n := range before.Nodes() {
		now, _ := after.Node(id)
		for i := range n.Cards {
			if n.Cards[i].FreeMemory() < now.Cards[i].FreeMemory() || n.Cards[i].Divided != now.Cards[i].Divided || n.Cards[i].Foreign() != now.Cards[i].Foreign() {
				t.Fatalf("a claim has made room, divided or measured: %+v, was %+v", now.Cards[i], n.Cards[i])
			}
		}
	}
}

func (r *run) Unclaim(t *rapid.T) {
	pod := drawPod(t)
	r.ledger.Unclaim(pod)
	switch h := r.naive.pods[pod]; {
	case h == nil:
	case h.state == ledger.Claimed:
		delete(r.naive.pods, pod)
	default:
		h.onClaim, h.victims = false, nil
	}
}

// checkClaims: it is known who has a claim, and where; and whoever has one gets the room
// once those have gone who were to go for it alone, whatever everybody else has reserved
// since. Of what is forced upon the books no claim is a promise.
func (r *run) checkClaims(t *rapid.T, s ledger.Snapshot) {
	for _, id := range podIDs() {
		h := r.naive.pods[id]
		node, claimed := s.Claim(id)
		if want := h != nil && (h.state == ledger.Claimed || h.onClaim); want != claimed || want && node != h.p.Node {
			t.Fatalf("Claim(%s) = %s, %t, want %t", id, node, claimed, want)
		}
		if h == nil || h.state != ledger.Claimed || !h.sure || len(r.naive.leaving(h, map[gpu.PodID]bool{})) > 0 {
			continue
		}
		if _, err := s.With(h.p); err != nil {
			t.Fatalf("who was to go for %s has gone, and it does not get its room: %v", id, err)
		}
	}
}
