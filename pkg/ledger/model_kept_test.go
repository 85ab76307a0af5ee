package ledger_test

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// missing is what the service takes back of a card beyond what members on the node have
// of it.
func (m *naive) missing(node gpu.NodeID, card gpu.CardID, s *ledger.Service) (left gpu.Use) {
	for i := range s.Kept {
		if p := &s.Kept[i]; p.Node == node {
			if u, on := m.use(p, card); on {
				left = sum([]ledger.Holder{{Use: left}, {Use: u}})
			}
		}
	}
	for _, id := range m.podsOn(node) {
		h := m.pods[id]
		had, on := m.use(&h.p, card)
		switch {
		case !on || h.p.Group != s.Group || h.state == ledger.Claimed:
		case had.Exclusive:
			return gpu.Use{}
		default:
			left.Memory, left.Cores, left.Slots = max(0, left.Memory-had.Memory), max(0, left.Cores-had.Cores), max(0, left.Slots-had.Slots)
		}
	}
	return left
}

// missingMain is missing of processors and main memory.
func (m *naive) missingMain(node gpu.NodeID, s *ledger.Service) (cpu gpu.MilliCPU, memory gpu.Bytes) {
	for _, p := range s.Kept {
		if p.Node == node {
			cpu, memory = cpu+p.CPU, memory+p.Memory
		}
	}
	for _, id := range m.podsOn(node) {
		if h := m.pods[id]; h.p.Group == s.Group && h.state != ledger.Claimed {
			cpu, memory = cpu-h.p.CPU, memory-h.p.Memory
		}
	}
	return max(0, cpu), max(0, memory)
}

// keeps says what is kept of the node, for whom, as far as that can be compared.
func (m *naive) keeps(node gpu.NodeID) (all []ledger.Kept) {
	for _, g := range slices.Sorted(maps.Keys(m.services)) {
		s := m.services[g]
		if slices.ContainsFunc(s.Kept, func(p gpu.Placement) bool { return p.Node == node }) {
			all = append(all, ledger.Kept{Group: g, Service: s.Name, From: s.From})
		}
	}
	return all
}

// viewer is somebody who looks for room.
type viewer struct {
	group gpu.GroupID
	until time.Time
}

func viewers() []viewer {
	return []viewer{{}, {"", start.Add(time.Hour)}, {"", start.Add(time.Hour + 1)}, {"g", time.Time{}}, {"h", start.Add(3 * time.Hour)}}
}

// SetService makes a group a service that keeps something, or nothing.
func (r *run) SetService(t *rapid.T) {
	g := rapid.SampledFrom(groups()).Draw(t, "group")
	s := ledger.Service{Group: g, Name: "a/" + string(g), From: start.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "from")) * time.Hour)}
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		p := drawPlacement(t, "former")
		p.Namespace = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace of the group")
		if len(s.Kept) > 0 {
			p.Namespace = s.Kept[0].Namespace
		}
		s.Kept = append(s.Kept, p)
	}
	if rapid.Bool().Draw(t, "as they are") { // what is bound now, as before a closing
		s.Kept = nil
		for _, id := range podIDs() {
			if h := r.naive.pods[id]; h != nil && h.p.Group == g && (len(s.Kept) == 0 || h.p.Namespace == s.Kept[0].Namespace) {
				s.Kept = append(s.Kept, h.p)
			}
		}
	}
	before := r.ledger.Snapshot()
	r.ledger.SetService(s)
	after := r.ledger.Snapshot()
	if diff := diff.Diff(held(before), held(after)); diff != "" {
		t.Fatalf("a promise has moved pods (-before +after):\n%s", diff)
	}
	old := r.naive.services[g]
	for id, n := range before.Nodes() {
		is, _ := after.Node(id)
		mine := func(s ledger.Service) (all []gpu.Placement) {
			return slices.DeleteFunc(slices.Clone(s.Kept), func(p gpu.Placement) bool { return p.Node != id })
		}
		same := diff.Equal(mine(old), mine(s)) && (len(mine(s)) == 0 || old.From.Equal(s.From))
		if same && n != is || len(mine(old))+len(mine(s)) == 0 && n != is {
			t.Fatalf("%s is another though nothing else is kept of it", id)
		}
		if n != is && n.Version == is.Version {
			t.Fatalf("%s is another of the same version", id)
		}
	}
	r.naive.services[g] = s
	s.Kept = slices.Clone(s.Kept)
	s.Closing = &ledger.Closing{At: start, Stay: 1}
	r.ledger.SetService(s)
	if !r.ledger.Snapshot().Same(after) {
		t.Fatal("another closing has changed nodes")
	}
}

func (r *run) DropService(t *rapid.T) {
	g := rapid.SampledFrom(groups()).Draw(t, "group")
	r.ledger.DropService(g)
	delete(r.naive.services, g)
}

