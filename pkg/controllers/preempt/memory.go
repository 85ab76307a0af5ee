package preempt

import (
	"cmp"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
)

// memory is what a leader remembers from round to round. Nothing that must not be
// forgotten is in it.
type memory struct {
	tried   map[types.UID]time.Time         // victim or preemptor -> when something was last tried for it
	heirs   map[types.UID]types.UID         // victim -> the pod that is taken for its successor
	made    map[string]*v1alpha1.Preemption // made a moment ago, and perhaps not seen yet
	mine    map[string]time.Time            // Preemption -> when this leader has made it
	failed  map[types.UID]time.Time         // asker -> when a plan for it could not be begun
	barred  map[types.UID]time.Time         // pod -> until when it cannot be written down as a victim
	told    map[types.UID]string            // asker -> why nobody is ended for it, as it was told last
	cursor  rank                            // of the asker that was the last to be planned for
	resumed time.Time                       // when a Job was
}

// failTime is how long a plan that could not be begun is not made again.
const failTime = 10 * time.Second

// barTime is how long a pod of which no manifest can be made is nobody's victim.
const barTime = time.Hour

// seenTime is how long a Preemption that was made may take to be seen.
const seenTime = 10 * time.Second

// begin begins a round: it returns all Preemptions that there are, and forgets what
// is of others.
func (m *memory) begin(listed []*v1alpha1.Preemption, now time.Time) []*v1alpha1.Preemption {
	if m.tried == nil {
		m.told = map[types.UID]string{}
		m.failed, m.mine, m.barred = map[types.UID]time.Time{}, map[string]time.Time{}, map[types.UID]time.Time{}
		m.tried, m.heirs, m.made = map[types.UID]time.Time{}, map[types.UID]types.UID{}, map[string]*v1alpha1.Preemption{}
	}
	for _, p := range listed {
		delete(m.made, p.Name)
	}
	all := append([]*v1alpha1.Preemption(nil), listed...)
	for name, p := range m.made {
		if now.Sub(m.mine[name]) > seenTime {
			delete(m.made, name)
			continue
		}
		all = append(all, p)
	}
	maps.DeleteFunc(m.failed, func(_ types.UID, at time.Time) bool { return now.Sub(at) >= failTime })
	maps.DeleteFunc(m.barred, func(_ types.UID, until time.Time) bool { return !now.Before(until) })
	m.forget(all)
	return all
}

func (m *memory) forget(all []*v1alpha1.Preemption) {
	known, names := map[types.UID]bool{}, map[string]bool{}
	for _, p := range all {
		names[p.Name] = true
		known[p.Spec.Preemptor.UID] = true
		for i := range p.Spec.Victims {
			known[p.Spec.Victims[i].UID] = true
		}
	}
	maps.DeleteFunc(m.mine, func(name string, _ time.Time) bool { return !names[name] })
	for pod := range m.tried {
		if !known[pod] {
			delete(m.tried, pod)
		}
	}
	for pod := range m.heirs {
		if !known[pod] {
			delete(m.heirs, pod)
		}
	}
}

// isHeir reports whether the pod is taken for the successor of somebody.
func (m *memory) isHeir(pod types.UID) bool {
	for _, heir := range m.heirs {
		if heir == pod {
			return true
		}
	}
	return false
}

// rank is where an asker comes in the order of planning.
type rank struct {
	priority int32
	created  time.Time
	pod      string
}

// compare orders the most important first, and of equals the oldest.
func (r rank) compare(o rank) int {
	return cmp.Or(cmp.Compare(o.priority, r.priority), r.created.Compare(o.created), cmp.Compare(r.pod, o.pod))
}

func byAge(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
}
