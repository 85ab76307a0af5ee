package rebuild

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory is what the caches do not say. The zero value is ready for use. All of it is of
// pods, nodes and TaskGroups that are there, or were a moment ago.
type memory struct {
	missed  map[string]time.Time    // node -> since when it is lost: as it said last, else when that was first seen
	evicted map[types.UID]eviction  // pod -> when and of which group
	tried   map[types.UID]time.Time // pod -> when it was last looked at anew
	rests   map[types.UID]time.Time // pod -> until when it is not
	told    map[types.UID]string    // pod -> why it is not evicted, as it was last told
	halted  map[types.UID]bool      // TaskGroup -> that nothing is rebuilt was told
}

// eviction is one of ours.
type eviction struct {
	of types.UID // the TaskGroup
	at time.Time
}

// since returns since when a node is lost that does not say: now, if that was not seen
// before, or the clock has been put back.
func (m *memory) since(node string, now time.Time) time.Time {
	if at, known := m.missed[node]; known && !at.After(now) {
		return at
	}
	put(&m.missed, node, now)
	return now
}

// forget drops what is of nobody that is seen any more.
func (m *memory) forget(s *seen) {
	for node := range m.missed {
		if _, lost := s.lost[node]; !lost {
			delete(m.missed, node)
		}
	}
	for pod, e := range m.evicted {
		switch since := s.now.Sub(e.at); {
		case since >= leaves:
			delete(m.evicted, pod)
		case since < 0: // the clock has been put back
			m.evicted[pod] = eviction{e.of, s.now}
		}
	}
	notAfter(m.tried, s.now) // the same
	notAfter(m.rests, s.now.Add(unownedRest))
	lost, groups := map[types.UID]bool{}, map[types.UID]bool{}
	for _, g := range s.groups {
		groups[g.UID] = true
		for _, pod := range g.members {
			if _, is := s.lost[pod.Spec.NodeName]; is {
				lost[pod.UID] = true
			}
		}
	}
	keep(m.tried, lost)
	keep(m.rests, lost)
	keep(m.told, lost)
	keep(m.halted, groups)
}

// notAfter has no time be after that.
func notAfter(of map[types.UID]time.Time, latest time.Time) {
	for id, at := range of {
		if at.After(latest) {
			of[id] = latest
		}
	}
}

// keep drops what is of others.
func keep[V any](of map[types.UID]V, those map[types.UID]bool) {
	for id := range of {
		if !those[id] {
			delete(of, id)
		}
	}
}

func put[K comparable, V any](into *map[K]V, key K, value V) {
	if *into == nil {
		*into = map[K]V{}
	}
	(*into)[key] = value
}
