package ledger

import (
	"cmp"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// claims are those who have claimed room, and those whose binds stand on a claim. They
// never change: there are few, and a change copies them. nil is that there are none.
type claims struct {
	all []claimant // ordered by pod
	// due is what they take of accounts beyond what those still take who are to go for
	// them.
	due map[gpu.Account]gpu.Spending
}

type claimant struct {
	hold    *Hold
	leaving []*Hold // those of its victims that hold something, on whatever nodes
}

// Claim returns the node on which room is claimed for the pod, known or not; false
// when none is. A pod whose bind stands on a claim still has it.
func (s Snapshot) Claim(pod gpu.PodID) (gpu.NodeID, bool) {
	if i, ok := s.claims.find(pod); ok {
		return s.claims.all[i].hold.Node, true
	}
	return "", false
}

func (c *claims) find(pod gpu.PodID) (int, bool) {
	if c == nil {
		return 0, false
	}
	return slices.BinarySearchFunc(c.all, pod, func(x claimant, pod gpu.PodID) int { return cmp.Compare(x.hold.Pod, pod) })
}

// owed is what claims take of the account beyond what is charged already.
func (c *claims) owed(a gpu.Account) gpu.Spending {
	if c == nil {
		return nil
	}
	return c.due[a]
}

// replace returns the claims with h in the place of old, of the same pod, either of
// which may be nil. Of a claim that is new, holding finds what its victims have.
func (c *claims) replace(old, h *Hold, holding func(gpu.PodID) *Hold, r Rules) *claims {
	pod := podOf(old, h)
	if (h == nil || h.claim == nil) && !c.mentions(pod) {
		return c // as nearly always
	}
	next := &claims{}
	if c != nil {
		next.all = slices.Clone(c.all)
	}
	for i := range next.all {
		next.all[i].meet(pod, h)
	}
	next.enter(pod, h, holding)
	if len(next.all) == 0 {
		return nil
	}
	return next.charge(r)
}

func podOf(old, h *Hold) gpu.PodID {
	if h != nil {
		return h.Pod
	}
	return old.Pod
}

// mentions reports whether the pod has a claim, or is to go for one.
func (c *claims) mentions(pod gpu.PodID) bool {
	return c != nil && slices.ContainsFunc(c.all, func(x claimant) bool { return x.hold.Pod == pod || x.hold.claim.ends(pod) })
}

// meet notes what a victim holds now, if the pod is one of the claimant's.
func (x *claimant) meet(pod gpu.PodID, h *Hold) {
	if !x.hold.claim.ends(pod) {
		return
	}
	x.leaving = without(x.leaving, func(v *Hold) bool { return v.Pod == pod })
	if h != nil {
		x.leaving = append(x.leaving, h)
	}
}

// enter puts the pod, which holds h, among the claimants or takes it out.
func (c *claims) enter(pod gpu.PodID, h *Hold, holding func(gpu.PodID) *Hold) {
	i, there := c.find(pod)
	switch {
	case h == nil || h.claim == nil:
		if there {
			c.all = slices.Delete(c.all, i, i+1)
		}
	case there && c.all[i].hold.claim == h.claim:
		c.all[i].hold = h
	default:
		x := claimant{hold: h}
		for _, victim := range h.claim.victims {
			if v := holding(victim); v != nil {
				x.leaving = append(x.leaving, v)
			}
		}
		c.all = slices.Insert(c.all, i, x)
	}
}

// charge returns the same claims with what they take of accounts by these rules. Who is
// to go for two of them counts for the first alone.
func (c *claims) charge(r Rules) *claims {
	if c == nil {
		return nil
	}
	next := &claims{all: c.all, due: map[gpu.Account]gpu.Spending{}}
	var spoken []gpu.PodID
	for i := range c.all {
		x := &c.all[i]
		if !isClaim(x.hold) {
			continue
		}
		for _, account := range r.Accounts(x.hold.Namespace) {
			if more := beyond(x.hold.spending, x.leavingOf(account, spoken, r)); len(more) > 0 {
				next.due[account] = next.due[account].Plus(more)
			}
		}
		spoken = append(spoken, x.hold.claim.victims...)
	}
	return next
}

// leavingOf is what is charged to the account of those who are to go for the claimant,
// but for those spoken of.
func (x *claimant) leavingOf(account gpu.Account, spoken []gpu.PodID, r Rules) (sum gpu.Spending) {
	for _, v := range x.leaving {
		if v.claim == nil && !slices.Contains(spoken, v.Pod) && slices.Contains(r.Accounts(v.Namespace), account) {
			sum = sum.Plus(v.spending)
		}
	}
	return sum
}

// beyond is what asked is more than freed, of each kind of card.
func beyond(asked, freed gpu.Spending) (more gpu.Spending) {
	for _, a := range asked {
		same := func(f gpu.Spend) bool { return f.Vendor == a.Vendor && f.Resource == a.Resource }
		if i := slices.IndexFunc(freed, same); i >= 0 {
			f := freed[i]
			a.Devices, a.Whole = max(0, a.Devices-f.Devices), max(0, a.Whole-f.Whole)
			a.Memory, a.Cores = max(0, a.Memory-f.Memory), max(0, a.Cores-f.Cores)
		}
		more = more.Plus(gpu.Spending{a})
	}
	return more
}
