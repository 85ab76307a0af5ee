package preempt_test

import (
	"cmp"
	"slices"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// naive is the planner by the letter, without anything that saves time.
type naive struct {
	w     *preempt.World
	a     *preempt.Asker
	trial preempt.Trial
	going map[gpu.PodID]bool // victims of plans that are being carried out
}

func newNaive(w *preempt.World, a *preempt.Asker, going map[gpu.PodID]bool) *naive {
	return &naive{w, a, w.Trial(&a.Request, w.State), going}
}

func (n *naive) all() (all []preempt.Pod) {
	for _, pods := range n.w.Pods {
		all = append(all, pods...)
	}
	slices.SortFunc(all, func(a, b preempt.Pod) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
	return all
}

func (n *naive) fits(in ledger.Snapshot, node gpu.NodeID) bool {
	at, ok := in.Node(node)
	if !ok || !n.trial.Fits(in, node) {
		return false
	}
	var cpu gpu.MilliCPU
	var memory gpu.Bytes
	for _, h := range at.Holds {
		cpu, memory = cpu+h.CPU, memory+h.Memory
	}
	r := n.a.Request
	return (at.CPU == 0 || r.CPU == 0 || cpu+r.CPU <= at.CPU) && (at.Memory == 0 || r.Memory == 0 || memory+r.Memory <= at.Memory) &&
		(at.Pods == 0 || len(at.Holds) < at.Pods)
}

// settled is the cluster when those have gone who are ending on the node.
func (n *naive) settled(node gpu.NodeID) ledger.Snapshot {
	s := n.w.State
	for _, p := range n.w.Pods[node] {
		stays := !p.Due.IsZero() && (n.w.Now.Sub(p.Due) >= 2*time.Minute || p.Due.Sub(n.w.Now) > 10*time.Minute)
		if n.going[p.ID] || p.Phase == preempt.Ending && !stays {
			s = s.Without(node, p.ID)
		}
	}
	return s
}

func (n *naive) known(p *preempt.Pod) bool {
	at, ok := n.w.State.Node(p.Node)
	return ok && at.Hold(p.ID) != nil
}

func (n *naive) tenant(p *preempt.Pod) gpu.TenantID { t, _ := n.w.State.Owner(p.Namespace); return t }

// left is how many pods of the tenant may be ended yet.
func (n *naive) left(t gpu.TenantID) int {
	if n.w.Rules.PerHour == 0 {
		return 1 << 30
	}
	left := n.w.Rules.PerHour
	for _, e := range n.w.History {
		if e.Tenant == t && n.w.Now.Sub(e.At) < time.Hour {
			left--
		}
	}
	for _, p := range n.all() {
		if n.going[p.ID] && n.tenant(&p) == t {
			left--
		}
	}
	return left
}

// may is the list of exemptions, for one pod.
func (n *naive) may(p *preempt.Pod) bool {
	r := n.w.Rules
	stage := map[preempt.Stage]preempt.Phase{preempt.OfScheduled: preempt.Scheduled, preempt.OfRunning: preempt.Running}
	phase, on := stage[r.Stage]
	ok := on && p.Phase == phase && !n.going[p.ID] && p.Ours && !p.System && p.Type != gpu.Training && p.Type != gpu.Inference &&
		p.Preemptible && p.Count == 0 && p.Priority < n.a.Priority && (!p.Bare || r.Bare) && p.Unmade == "" && n.left(n.tenant(p)) > 0
	ok = ok && (r.MaxGrace == 0 || p.Grace <= r.MaxGrace)
	if p.Phase == preempt.Running && r.MinRuntime > 0 {
		ok = ok && !p.Since.IsZero() && n.w.Now.Sub(p.Since) >= r.MinRuntime
	}
	if until, blocked := n.w.Blocked[p.ID]; blocked && n.w.Now.Before(until) {
		ok = false
	}
	for _, e := range n.w.History {
		pair := e.By == n.a.Lineage && e.Of == p.Lineage || e.Of == n.a.Lineage && e.By == p.Lineage
		if pair && n.w.Now.Sub(e.At) < r.Cooldown {
			ok = false
		}
	}
	return ok
}

// together are the pods that go if this one does.
func (n *naive) together(p preempt.Pod) []preempt.Pod {
	if p.Unit == "" {
		return []preempt.Pod{p}
	}
	return slices.DeleteFunc(n.all(), func(o preempt.Pod) bool { return o.Unit != p.Unit })
}

// candidates are who may go from the node, each with those that go along, in order.
func (n *naive) candidates(node gpu.NodeID) (all [][]preempt.Pod) {
	for _, p := range n.all() {
		if p.Node != node || slices.ContainsFunc(all, func(e []preempt.Pod) bool { return p.Unit != "" && e[0].Unit == p.Unit }) {
			continue
		}
		e := n.together(p)
		if !slices.ContainsFunc(e, func(m preempt.Pod) bool { return !n.may(&m) || !n.known(&m) }) {
			all = append(all, e)
		}
	}
	return all
}

func (n *naive) without(in ledger.Snapshot, entries [][]preempt.Pod) ledger.Snapshot {
	for _, e := range entries {
		for _, p := range e {
			in = in.Without(p.Node, p.ID)
		}
	}
	return in
}

// victims is what section 9 says of one node.
func (n *naive) victims(node gpu.NodeID, candidates [][]preempt.Pod) [][]preempt.Pod {
	base := n.settled(node)
	for k := 1; k <= len(candidates); k++ {
		if !n.fits(n.without(base, candidates[:k]), node) {
			continue
		}
		set := slices.Clone(candidates[:k])
		for i := len(set) - 1; i >= 0; i-- {
			if rest := slices.Delete(slices.Clone(set), i, i+1); n.fits(n.without(base, rest), node) {
				set, i = rest, len(rest) // from the end again
			}
		}
		taken := map[gpu.TenantID]int{}
		for _, e := range set {
			for _, p := range e {
				t := n.tenant(&p)
				if taken[t]++; taken[t] > n.left(t) {
					return n.victims(node, slices.DeleteFunc(slices.Clone(candidates), func(o []preempt.Pod) bool { return o[0].ID == e[0].ID }))
				}
			}
		}
		return set
	}
	return nil
}

// plan returns what comes of it, and for a plan the node and who goes.
func (n *naive) plan() (preempt.Outcome, gpu.NodeID, []preempt.Pod) {
	if n.a.Never != "" || n.a.Type == gpu.Training || n.w.Rules.Stage == preempt.Disabled {
		return preempt.Exempt, "", nil
	}
	var nodes []gpu.NodeID
	for id := range n.w.State.Nodes() {
		if n.w.Suits == nil || n.w.Suits(n.a, id) {
			nodes = append(nodes, id)
		}
	}
	if slices.ContainsFunc(nodes, func(id gpu.NodeID) bool { return n.fits(n.w.State, id) }) {
		return preempt.FitsNow, "", nil
	}
	if slices.ContainsFunc(nodes, func(id gpu.NodeID) bool { return n.fits(n.settled(id), id) }) {
		return preempt.Waits, "", nil
	}
	var best []preempt.Pod
	var at gpu.NodeID
	for _, id := range nodes {
		if v := slices.Concat(n.victims(id, n.candidates(id))...); len(v) > 0 && (best == nil || lesser(v, best)) {
			best, at = v, id
		}
	}
	switch {
	case best == nil:
		return preempt.Hopeless, "", nil
	case !n.fits(n.without(n.w.State, [][]preempt.Pod{best}), at):
		return preempt.Waits, "", nil // those who are ending have to go, too
	}
	return preempt.Planned, at, best
}

func lesser(a, b []preempt.Pod) bool {
	sum := func(of []preempt.Pod) (s int32) {
		for i := range of {
			s += of[i].Priority
		}
		return s
	}
	return len(a) < len(b) || len(a) == len(b) && sum(a) < sum(b)
}
