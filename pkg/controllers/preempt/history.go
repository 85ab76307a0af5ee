package preempt

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// blockedTime is for how long one that a PodDisruptionBudget keeps is not planned for.
const blockedTime = 5 * time.Minute

// history returns who had whom ended, of all that are kept.
func history(all []*v1alpha1.Preemption) (h []preempt.Eviction) {
	for _, p := range all {
		if p.Status.DrainingSince == nil {
			continue
		}
		for i := range p.Spec.Victims {
			if s := p.VictimState(i); s == v1alpha1.VictimChosen || s == v1alpha1.VictimSpared {
				continue
			}
			v := &p.Spec.Victims[i]
			h = append(h, preempt.Eviction{By: p.Spec.Preemptor.Lineage, Of: v.Lineage, Tenant: gpu.TenantID(v.Tenant), At: p.Status.DrainingSince.Time})
		}
	}
	return h
}

// blocked returns who is not to be ended before when.
func blocked(all []*v1alpha1.Preemption) map[gpu.PodID]time.Time {
	out := map[gpu.PodID]time.Time{}
	for _, p := range all {
		for i := range p.Status.Victims {
			s := &p.Status.Victims[i]
			if s.State != v1alpha1.VictimSpared || s.Message != blockedText || s.Since == nil || i >= len(p.Spec.Victims) {
				continue
			}
			pod := gpu.PodID(p.Spec.Victims[i].UID)
			if until := s.Since.Add(blockedTime); until.After(out[pod]) {
				out[pod] = until
			}
		}
	}
	return out
}

// restOf returns, for each pod, until when nothing is planned for it: the longer, the
// more plans for it have come to nothing, and for much longer if pods have been ended
// for it in vain.
func restOf(all []*v1alpha1.Preemption) map[types.UID]time.Time {
	type tally struct {
		back, expired int
		last          time.Time
	}
	of := map[types.UID]*tally{}
	for _, p := range all {
		t := of[p.Spec.Preemptor.UID]
		if t == nil {
			t = &tally{}
			of[p.Spec.Preemptor.UID] = t
		}
		switch p.Status.Phase {
		case v1alpha1.PreemptionRolledBack:
			t.back++
		case v1alpha1.PreemptionExpired:
			t.expired++
		}
		if p.Status.EndedAt != nil && p.Status.EndedAt.After(t.last) {
			t.last = p.Status.EndedAt.Time
		}
	}
	rest := map[types.UID]time.Time{}
	for pod, t := range of {
		rest[pod] = t.last.Add(max(doubled(time.Second, t.back, 5*time.Minute), doubled(10*time.Minute, t.expired, keepExpired/2)))
	}
	return rest
}

// doubled returns the first for one time, and twice as much for each further one.
func doubled(first time.Duration, times int, most time.Duration) time.Duration {
	if times <= 0 {
		return 0
	}
	return min(first<<min(times-1, 20), most)
}
