package ledger_test

import (
	"maps"
	"slices"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// naive is the ledger as one would write it with no regard to cost: what each
// node said last, what each pod holds, and every question answered from scratch.
// It shares no code with the ledger, nor the arithmetic of gpu.Placement.
type naive struct {
	nodes  map[gpu.NodeID]ledger.Facts
	pods   map[gpu.PodID]*naiveHold
	fences map[gpu.NodeID][]gpu.CardID
	rules  anyRules
	// services are the groups that are one.
	services map[gpu.GroupID]ledger.Service
}

type naiveHold struct {
	p     gpu.Placement
	state ledger.State
	until time.Time
	// forced says that the API server said so and not Reserve: such a hold may
	// break every rule.
	forced bool
	// victims are who is to go for a claim, onClaim that the bind stands on one. A sure
	// one nothing has been forced upon since.
	victims       []gpu.PodID
	onClaim, sure bool
}

func newNaive(rules anyRules) *naive {
	return &naive{nodes: map[gpu.NodeID]ledger.Facts{}, pods: map[gpu.PodID]*naiveHold{}, rules: rules, services: map[gpu.GroupID]ledger.Service{}}
}

// owned is p as one of the tenant's that its namespace belongs to.
func (m *naive) owned(p gpu.Placement) gpu.Placement {
	p.Tenant = m.rules.owner[p.Namespace]
	return p
}

// use is what p holds of a card; false when that is nothing.
func (m *naive) use(p *gpu.Placement, card gpu.CardID) (gpu.Use, bool) {
	var app, initial, sidecar gpu.Use
	any := false
	for _, g := range p.Grants {
		for _, s := range g.Shares {
			if s.Card != card {
				continue
			}
			any = true
			switch g.Role {
			case gpu.App:
				app.Memory += s.Memory
				app.Cores += s.Cores
				app.Slots++
			case gpu.Init:
				initial.Memory = max(initial.Memory, s.Memory)
				initial.Cores = max(initial.Cores, s.Cores)
				initial.Slots = 1
			case gpu.Sidecar:
				sidecar.Memory += s.Memory
				sidecar.Cores += s.Cores
				sidecar.Slots++
			}
			app.Exclusive = app.Exclusive || s.Exclusive
		}
	}
	return gpu.Use{
		Memory:    max(app.Memory, initial.Memory) + sidecar.Memory,
		Cores:     max(app.Cores, initial.Cores) + sidecar.Cores,
		Slots:     max(app.Slots, initial.Slots) + sidecar.Slots,
		Exclusive: app.Exclusive,
	}, any
}

// sameUses reports whether two placements hold the same of every card.
func (m *naive) sameUses(p, q *gpu.Placement) bool {
	for _, id := range allCards() {
		a, hasA := m.use(p, id)
		b, hasB := m.use(q, id)
		if a != b || hasA != hasB {
			return false
		}
	}
	return true
}

func (m *naive) podsOn(node gpu.NodeID) []gpu.PodID {
	var ids []gpu.PodID
	for id, h := range m.pods {
		if h.p.Node == node {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (m *naive) holders(node gpu.NodeID, card gpu.CardID) []ledger.Holder {
	return m.takers(node, card, func(h *naiveHold) bool { return h.state != ledger.Claimed })
}

func (m *naive) takers(node gpu.NodeID, card gpu.CardID, such func(*naiveHold) bool) []ledger.Holder {
	var all []ledger.Holder
	for _, id := range m.podsOn(node) {
		if u, ok := m.use(&m.pods[id].p, card); ok && such(m.pods[id]) {
			all = append(all, ledger.Holder{Pod: id, Tenant: m.rules.owner[m.pods[id].p.Namespace], Use: u})
		}
	}
	return all
}

func sum(holders []ledger.Holder) gpu.Use {
	var s gpu.Use
	for _, h := range holders {
		s.Memory += h.Use.Memory
		s.Cores += h.Use.Cores
		s.Slots += h.Use.Slots
		s.Exclusive = s.Exclusive || h.Use.Exclusive
	}
	return s
}

// closed returns the node's closed cards: vendor by vendor, then for claims on
// any vendor.
func (m *naive) closed(node gpu.NodeID) map[gpu.CardID]bool {
	shut := map[gpu.CardID]bool{}
	for _, vendor := range append(gpu.Vendors(), "") {
		claims, all := 0, false
		for _, id := range m.podsOn(node) {
			for _, f := range m.pods[id].p.Foreign {
				if f.Vendor == vendor {
					claims += max(f.Cards, 0)
					all = all || f.Cards == gpu.AllCards
				}
			}
		}
		var ours, free []gpu.CardID
		for _, c := range m.nodes[node].Cards {
			if vendor != "" && c.Vendor != vendor {
				continue
			}
			ours = append(ours, c.ID)
			if len(m.holders(node, c.ID)) == 0 && !shut[c.ID] && !m.fenced(node, c.ID) {
				free = append(free, c.ID)
			}
		}
		closing := ours
		if !all && claims <= len(free) {
			closing = free[len(free)-claims:]
		}
		for _, id := range closing {
			shut[id] = true
		}
		free = slices.DeleteFunc(free, func(id gpu.CardID) bool { return shut[id] })
		for range min(m.unlisted(node, vendor), len(free)) {
			shut[free[len(free)-1]] = true
			free = free[:len(free)-1]
		}
	}
	return shut
}

func (m *naive) fenced(node gpu.NodeID, card gpu.CardID) bool {
	return slices.Contains(m.fences[node], card)
}

// unlisted counts the cards of a vendor that pods hold and the node does not
// have, each pod's by itself.
func (m *naive) unlisted(node gpu.NodeID, vendor gpu.Vendor) int {
	n := 0
	for _, id := range m.podsOn(node) {
		seen := map[gpu.CardID]bool{}
		if m.pods[id].state == ledger.Claimed {
			continue
		}
		for _, g := range m.pods[id].p.Grants {
			for _, s := range g.Shares {
				has := slices.ContainsFunc(m.nodes[node].Cards, func(c gpu.Card) bool { return c.ID == s.Card })
				if s.Vendor == vendor && !has && !seen[s.Card] {
					seen[s.Card] = true
					n++
				}
			}
		}
	}
	return n
}

// wrong returns the rules that p would break on its node.
func (m *naive) wrong(p *gpu.Placement) []error {
	f, ok := m.nodes[p.Node]
	if !ok {
		return []error{ledger.ErrUnknownNode}
	}
	if len(p.Foreign) > 0 {
		return []error{ledger.ErrIllegal}
	}
	var wrong []error
	cards := 0
	for _, id := range allCards() {
		if u, ok := m.use(p, id); ok {
			cards++
			wrong = append(wrong, m.wrongOn(f, id, m.rules.owner[p.Namespace], u)...)
		}
	}
	if cards > 0 && m.rules.closed[p.Namespace] != "" {
		wrong = append(wrong, ledger.ErrInactive)
	}
	if len(m.passes(p)) > 0 {
		wrong = append(wrong, ledger.ErrQuota)
	}
	return wrong
}

func (m *naive) wrongOn(f ledger.Facts, id gpu.CardID, tenant gpu.TenantID, u gpu.Use) []error {
	i := slices.IndexFunc(f.Cards, func(c gpu.Card) bool { return c.ID == id })
	if i < 0 || m.closed(f.ID)[id] || m.fenced(f.ID, id) {
		return []error{ledger.ErrNoRoom}
	}
	others := m.holders(f.ID, id)
	claims := m.claims(f.ID, id)
	joint := append(slices.Clone(others), ledger.Holder{Use: u}, ledger.Holder{Use: m.claimed(f.ID, id)})
	var wrong []error
	if over(&f.Cards[i], joint) || crowded(slices.Concat(others, claims, []ledger.Holder{{Use: u}})) {
		wrong = append(wrong, ledger.ErrNoRoom)
	}
	apart := func(c ledger.Holder) bool { return !m.rules.MayShare(tenant, c.Tenant) }
	if m.mixed(append(others, ledger.Holder{Tenant: tenant})) || slices.ContainsFunc(claims, apart) {
		wrong = append(wrong, ledger.ErrBoundary)
	}
	return wrong
}

// over reports whether slices take more of the card than they may.
func over(c *gpu.Card, holders []ledger.Holder) bool {
	s := sum(holders)
	return !s.Exclusive && (s.Memory > c.Usable || s.Cores > c.UsableCores || s.Slots > c.MaxSlices)
}

// crowded reports whether somebody who must be alone is not.
func crowded(holders []ledger.Holder) bool { return len(holders) > 1 && sum(holders).Exclusive }

// mixed reports whether two of them may not share.
func (m *naive) mixed(holders []ledger.Holder) bool {
	for i, a := range holders {
		for _, b := range holders[:i] {
			if !m.rules.MayShare(a.Tenant, b.Tenant) {
				return true
			}
		}
	}
	return false
}

// reserve does what Reserve would, and returns the errors that it may answer;
// none when it accepts.
func (m *naive) reserve(p gpu.Placement) []error {
	if h, ok := m.pods[p.Pod]; ok {
		switch {
		case h.state == ledger.Lingering:
			return []error{ledger.ErrIllegal}
		case h.state == ledger.Claimed && h.p.Node == p.Node:
			rest := m.gone()
			delete(rest.pods, p.Pod)
			if wrong := rest.wrong(&p); len(wrong) > 0 {
				return wrong
			}
			h.p, h.state, h.onClaim = p, ledger.Held, true
			return nil
		case h.p.Node != p.Node || !m.sameUses(&h.p, &p) || !slices.Equal(h.p.Foreign, p.Foreign):
			return []error{ledger.ErrHeldElsewhere}
		}
		return nil
	}
	if wrong := m.wrong(&p); len(wrong) > 0 {
		return wrong
	}
	m.pods[p.Pod] = &naiveHold{p: p, state: ledger.Held}
	return nil
}

func (m *naive) confirm(p gpu.Placement) {
	h, ok := m.pods[p.Pod]
	if !ok {
		m.pods[p.Pod] = &naiveHold{p: p, state: ledger.Bound, forced: true}
		m.unsure()
		return
	}
	if h.p.Node != p.Node || h.p.Namespace != p.Namespace || !m.sameUses(&h.p, &p) || h.state == ledger.Claimed {
		h.forced = true
		m.unsure()
	}
	h.p, h.until, h.onClaim, h.victims = p, time.Time{}, false, nil
	if h.state != ledger.Draining {
		h.state = ledger.Bound
	}
}

func (m *naive) expire(now time.Time) []gpu.PodID {
	return m.endIf(func(h *naiveHold) bool { return h.state == ledger.Lingering && !h.until.After(now) })
}

func (m *naive) endLingering(node gpu.NodeID) {
	m.endIf(func(h *naiveHold) bool { return h.state == ledger.Lingering && h.p.Node == node })
}

func (m *naive) endIf(end func(*naiveHold) bool) []gpu.PodID {
	var ended []gpu.PodID
	for id, h := range m.pods {
		if end(h) {
			ended = append(ended, id)
		}
	}
	for _, id := range ended {
		delete(m.pods, id)
	}
	slices.Sort(ended)
	return ended
}

func (m *naive) setNode(f ledger.Facts) {
	old, ok := m.nodes[f.ID]
	if ok && old.BootID != "" && f.BootID != "" && old.BootID != f.BootID {
		m.endLingering(f.ID)
	}
	m.unsure()
	f.Cards = slices.SortedFunc(slices.Values(f.Cards), func(a, b gpu.Card) int { return a.Index - b.Index })
	m.nodes[f.ID] = f
}

func (m *naive) removeNode(id gpu.NodeID) {
	m.endLingering(id)
	m.unsure()
	delete(m.nodes, id)
}

// members returns the nodes, known or not, with pods of the group; nobody is of "".
func (m *naive) members(g gpu.GroupID) []gpu.NodeID {
	on := map[gpu.NodeID]bool{}
	for _, h := range m.pods {
		if g != "" && h.p.Group == g {
			on[h.p.Node] = true
		}
	}
	return slices.Sorted(maps.Keys(on))
}

// nodeIDs returns the known nodes in order.
func (m *naive) nodeIDs() []gpu.NodeID { return slices.Sorted(maps.Keys(m.nodes)) }
