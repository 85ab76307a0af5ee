package ledger

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Service is an inference group as the ledger knows it: its members are placed one by
// one, its windows free cards, and take them back. It never changes once handed over.
type Service struct {
	Group gpu.GroupID
	Name  string // namespace/name of its TaskGroup, for people
	// Closing is when its windows close next; nil: they do not, or are closed.
	Closing *Closing
	// Kept is what it takes back, and From when: after that nobody but its members gets
	// it. Of each card it counts what no member has (any more) that is on its node.
	Kept []gpu.Placement
	From time.Time // in the zone of the windows, for people
}

// Closing is a moment at which members end and leave their cards.
type Closing struct {
	At    time.Time // in the zone of the windows, for people
	Until time.Time // when they come back; zero: never
	Stay  int       // how many members stay
}

// SetService makes the group a service, or makes it this one. What it keeps holds on
// nodes that are not known yet as soon as they are. A node gets another Version where
// something else is kept of it than before.
func (l *Ledger) SetService(s Service) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, known := findService(l.services, s.Group)
	if !known {
		l.services = slices.Insert(slices.Clone(l.services), i, &s)
		l.keep(nil, &s)
		return
	}
	old := l.services[i]
	if reflect.DeepEqual(*old, s) {
		return // informers repeat themselves
	}
	l.services = slices.Clone(l.services)
	l.services[i] = &s
	l.keep(old, &s)
}

// DropService makes the group none any more: nothing is kept for it. It does nothing to
// a group that is no service.
func (l *Ledger) DropService(g gpu.GroupID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i, known := findService(l.services, g); known {
		old := l.services[i]
		l.services = slices.Delete(slices.Clone(l.services), i, i+1)
		l.keep(old, nil)
	}
}

// findService returns where the group's is among services, or would be.
func findService(services []*Service, g gpu.GroupID) (int, bool) {
	return slices.BinarySearchFunc(services, g, func(s *Service, g gpu.GroupID) int { return cmp.Compare(s.Group, g) })
}

// Service returns that of the group; false if it is none.
func (s Snapshot) Service(g gpu.GroupID) (*Service, bool) {
	if i, known := findService(s.services, g); known {
		return s.services[i], true
	}
	return nil, false
}

// Services returns all services, ordered by group. The list is never edited.
func (s Snapshot) Services() []*Service { return s.services }

// Keeps reports whether anything is kept on any node, known or not.
func (s Snapshot) Keeps() bool { return s.keeps }
