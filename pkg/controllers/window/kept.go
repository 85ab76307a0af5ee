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

// keep returns what the members hold, and what was kept for those who have not come back
// since the windows closed last; so many at most.
func keep(holds, old []holding, most int32) []holding {
	kept := slices.DeleteFunc(slices.Clone(holds), func(h holding) bool { return devices(&h.placement) == 0 })
	for i := range old {
		taken := func(h holding) bool {
			return h.member.UID == old[i].member.UID || overlap(&h.placement, &old[i].placement)
		}
		if !slices.ContainsFunc(holds, taken) {
			kept = append(kept, old[i])
		}
	}
	return kept[:min(len(kept), max(int(most), 0))]
}

// overlap reports whether two have a card in common.
func overlap(a, b *gpu.Placement) bool {
	if a.Node != b.Node {
		return false
	}
	of := a.Uses()
	return slices.ContainsFunc(b.Uses(), func(u gpu.CardUse) bool {
		return slices.ContainsFunc(of, func(o gpu.CardUse) bool { return o.Card == u.Card })
	})
}

// trim returns what is still to be kept for those of most replicas who are not among the
// members. Those go first whose cards a member has, and then those on whose nodes one is.
// back says that members who never left have what is theirs, and so it is kept no more.
func trim(kept []holding, members []gpu.Placement, most int32, back bool) []holding {
	has := func(id gpu.PodID) bool {
		return slices.ContainsFunc(kept, func(h holding) bool { return gpu.PodID(h.member.UID) == id })
	}
	room := int(most)
	var others []gpu.Placement
	for i := range members {
		if back || !has(members[i].Pod) {
			room--
			others = append(others, members[i])
		}
	}
	need := func(h holding) int {
		rank := 0
		for i := range others {
			switch o := &others[i]; {
			case o.Pod == gpu.PodID(h.member.UID):
				return 3
			case overlap(o, &h.placement):
				rank = max(rank, 2)
			case o.Node == h.placement.Node:
				rank = max(rank, 1)
			}
		}
		return rank
	}
	order := slices.Clone(kept)
	slices.SortStableFunc(order, func(a, b holding) int { return cmp.Compare(need(a), need(b)) })
	return order[:min(len(order), max(room, 0))]
}

// kept is what the status says of it; nil where nothing is kept, or was kept long enough.
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