// checkKeeping: it is known what is a service, and whoever looks for room sees what is
// kept from him, and nothing else, as claimed.
func (r *run) checkKeeping(t *rapid.T, s ledger.Snapshot) {
	keeps := false
	for _, id := range nodeIDs() {
		keeps = keeps || len(r.naive.keeps(id)) > 0
	}
	if len(s.Services()) != len(r.naive.services) || s.Keeps() != keeps {
		t.Fatalf("%d services, keeping: %t; want %d, %t", len(s.Services()), s.Keeps(), len(r.naive.services), keeps)
	}
	for _, g := range append(groups(), "") {
		got, known := s.Service(g)
		if want, is := r.naive.services[g]; known != is || known && !diff.Equal(want.Kept, got.Kept) {
			t.Fatalf("Service(%q) = %+v, %t, want %+v, %t", g, got, known, want, is)
		}
	}
	for id, n := range s.Nodes() {
		kept := []ledger.Kept{}
		for _, k := range n.Kept() {
			kept = append(kept, ledger.Kept{Group: k.Group, Service: k.Service, From: k.From})
		}
		if len(kept) != len(r.naive.keeps(id)) {
			t.Fatalf("kept of %s: %+v, want %+v", id, kept, r.naive.keeps(id))
		}
		for _, v := range viewers() {
			r.checkViewer(t, n, v)
		}
	}
}

func (r *run) checkViewer(t *rapid.T, n *ledger.Node, v viewer) {
	if !n.Keeps() && len(r.naive.keeps(n.ID)) == 0 && n.For(v.group, v.until) == n {
		return
	}
	want, holds, cpu, memory, same := slices.Clone(n.Cards), len(n.Holds), n.UsedCPU, n.UsedMemory, true
	var first *ledger.Service
	for _, k := range r.naive.keeps(n.ID) {
		s := r.naive.services[k.Group]
		if k.Group == v.group || !v.until.IsZero() && !s.From.Before(v.until) {
			continue
		}
		if first == nil || s.From.Before(first.From) {
			first = &s
		}
		c, m := r.naive.missingMain(n.ID, &s)
		cpu, memory = cpu+c, memory+m
		any := c > 0 || m > 0
		for _, id := range allCards() {
			u := r.naive.missing(n.ID, id, &s)
			if u == (gpu.Use{}) {
				continue
			}
			any = true
			for i := range want {
				if want[i].ID == id {
					x := ledger.Holder{Pod: "kept:" + gpu.PodID(k.Group), Tenant: r.naive.rules.owner[s.Kept[0].Namespace], Use: u}
					want[i].Claims = slices.SortedFunc(slices.Values(append(slices.Clone(want[i].Claims), x)), func(a, b ledger.Holder) int { return cmp.Compare(a.Pod, b.Pod) })
					want[i].Claimed = sum([]ledger.Holder{{Use: want[i].Claimed}, {Use: u}})
				}
			}
		}
		if any {
			same, holds = false, holds+1
		}
	}
	if k := n.FirstKept(v.group, v.until); (k == nil) != (first == nil) || k != nil && !k.From.Equal(first.From) {
		t.Fatalf("what is kept first of %s from %+v: %+v, want %+v", n.ID, v, k, first)
	}
	got := n.For(v.group, v.until)
	if got != got.For(v.group, v.until) || same != (got == n) {
		t.Fatalf("%s for %+v: it is another twice, or is not itself: %t", n.ID, v, same)
	}
	if d := differ(want, got.Cards); d != "" || got.UsedCPU != cpu || got.UsedMemory != memory || len(got.Holds) != holds {
		t.Fatalf("%s for %+v: %d holds, %d, %d, want %d, %d, %d; cards (-want +got):\n%s", n.ID, v, len(got.Holds), got.UsedCPU, got.UsedMemory, holds, cpu, memory, d)
	}
	if !slices.IsSortedFunc(got.Holds, func(a, b *ledger.Hold) int { return cmp.Compare(a.Pod, b.Pod) }) {
		t.Fatalf("holds of %s for %+v are out of order", n.ID, v)
	}
	if got != n && got.Version == n.Version {
		t.Fatalf("%s for %+v has the version that it has for others", n.ID, v)
	}
	if got == n {
		return
	}
	open, raw := got.Unclaimed(), n.Unclaimed()
	for i := range open.Cards {
		if a, b := &open.Cards[i], &raw.Cards[i]; a.FreeMemory() != b.FreeMemory() || a.Foreign() != b.Foreign() || len(a.Claims) > 0 || a.Closed != b.Closed || a.Departures != b.Departures {
			t.Fatalf("%s for %+v, without claims: %+v, want %+v", n.ID, v, a, b)
		}
	}
}

func differ(want, got []ledger.Card) string {
	if reflect.DeepEqual(want, got) {
		return "" // the usual case, and quick
	}
	return diff.Diff(want, got)
}
