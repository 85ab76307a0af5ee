package window

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
)

// What the API server refuses is in the status and in an event, once; it is tried again,
// ever more seldom, and done when it is possible.
func TestRefused(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "chat", nil)
	for _, where := range []string{"read", "replicas"} {
		t.Run(where, func(t *testing.T) {
			w := (&night{rule: dayNight(v1alpha1.TaskGroupPause), is: scaled(7)}).begin()
			c := w.leader()
			w.at(c, start())
			tries := 0
			w.refuse = func(at string) error {
				if at != where {
					return nil
				}
				tries++
				return forbidden
			}
			w.at(c, closed())
			w.run(c, 10*time.Minute)
			if tries < 10 || tries > 25 {
				t.Errorf("tried %d times in 10 minutes", tries)
			}
			w.expect(t, "chat", scaled(7))
			if undisturbed := conditionOf(w.status("chat"), v1alpha1.TaskGroupUndisturbed); !strings.HasPrefix(undisturbed, "False StepFailed: ") || !strings.Contains(undisturbed, "forbidden") {
				t.Errorf("Undisturbed = %s", undisturbed)
			}
			if n := strings.Count(strings.Join(w.told, "\n"), "Warning StepFailed"); n != 1 {
				t.Errorf("told %d times: %v", n, w.told)
			}
			w.refuse = func(string) error { return nil }
			w.run(c, 2*time.Minute)
			w.expect(t, "chat", scaled(0))
			if undisturbed := conditionOf(w.status("chat"), v1alpha1.TaskGroupUndisturbed); undisturbed != "True Undisturbed: " {
				t.Errorf("Undisturbed = %s", undisturbed)
			}
		})
	}
}

// A new leader does not tell again what the one before has told.
func TestNewLeaderTellsNothingAgain(t *testing.T) {
	w, _ := asleep(t, scaled(7))
	told, writes := len(w.told), len(w.writes)
	w.at(w.leader(), w.now().Add(time.Second))
	if len(w.told) != told || len(w.writes) != writes {
		t.Errorf("told %v, writes %v", w.told[told:], w.writes[writes:])
	}
}

// A leader that was stopped in the middle of a pass writes nothing when it goes on: there
// is another one by then, which has found nothing to be restored.
func TestStoppedLeader(t *testing.T) {
	w := (&night{rule: dayNight(v1alpha1.TaskGroupPause), is: scaled(7)}).begin()
	old, c := w.leader(), w.leader()
	w.at(old, start())
	w.at(c, start())
	w.strike = func(at string) {
		if at != "after status" {
			return
		}
		w.strike = func(string) {}
		w.group("chat", always)
		w.at(c, w.now().Add(15*time.Second))
		w.nothingLeft(t, "chat")
	}
	w.at(old, closed())
	w.expect(t, "chat", scaled(7))
	w.nothingLeft(t, "chat")
}

// A group that has gone while it was its turn is nobody's concern.
func TestGoneMeanwhile(t *testing.T) {
	w := (&night{rule: dayNight(v1alpha1.TaskGroupPause), is: scaled(7)}).begin()
	c := w.leader()
	w.mu.Lock()
	delete(w.groups, "chat") // and the cache does not know yet
	w.mu.Unlock()
	if !w.lead(c) || len(w.writes) > 0 || len(w.told) > 0 {
		t.Errorf("writes %v, told %v", w.writes, w.told)
	}
}

// A target that goes between what is read and what is written is one that is missing.
func TestTargetGoesMeanwhile(t *testing.T) {
	w := (&night{rule: dayNight(v1alpha1.TaskGroupPause), is: scaled(7)}).begin()
	c := w.leader()
	w.at(c, start())
	w.strike = func(at string) {
		if at == "before replicas" {
			w.mu.Lock()
			delete(w.targets, "chat")
			w.mu.Unlock()
		}
	}
	w.at(c, closed())
	if s := w.status("chat"); s.State != "TargetMissing" || conditionOf(s, v1alpha1.TaskGroupUndisturbed) != "False TargetMissing: there is no Deployment chat" {
		t.Errorf("status = %+v", s)
	}
	if w.steps["replicas conflict"] != 1 {
		t.Errorf("steps %v", w.steps)
	}
}
