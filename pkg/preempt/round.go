package preempt

import (
	"cmp"
	"math"
	"slices"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// patience is how long after its time a pod that is ending is still counted on. The
// watchdog has ended it by force by then, if anybody can.
const patience = 2 * time.Minute

// foresight is how long before its time a pod that is ending is counted on: nobody
// waits for hours for one with a grace of hours while others may be ended.
const foresight = 10 * time.Minute

// round is what a World comes to for whoever asks.
type round struct {
	sites map[gpu.NodeID]*site
	units map[string][]*Pod // unit -> its members, in order
	spent map[gpu.TenantID]int
	going map[gpu.PodID]struct{} // victims of plans of this round that are being carried out
	made  []promise
}

// site is a node by who is there.
type site struct {
	may   []*Pod      // who may be ended for somebody, in order
	going []gpu.PodID // who is ending, and not long overdue
	// spread says that some of may are of units that are on other nodes too.
	spread bool
	mark   uint64 // tells apart what the others say
}

// promise is a plan that was made in this round.
type promise struct {
	pod     gpu.PodID
	node    gpu.NodeID
	victims []Pod
}

// promised notes a plan, in the place of an earlier one for the pod.
func (r *round) promised(p promise) {
	r.made = slices.DeleteFunc(r.made, func(o promise) bool { return o.pod == p.pod })
	r.made = append(r.made, p)
}

// look returns the round, in which plans that have been carried out since are known.
func (w *World) look() *round {
	if w.round == nil {
		w.round = newRound(w)
	}
	r := w.round
	r.made = slices.DeleteFunc(r.made, func(p promise) bool {
		n, ok := w.State.Node(p.node)
		if !ok || n.Hold(p.pod) == nil {
			return false
		}
		r.follow(w, p)
		return true
	})
	return r
}

func newRound(w *World) *round {
	r := &round{sites: make(map[gpu.NodeID]*site, len(w.Pods)), units: map[string][]*Pod{}, going: map[gpu.PodID]struct{}{}}
	for _, pods := range w.Pods {
		for i := range pods {
			if p := &pods[i]; p.Unit != "" {
				r.units[p.Unit] = append(r.units[p.Unit], p)
			}
		}
	}
	for _, members := range r.units {
		slices.SortFunc(members, inOrder)
	}
	if w.Rules.PerHour > 0 {
		r.spent = map[gpu.TenantID]int{}
		for i := range w.History {
			if e := &w.History[i]; w.Now.Before(e.At.Add(time.Hour)) {
				r.spent[e.Tenant]++
			}
		}
	}
	for node := range w.Pods {
		r.sites[node] = r.site(w, node)
	}
	return r
}

// follow takes the victims of a plan that is being carried out for pods that are ending.
func (r *round) follow(w *World, p promise) {
	for i := range p.victims {
		v := &p.victims[i]
		if _, known := r.going[v.ID]; r.spent != nil && !known {
			r.spent[tenant(w, v)]++
		}
		r.going[v.ID] = struct{}{}
	}
	for i := range p.victims {
		node := p.victims[i].Node
		r.sites[node] = r.site(w, node)
	}
	if r.spent == nil {
		return
	}
	for node := range w.Pods { // what is left to a tenant is so everywhere
		r.sites[node] = r.site(w, node)
	}
}

// inOrder puts those first who are ended first.
func inOrder(a, b *Pod) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
}

func (r *round) site(w *World, node gpu.NodeID) *site {
	s := &site{}
	for i := range w.Pods[node] {
		p := &w.Pods[node][i]
		if _, going := r.going[p.ID]; going || p.Phase == Ending {
			if p.leaves(w.Now) {
				s.going = append(s.going, p.ID)
				s.mark += marked(p, -1)
			}
			continue
		}
		if r.bars(w, p) == "" && !slices.ContainsFunc(r.units[p.Unit], func(m *Pod) bool { return r.bars(w, m) != "" }) {
			s.may = append(s.may, p)
			s.spread = s.spread || slices.ContainsFunc(r.units[p.Unit], func(m *Pod) bool { return m.Node != node })
			s.mark += marked(p, r.left(w, p))
		}
	}
	slices.SortFunc(s.may, inOrder)
	return s
}

// leaves reports whether a pod that is ending is counted on to go soon.
func (p *Pod) leaves(now time.Time) bool {
	return p.Due.IsZero() || now.Before(p.Due.Add(patience)) && !now.Before(p.Due.Add(-foresight))
}

// left returns how many pods of the tenant may be ended yet.
func (r *round) left(w *World, p *Pod) int {
	if r.spent == nil {
		return math.MaxInt32
	}
	return max(0, w.Rules.PerHour-r.spent[tenant(w, p)])
}

func tenant(w *World, p *Pod) gpu.TenantID {
	t, _ := w.State.Owner(p.Namespace)
	return t
}

// marked tells apart all that a search looks at of a pod (FNV-1a).
func marked(p *Pod, left int) uint64 {
	sum := uint64(14695981039346656037)
	text := func(s string) {
		for i := range len(s) {
			sum = (sum ^ uint64(s[i])) * 1099511628211
		}
	}
	text(string(p.ID))
	text(p.Unit)
	for _, n := range [...]uint64{uint64(p.Priority), uint64(p.Created.UnixNano()), uint64(left)} {
		sum = (sum ^ n) * 1099511628211
	}
	return sum
}

// entry is who is ended together: a pod, or all of a unit, in order.
type entry struct {
	pods []*Pod
	sum  int64 // of their priorities
}

// entries returns who may be ended on the node for the Asker, in order: those alone
// whose holds are known, as nothing is known of what ending the others would free.
func (r *round) entries(s *site, a *Asker, cooled map[string]struct{}, in ledger.Snapshot) []entry {
	all := make([]entry, 0, len(s.may))
	var met map[string]struct{}
	for i, p := range s.may {
		if p.Priority >= a.Priority {
			break
		}
		pods := s.may[i : i+1 : i+1]
		if p.Unit != "" {
			if _, twice := met[p.Unit]; twice {
				continue
			}
			if met == nil {
				met = map[string]struct{}{}
			}
			met[p.Unit], pods = struct{}{}, r.units[p.Unit]
		}
		if out := func(m *Pod) bool { return between(a, m, cooled) != "" || !holds(in, m) }; slices.ContainsFunc(pods, out) {
			continue
		}
		e := entry{pods: pods}
		for _, m := range pods {
			e.sum += int64(m.Priority)
		}
		all = append(all, e)
	}
	return all
}

func holds(in ledger.Snapshot, p *Pod) bool {
	n, ok := in.Node(p.Node)
	return ok && n.Hold(p.ID) != nil
}
