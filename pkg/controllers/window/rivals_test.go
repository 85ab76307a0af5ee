package window

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
)

// Of two groups with one target the older rules; the younger that had got hold of it lets
// go first, and takes nothing of the night for the day. The older may be seen late.
func TestTwoGroups(t *testing.T) {
	w := newWorld()
	w.target("chat", scaled(7))
	w.group("old", of("chat"), always)
	w.group("young", of("chat"), dayNight(v1alpha1.TaskGroupPause))
	c := w.leader()
	w.at(c, start())
	w.at(c, closed())
	w.expect(t, "chat", scaled(0))
	w.group("old", scaledTo(2)) // now it has windows
	w.at(c, w.now().Add(time.Second))
	for range 3 {
		w.at(c, w.now().Add(retry))
	}
	w.at(c, w.now().Add(period))
	w.expect(t, "chat", scaled(2))
	if a := w.status("old").Action; a == nil || a.Before.Replicas != 7 {
		t.Errorf("the older has the image %+v", a)
	}
	young := w.status("young")
	if undisturbed := conditionOf(young, v1alpha1.TaskGroupUndisturbed); young.Action != nil || !strings.Contains(undisturbed, "TargetTaken: the older TaskGroup ns/old rules") {
		t.Errorf("the younger: %s, %+v", undisturbed, young.Action)
	}
	if young.Next != nil {
		t.Errorf("the younger promises %+v", young.Next)
	}
	w.at(c, opened())
	w.expect(t, "chat", scaled(7))
	w.remove("old")
	w.at(c, opened().Add(time.Second))
	w.at(c, opened().Add(2*time.Minute))
	if s := w.status("young"); s.State != "InWindow" {
		t.Errorf("the younger does not rule: %s", s.State)
	}
}

// Two groups of one target that are made at once, by night: whichever has its turn first,
// the image is the one of the day.
func TestTwoNewGroups(t *testing.T) {
	for _, first := range []string{"a", "b"} {
		w := newWorld()
		w.target("chat", scaled(7))
		w.clock = closed()
		second := map[string]string{"a": "b", "b": "a"}[first]
		w.group(first, of("chat"), dayNight(v1alpha1.TaskGroupPause))
		w.group(second, of("chat"), dayNight(v1alpha1.TaskGroupPause))
		c := w.leader()
		for range 10 {
			w.at(c, w.now().Add(retry))
		}
		w.expect(t, "chat", scaled(0))
		if a := w.status(first).Action; a == nil || a.Before.Replicas != 7 || w.status(second).Action != nil {
			t.Errorf("%s first: %+v, %+v", first, a, w.status(second).Action)
		}
		w.at(c, opened())
		w.expect(t, "chat", scaled(7))
	}
}

// Of many groups that name one target only the oldest asks for all of them: whoever makes
// hundreds has nobody else wait.
func TestManyGroupsOfOneTarget(t *testing.T) {
	const many = 100
	w := newWorld()
	w.target("chat", scaled(7))
	for i := range many {
		w.group(fmt.Sprintf("g%02d", i), of("chat"), dayNight(v1alpha1.TaskGroupPause))
	}
	c := w.leader()
	w.at(c, closed())
	w.reads = 0
	w.at(c, w.now().Add(period))
	if w.reads < 2*many || w.reads > 4*many {
		t.Errorf("%d reads for %d groups", w.reads, many)
	}
	w.expect(t, "chat", scaled(0))
	for i := range many {
		name := fmt.Sprintf("g%02d", i)
		undisturbed := conditionOf(w.status(name), v1alpha1.TaskGroupUndisturbed)
		if i > 0 && !strings.Contains(undisturbed, "the older TaskGroup ns/g00 rules") {
			t.Errorf("%s: %s", name, undisturbed)
		}
	}
	w.at(c, opened())
	w.expect(t, "chat", scaled(7))
}

// Who has put the target to sleep a moment ago is known, though the cache does not know it
// yet: nor, perhaps, that it has windows.
func TestCacheLagsBehind(t *testing.T) {
	for name, lag := range map[string]func(*v1alpha1.TaskGroup){"the record": func(*v1alpha1.TaskGroup) {}, "the windows": always} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.target("chat", scaled(7))
			w.group("old", of("chat"), always)
			w.group("young", of("chat"), dayNight(v1alpha1.TaskGroupPause))
			stale := w.groups["young"].DeepCopy()
			lag(stale)
			c := w.leader()
			w.at(c, start())
			w.at(c, closed())
			w.expect(t, "chat", scaled(0))
			w.group("old", scaledTo(2))
			if err := w.seen.Update(stale); err != nil {
				t.Fatal(err)
			}
			w.lead(c)
			if a := w.status("old").Action; a != nil {
				t.Errorf("the older takes the night for the day: %+v", a)
			}
			for range 4 {
				w.at(c, w.now().Add(period))
			}
			w.expect(t, "chat", scaled(2))
			if a := w.status("old").Action; a == nil || a.Before.Replicas != 7 {
				t.Errorf("the older has the image %+v", a)
			}
		})
	}
}
