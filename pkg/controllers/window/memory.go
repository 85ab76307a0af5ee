package window

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
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
	at, due    time.Time                  // when that was, and when it is to be looked at again
	spec       *spec                      // as it was read; nil: not yet
	targets    []v1alpha1.TaskGroupTarget // that it has something to do with, as was last read or written
	kept       *v1alpha1.TaskGroupKept    // as was last read, or may have been written
	worth      worth
	told       map[string]bool
	failures   int    // how often in a row it could not be dealt with
	failure    string // that was told last
}

// worth is what members would be charged for that had what is kept: it takes a while to
// read.
type worth struct {
	kept     *v1alpha1.TaskGroupKept // never edited
	spending gpu.Spending
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
// forgets those that have gone. members is how many of a group there are.
func (m *memory) due(groups []*v1alpha1.TaskGroup, members func(*v1alpha1.TaskGroup) int, last types.NamespacedName, now time.Time) []types.NamespacedName {
	var names []types.NamespacedName
	present := make(map[types.NamespacedName]struct{}, len(groups))
	for _, g := range groups {
		name := types.NamespacedName{Namespace: g.Namespace, Name: g.Name}
		present[name] = struct{}{}
		if k := m.groups[name]; k == nil || k.stale(g, members(g), now) {
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

// next is how long it is until one of the groups is due, at most a period.
func (m *memory) next(now time.Time) time.Duration {
	wait := period
	for _, k := range m.groups {
		wait = min(wait, k.due.Sub(now))
	}
	return wait
}

// stale reports whether the group, which has so many members, is to be looked at: when it
// is due, when it has changed, and when its status has another number of members and it
// was not looked at a moment ago. Where the clock was set back nothing is known of when it
// is due.
func (k *known) stale(g *v1alpha1.TaskGroup, members int, now time.Time) bool {
	if now.Before(k.at) || !now.Before(k.due) {
		return true
	}
	if k.uid == "" {
		return false // it could not be read
	}
	if k.failures == 0 && members != int(g.Status.Members) && now.Sub(k.at) >= retry {
		return true
	}
	return k.uid != g.UID || k.generation != g.Generation || k.deleting != (g.DeletionTimestamp != nil)
}

// backoff is after how long a group that cannot be dealt with is looked at again.
func (k *known) backoff() time.Duration {
	return min(retry<<min(k.failures, 8), period)
}

// note notes with which targets the group has something to do, and what it keeps. The
// cache may come to know it later.
func (k *known) note(g *v1alpha1.TaskGroup) {
	k.kept = g.Status.Kept
	k.targets = k.targets[:0]
	if r := g.Status.Action; r != nil {
		k.targets = append(k.targets, r.Target)
	}
	if r := g.Spec.ScaleTargetRef; r != nil {
		k.targets = append(k.targets, *r)
	}
}

// mayKeep notes what may have been written, since nobody has said that it was not. Where
// something counted before, that goes on to count: it is not less.
func (k *known) mayKeep(kept *v1alpha1.TaskGroupKept, now time.Time) {
	if counts(kept, now) && !counts(k.kept, now) {
		k.kept = kept
	}
}

// counts reports whether something is kept for later: once its windows are open, members
// are charged as they come.
func counts(kept *v1alpha1.TaskGroupKept, now time.Time) bool {
	return kept != nil && kept.From.After(now)
}

// keeps returns what counts as kept for the group, by what was last read or written of it
// and only else by what the cache has, which may not know yet.
func (m *memory) keeps(g *v1alpha1.TaskGroup, now time.Time, spending func(*v1alpha1.TaskGroupKept) gpu.Spending) gpu.Spending {
	k := m.of(types.NamespacedName{Namespace: g.Namespace, Name: g.Name})
	kept := g.Status.Kept
	if k.uid != "" {
		kept = k.kept
	}
	if !counts(kept, now) {
		return nil
	}
	if k.worth.kept != kept {
		k.worth = worth{kept, spending(kept)}
	}
	return k.worth.spending
}

// about reports whether the group has something to do with the target.
func (k *known) about(target *v1alpha1.TaskGroupTarget) bool {
	return k != nil && slices.ContainsFunc(k.targets, func(t v1alpha1.TaskGroupTarget) bool { return same(&t, target) })
}

// look notes that this is what is looked at.
func (k *known) look(g *v1alpha1.TaskGroup) {
	if k.uid != g.UID {
		k.told, k.failure = nil, ""
	}
	if k.spec == nil || k.uid != g.UID || k.generation != g.Generation {
		k.spec = read(&g.Spec)
	}
	k.note(g)
	k.uid, k.generation, k.deleting = g.UID, g.Generation, g.DeletionTimestamp != nil
}
