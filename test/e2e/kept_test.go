package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestKeptCards has others want the cards of a service, before it sleeps and while it
// does: who waits is told when there will be cards; who would stay for longer than it
// sleeps gets none of them; who will have ended by then does; and the service wakes.
func TestKeptCards(t *testing.T) {
	s := begin(t, defaults)
	s.add(cards("kept", 2))
	task := func(name, runtime string) *corev1.Pod {
		p := on("kept", podFor(name, amount{wholeCards, 1}))
		if runtime != "" {
			with(p, maxRuntimeKey, runtime)
		}
		return p
	}
	s.offers("chat", "kept", 2, pausing(between(-time.Hour, 2*time.Hour)))
	s.becomes("chat", "InWindow")

	// It closes in 2 hours and opens 21 hours after that.
	s.create(task("short", "1h"), task("long", "40h"))
	s.refusedFor("short", "InsufficientGPUCount")
	s.saysOf("short", "2 cards from", "TaskGroup "+s.ns+"/chat")
	s.refusedFor("long", "InsufficientGPUCount")
	if told := strings.Join(s.told(s.pod("long")), "\n"); told == "" || strings.Contains(told, "2 cards from") {
		t.Errorf("cards are promised to who would stay for longer than they are free: %q", told)
	}
	s.remove("short", true)
	s.remove("long", true)

	s.opens("chat", between(3*time.Hour, 6*time.Hour))
	s.eventually("the service to sleep", func() error { return s.serves("chat", 0) })
	s.create(task("long", "40h"), with(task("ever", ""), taskTypeKey, "inference"))
	s.refusedFor("long", "HeldForOther")
	s.refusedFor("ever", "HeldForOther")
	s.saysOf("long", "kept for TaskGroup "+s.ns+"/chat")
	s.create(task("short", "1h"))
	s.runs("short")
	s.verify()
	s.create(task("default", "")) // 2 hours by the policy
	s.runs("default")
	s.verify()
	s.remove("short", false)
	s.remove("default", false)
	s.gone("short")
	s.gone("default")
	s.opens("chat", always())
	s.eventually("the service to run", func() error { return s.serves("chat", 2) })
	s.check("who would stay", s.waits("long"))
	s.check("who would stay", s.waits("ever"))
	s.verify()
}

// TestKeptWithinTheQuota: what the services of a tenant keep together, while they sleep,
// is no more than it may have at once. So waking one after the other gets it no more.
func TestKeptWithinTheQuota(t *testing.T) {
	s := begin(t, defaults)
	blue, red := s.in("blue"), s.in("red")
	s.tenant("blue", limitedTo(3, claiming(nil, blue)))
	s.add(cards("kept", 5))
	for _, name := range []string{"first", "second"} {
		blue.offers(name, "kept", 2, pausing(always()))
		blue.opens(name, shut())
		s.eventually("the service to sleep", func() error { return blue.serves(name, 0) })
	}
	s.eventually("the second to be told", func() error { return blue.hasEvent("second", "KeptInPart", "1 of 2 cards") })
	if blue.hasEvent("first", "KeptInPart", "") == nil {
		t.Error("the first, which is within the quota, is told that it is not")
	}

	for _, name := range []string{"a", "b", "c"} {
		red.create(with(on("kept", podFor(name, amount{wholeCards, 1})), taskTypeKey, "inference"))
	}
	s.eventually("two to run", func() error {
		if bound, _ := s.boundIn(red); len(bound) != 2 {
			return fmt.Errorf("%d run", len(bound))
		}
		return nil
	})
	_, waiting := s.boundIn(red)
	red.refusedFor(waiting[0].Name, "HeldForOther")
	s.keepTo(2, red)
}

// TestMembersWaitForTheirGroup: a pod of a group that is not there yet waits, and runs
// when it comes; inference does not need it.
func TestMembersWaitForTheirGroup(t *testing.T) {
	s := begin(t, defaults)
	s.add(cards("members", 2))
	s.create(with(with(on("members", podFor("serves", amount{wholeCards, 1})), taskGroupKey, "late"), taskTypeKey, "inference"))
	s.runs("serves")
	s.create(with(on("members", podFor("early", amount{wholeCards, 1})), taskGroupKey, "late"))
	s.refusedFor("early", "GangIncomplete")
	s.group("late", "", inference())
	s.runs("early")
	s.verify()
}
