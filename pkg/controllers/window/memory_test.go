package window

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
)

func TestDue(t *testing.T) {
	now := start()
	group := func(generation int64) *v1alpha1.TaskGroup {
		return &v1alpha1.TaskGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "chat", UID: "u", Generation: generation}}
	}
	deleted := group(1)
	deleted.DeletionTimestamp = &metav1.Time{Time: now}
	remade := group(1)
	remade.UID = "v"
	looked := known{uid: "u", generation: 1, at: now, due: now.Add(time.Minute)}
	failing := looked
	failing.failures = 1
	unread := known{at: now, due: now.Add(time.Minute)}
	for name, tc := range map[string]struct {
		known   known
		group   *v1alpha1.TaskGroup
		members int // beyond those of its status
		at      time.Time
		want    bool
	}{
		"just looked at":                {looked, group(1), 0, now, false},
		"not yet due":                   {looked, group(1), 0, now.Add(59 * time.Second), false},
		"due":                           {looked, group(1), 0, now.Add(time.Minute), true},
		"edited":                        {looked, group(2), 0, now, true},
		"deleted":                       {looked, deleted, 0, now, true},
		"made anew":                     {looked, remade, 0, now, true},
		"the clock was set back":        {looked, group(1), 0, now.Add(-time.Hour), true},
		"a member has come":             {looked, group(1), 1, now.Add(retry), true},
		"a member has come just now":    {looked, group(1), 1, now.Add(retry - 1), false},
		"a member of one that fails":    {failing, group(1), 1, now.Add(retry), false},
		"could not be read, and is new": {unread, group(1), 0, now, false},
		"could not be read, and is due": {unread, group(1), 0, now.Add(time.Minute), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.known.stale(tc.group, tc.members, tc.at); got != tc.want {
				t.Errorf("stale = %v", got)
			}
		})
	}
}

// Who had to wait is first in the next round, and what has gone is forgotten.
func TestTurns(t *testing.T) {
	var m memory
	var groups []*v1alpha1.TaskGroup
	for _, name := range []string{"c", "a", "b"} {
		groups = append(groups, &v1alpha1.TaskGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "u"}})
	}
	order := func(last string) (out string) {
		for _, n := range m.due(groups, func(*v1alpha1.TaskGroup) int { return 0 }, types.NamespacedName{Namespace: "ns", Name: last}, start()) {
			out += n.Name
		}
		return out
	}
	for last, want := range map[string]string{"": "abc", "a": "bca", "b": "cab", "c": "abc", "bb": "cab"} {
		if got := order(last); got != want {
			t.Errorf("after %q: %s, want %s", last, got, want)
		}
	}
	m.of(types.NamespacedName{Namespace: "ns", Name: "gone"})
	if order(""); len(m.groups) != 0 {
		t.Errorf("known: %v", m.groups)
	}
}
