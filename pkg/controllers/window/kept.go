package window

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
)

const (
	// patience is for how long after the opening cards are kept for members who have not
	// come back.
	patience = 15 * time.Minute
	// mostKept bounds how many members a status names, and mostText the bytes for it: an
	// object has room for a megabyte and a half.
	mostKept = 1024
	mostText = 768 << 10
)

// holding is what one member has, or had.
type holding struct {
	member    v1alpha1.TaskGroupMember
	placement gpu.Placement
}

// devices is how many cards are held, a slice counting as one.
func devices(p *gpu.Placement) int64 { return p.Spending().Sum(gpu.Devices) }

// count is how many cards are held by all of them.
func count(all []holding) (sum int64) {
	for i := range all {
		sum += devices(&all[i].placement)
	}
	return sum
}

// presence is where members are.
type presence struct {
	pods  map[gpu.PodID]bool
	cards map[place]bool
	nodes map[gpu.NodeID]bool
}

type place struct {
	node gpu.NodeID
	card gpu.CardID
}

func newPresence() presence {
	return presence{map[gpu.PodID]bool{}, map[place]bool{}, map[gpu.NodeID]bool{}}
}

func (p *presence) add(m *gpu.Placement) {
	p.pods[m.Pod], p.nodes[m.Node] = true, true
	for _, u := range m.Uses() {
		p.cards[place{m.Node, u.Card}] = true
	}
}

// claims is how sure it is that one of them has what is kept.
func (p *presence) claims(h *holding) int {
	on := func(u gpu.CardUse) bool { return p.cards[place{h.placement.Node, u.Card}] }
	switch {
	case p.pods[gpu.PodID(h.member.UID)]:
		return 3
	case slices.ContainsFunc(h.placement.Uses(), on):
		return 2
	case p.nodes[h.placement.Node]:
		return 1
	}
	return 0
}

// keep returns what the members hold, and what was kept for those who have not come back
// since the windows closed last: of most replicas, and of all who are there while an update
// has them be more. Which of them come back trim says once they have left.
func keep(holds, old []holding, most int32) []holding {
	there := newPresence()
	var kept []holding
	for i := range holds {
		there.add(&holds[i].placement)
		if devices(&holds[i].placement) > 0 {
			kept = append(kept, holds[i])
		}
	}
	present := len(kept)
	for i := range old {
		if there.claims(&old[i]) < 2 {
			kept = append(kept, old[i])
		}
	}
	return kept[:min(len(kept), max(int(most), present))]
}

// trim returns what is still to be kept for those of most replicas who are not among the
// members. Those go first whose cards a member has, and then those on whose nodes one is.
// Members who have not left yet leave what they have to themselves, however many they are;
// once the others come back, they have it and it is kept no more.
func trim(kept []holding, members []gpu.Placement, most int32, back bool) []holding {
	owns := map[gpu.PodID]bool{} // those who have not left
	for i := range kept {
		owns[gpu.PodID(kept[i].member.UID)] = !back
	}
	came, stayed, room := newPresence(), newPresence(), int(most)
	for i := range members {
		if owns[members[i].Pod] {
			stayed.add(&members[i])
			continue
		}
		came.add(&members[i])
		room--
	}
	rank := func(h holding) int {
		if stayed.pods[gpu.PodID(h.member.UID)] {
			return -1
		}
		return came.claims(&h)
	}
	order := slices.Clone(kept)
	slices.SortStableFunc(order, func(a, b holding) int { return cmp.Compare(rank(a), rank(b)) })
	return order[:min(len(order), max(room, len(stayed.pods)))]
}

// kept is what the status says of it; nil where nothing is kept, or was kept long enough.
// It orders all, and says as much of the first of them as there is room for.
func kept(all []holding, from, now time.Time) *v1alpha1.TaskGroupKept {
	if len(all) == 0 || now.Sub(from) >= patience {
		return nil
	}
	slices.SortFunc(all, func(a, b holding) int { return cmp.Compare(a.member.UID, b.member.UID) })
	out := &v1alpha1.TaskGroupKept{From: metav1.NewTime(from)}
	size := 0
	for i := range all[:min(len(all), mostKept)] {
		if size += len(all[i].member.Allocation); size > mostText {
			break
		}
		out.Members = append(out.Members, all[i].member)
	}
	return out
}
