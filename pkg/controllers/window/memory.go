package window

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
)

// memory is what is known of groups beside what the API server has. All of it can be
// found out again. The zero value is ready for use.
type memory struct {
	groups map[types.NamespacedName]*known
}

// known is what is known of one group.
type known struct {
	uid        types.UID // of what was looked at last; "": nothing yet
	generation int64
	deleting   bool
	at, due    time.Time // when that was, and when it is to be looked at again
	spec       *spec     // as it was read; nil: not yet
	told       map[string]bool
	failures   int    // how often in a row it could not be dealt with
	failure    string // that was told last
}

// of returns what is known of the group.
func (m *memory) of(name types.NamespacedName) *known {
	k := m.groups[name]
	if k == nil {
		if m.groups == nil {
			m.groups = map[types.NamespacedName]*known{}
		}
		k = &known{}
		m.groups[name] = k
	}
	return k
}

// due returns which of the groups are to be looked at, those after last first, and
// forgets those that have gone.
func (m *memory) due(groups []*v1alpha1.TaskGroup, last types.NamespacedName, now time.Time) []types.NamespacedName {
	var names []types.NamespacedName
	present := make(map[types.NamespacedName]struct{}, len(groups))
	for _, g := range groups {
		name := types.NamespacedName{Namespace: g.Namespace, Name: g.Name}
		present[name] = struct{}{}
		if k := m.groups[name]; k == nil || k.stale(g, now) {
			names = append(names, name)
		}
	}
	for name := range m.groups {
		if _, still := present[name]; !still {
			delete(m.groups, name)
		}
	}
	return from(names, last)
}

// stale reports whether the group is to be looked at: when it is due, and when it has
// changed. Where the clock was set back nothing is known of when it is due.
func (k *known) stale(g *v1alpha1.TaskGroup, now time.Time) bool {
	if now.Before(k.at) || !now.Before(k.due) {
		return true
	}
	if k.uid == "" {
		return false // it could not be read
	}
	return k.uid != g.UID || k.generation != g.Generation || k.deleting != (g.DeletionTimestamp != nil)
}

// patience is after how long a group that cannot be dealt with is looked at again.
func (k *known) patience() time.Duration {
	return min(retry<<min(k.failures, 8), period)
}

// look notes that this is what is looked at.
func (k *known) look(g *v1alpha1.TaskGroup) {
	if k.uid != g.UID {
		k.told, k.failure = nil, ""
	}
	if k.spec == nil || k.uid != g.UID || k.generation != g.Generation {
		k.spec = read(&g.Spec)
	}
	k.uid, k.generation, k.deleting = g.UID, g.Generation, g.DeletionTimestamp != nil
}
