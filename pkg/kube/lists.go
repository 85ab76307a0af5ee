package kube

import (
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// lists keeps one copy of lists of resources that are alike: tens of thousands of
// containers ask for a few dozen different ones, in up to five places each, and a
// list is a map of some 700 bytes. They are never edited, as nothing is that
// informers hand out. The zero value is ready for use, by many at once.
type lists struct {
	mu   sync.Mutex
	kept map[string]corev1.ResourceList // guarded by mu; what is in it -> the copy
}

// mostLists bounds what is kept, at some 3 MiB. Then it begins anew: lists that
// are in use stay with who uses them.
const mostLists = 4096

// one returns the copy that stands for this list.
func (l *lists) one(list corev1.ResourceList) corev1.ResourceList {
	if len(list) == 0 {
		return list
	}
	text := textOf(list)
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept, ok := l.kept[text]; ok {
		return kept
	}
	if l.kept == nil || len(l.kept) >= mostLists {
		l.kept = map[string]corev1.ResourceList{}
	}
	l.kept[text] = list
	return list
}

// textOf says all that a list says.
func textOf(list corev1.ResourceList) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		b.WriteString(string(name))
		b.WriteByte('=')
		b.WriteString(q.String())
		b.WriteByte(' ')
		b.WriteString(string(q.Format))
		b.WriteByte('\n')
	}
	return b.String()
}
