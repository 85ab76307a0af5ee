package ledger

import (
	"fmt"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Claim keeps the room of p for its pod while victims, who are to go for it, still have
// it: what they leave goes to nobody else. It makes a hold in the state Claimed. A
// claim is no pod on a card: who is there sees nothing of it, and who comes counts it.
//
// The error is what Reserve would answer were all victims gone, on whatever nodes they
// are. To claim again on the same node is a no-op, even if a bind has chosen other cards
// of it. A bind that is on its way there becomes one that stands on the claim: Unreserve
// leads back to it.
func (l *Ledger) Claim(p gpu.Placement, victims []gpu.PodID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.claim(p, victims); err != nil {
		return fmt.Errorf("claim for pod %s on %s: %w", p.Pod, p.Node, err)
	}
	return nil
}

func (l *Ledger) claim(p gpu.Placement, victims []gpu.PodID) error {
	p.Tenant, _ = l.rules.Owner(p.Namespace)
	old, state := l.at(p.Pod)
	switch {
	case state.after(claim) == illegal:
		return fmt.Errorf("the pod is %s: %w", state, ErrIllegal)
	case state != none && old.Node != p.Node:
		return fmt.Errorf("%s on %s: %w", state, old.Node, ErrHeldElsewhere)
	case state != none:
		if old.claim == nil {
			l.put(old.on(newClaim(victims)))
		}
		return nil
	}
	h := newHold(p, Claimed).on(newClaim(victims))
	if err := l.gone(victims).admit(h); err != nil {
		return err
	}
	l.put(h)
	return nil
}

// Unclaim ends the pod's claim. A bind that stands on it goes on without: Unreserve
// leads to nothing then. It does nothing to any other hold.
func (l *Ledger) Unclaim(pod gpu.PodID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, state := l.at(pod)
	switch {
	case state == none || h.claim == nil:
	case state.after(unclaim) == none:
		l.drop(h)
	default:
		l.put(h.on(nil))
	}
}

// gone is the cluster as it would be without these pods. Who has a claim goes for nobody. It is called with mu held.
func (l *Ledger) gone(pods []gpu.PodID) Snapshot {
	at := map[gpu.NodeID][]gpu.PodID{}
	for _, pod := range pods {
		if h := l.holds[pod]; h != nil && h.claim == nil {
			at[h.Node] = append(at[h.Node], pod)
		}
	}
	s := l.snapshot()
	for node, here := range at {
		s = s.Without(node, here...)
	}
	return s
}

// claimed is what a hold has that is a claim, or stands on one. It never changes.
type claimed struct {
	victims []gpu.PodID // in order, each once
}

func newClaim(victims []gpu.PodID) *claimed {
	return &claimed{slices.Compact(slices.Sorted(slices.Values(victims)))}
}

// on returns the hold as one that stands on that claim, or on none.
func (h *Hold) on(c *claimed) *Hold {
	other := *h
	other.claim = c
	return &other
}

// Unclaimed returns the node as it would be if nothing of it were claimed; itself if
// that is so.
func (n *Node) Unclaimed() *Node {
	if n.Claims == 0 {
		return n
	}
	return build(n.Facts, without(n.Holds, isClaim), n.Fences, n.Boundary, n)
}

func isClaim(h *Hold) bool { return h.State == Claimed }

// ends reports whether the pod is to go for the claim.
func (c *claimed) ends(pod gpu.PodID) bool {
	_, found := slices.BinarySearch(c.victims, pod)
	return found
}

// charged is what quotas have the hold down for by itself; a claim goes by claims.due.
func (h *Hold) charged() gpu.Spending {
	if isClaim(h) {
		return nil
	}
	return h.spending
}

// enterClaims enters the claims of the node, whose holders are there already. Of each it
// counts what it takes beyond what those still have who are to go for it: at no time
// are both there. Who is to go for two of them counts for the first alone.
func (n *Node) enterClaims() {
	var spoken []gpu.PodID
	for _, h := range n.Holds {
		if !isClaim(h) {
			continue
		}
		n.Claims++
		leaving := n.leaving(h, spoken)
		spoken = append(spoken, h.claim.victims...)
		cpu, memory := h.CPU, h.Memory
		for _, v := range leaving {
			cpu, memory = cpu-v.CPU, memory-v.Memory
		}
		n.UsedCPU += max(0, cpu)
		n.UsedMemory += max(0, memory)
		for i := range h.uses {
			if c := n.card(h.uses[i].Card); c != nil {
				c.enterClaim(h, h.uses[i].Use, leaving)
			}
		}
	}
}

// leaving returns the holds of those on the node who are to go for the claim, but for
// those spoken of.
func (n *Node) leaving(h *Hold, spoken []gpu.PodID) (all []*Hold) {
	for _, pod := range h.claim.victims {
		if v := n.Hold(pod); v != nil && v.claim == nil && !slices.Contains(spoken, pod) {
			all = append(all, v)
		}
	}
	return all
}

// enterClaim enters the claim of u, for which these are to go.
func (c *Card) enterClaim(h *Hold, u gpu.Use, leaving []*Hold) {
	c.Claims = append(c.Claims, Holder{h.Pod, h.Tenant, u})
	for i := range c.Holders {
		was := &c.Holders[i]
		if slices.ContainsFunc(leaving, func(v *Hold) bool { return v.Pod == was.Pod }) {
			u.Memory -= was.Use.Memory
			u.Cores -= was.Use.Cores
			u.Slots -= was.Use.Slots
		}
	}
	u.Memory, u.Cores, u.Slots = max(0, u.Memory), max(0, u.Cores), max(0, u.Slots)
	c.Claimed = c.Claimed.Plus(u)
}
