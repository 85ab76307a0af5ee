package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/test/faults"
)

// TestLeaderIsKilledInAWindow kills the leader at each step of putting a service to
// sleep, and of waking it, when what it asks of the API server has been done and it does not
// know yet. The next one goes on, and in the end all is as it was.
func TestLeaderIsKilledInAWindow(t *testing.T) {
	f := beginFleet(t)
	f.within(6 * time.Minute)
	f.gauge(3)
	f.schedules()
	for _, tc := range []struct {
		name   string
		at     faults.Match
		waking bool
	}{
		{"has-finalizer", writes("/taskgroups/"), false},
		{"has-remembered", writes("/status"), false},
		{"has-pinned", writes("/horizontalpodautoscalers/"), false},
		{"has-scaled", writes("/scale"), false},
		{"waking", writes("/status"), true},
		{"has-unpinned", writes("/horizontalpodautoscalers/"), true},
		{"has-woken", writes("/scale"), true},
		{"has-forgotten", forgets, true},
	} {
		f.isKilledInAWindow(tc.name, tc.waking, func(act func()) {
			step := faults.NewStep()
			f.proxy.On(tc.at, 1, after(step))
			act()
			await(f.scene, "the step "+tc.name, step.Reached)
			f.leader().Kill()
			step.Release()
		})
	}
}

// isKilledInAWindow takes a service of three replicas and an autoscaler of 2..5 to one
// replica, and back. The leader is killed in the one or in the other.
func (f *fleet) isKilledInAWindow(name string, waking bool, killedIn func(act func())) {
	f.Helper()
	f.crew()
	f.add(cards(name, 5))
	spec := pausing(always())
	spec.WindowAction, spec.Replicas = v1alpha1.TaskGroupScale, ptr.To[int32](1)
	f.offers(name, name, 3, spec)
	f.autoscale(name, 2, 5)
	sleep, wake := func() { f.opens(name, shut()) }, func() { f.opens(name, always()) }
	if waking {
		sleep()
	} else {
		killedIn(sleep)
		f.crew()
	}
	f.eventually("one to run", func() error { return f.serves(name, 1) })
	f.becomes(name, "Scaled")
	f.check("bounds", f.bounds(name, 1, 1))
	if waking {
		killedIn(wake)
		f.crew()
	} else {
		wake()
	}
	f.eventually("all to run", func() error { return f.serves(name, 3) })
	f.becomes(name, "AlwaysOpen", "")
	f.check("bounds", f.bounds(name, 2, 5))
}

// writes matches what changes something of a path with that in it, if it is no event and
// no Lease.
func writes(part string) faults.Match {
	return func(r *http.Request) bool {
		own := part != "/status" || strings.Contains(r.URL.Path, "/taskgroups/")
		own = own && (part != "/taskgroups/" || !strings.HasSuffix(r.URL.Path, "/status"))
		return r.Method != http.MethodGet && own && strings.Contains(r.URL.Path, part)
	}
}

// forgets matches the write by which nothing is remembered of a target any more, and no
// other of the status.
func forgets(r *http.Request) bool {
	return writes("/status")(r) && !says(r, `"action":{`)
}
