package engine

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// keeps has the service of that name keep the cards whole, from then on.
func (c cluster) keeps(name string, from time.Time, cards ...gpu.CardID) {
	s := ledger.Service{Group: gpu.GroupID(name), Name: "ns/" + name, From: from}
	for _, id := range cards {
		share := alone
		share.Card, share.Vendor = id, gpu.Nvidia
		s.Kept = append(s.Kept, gpu.Placement{
			Pod: gpu.PodID("former-" + id), Namespace: "ns", Group: s.Group, Node: gpu.NodeID(id[:2]), Grants: []gpu.Grant{{Shares: []gpu.Share{share}}},
		})
	}
	c.ledger.SetService(s)
}

// lasting returns the request as one that runs so long at most; 0: for ever.
func lasting(d time.Duration, r gpu.Request) gpu.Request {
	r.Runtime = d
	return r
}

// memberOf returns the request as one of the task group.
func memberOf(name string, r gpu.Request) gpu.Request {
	r.Group, r.Gang = gpu.GroupID(name), true
	return r
}

// TestFilterBesideKept: who gets what is kept for a service that comes back in an hour.
func TestFilterBesideKept(t *testing.T) {
	const held, full = gpu.HeldForOther, gpu.InsufficientGPUCount
	tests := map[string]struct {
		request gpu.Request
		want    told
	}{
		"runs for ever":              {pod("p", whole(1)), told{"n1": held, "n2": "", "n3": full}},
		"ends before":                {lasting(59*time.Minute, pod("p", whole(1))), told{"n1": "", "n2": "", "n3": full}},
		"ends just then":             {lasting(time.Hour, pod("p", whole(1))), told{"n1": "", "n2": "", "n3": full}},
		"ends after":                 {lasting(time.Hour+1, pod("p", whole(1))), told{"n1": held, "n2": "", "n3": full}},
		"ends before, and wants two": {lasting(time.Minute, pod("p", whole(2))), told{"n1": "", "n2": gpu.InsufficientGPUCount, "n3": full}},
		"wants two, for ever":        {pod("p", whole(2)), told{"n1": held, "n2": gpu.InsufficientGPUCount, "n3": full}},
		"a member":                   {memberOf("chat", pod("p", whole(2))), told{"n1": "", "n2": gpu.InsufficientGPUCount, "n3": full}},
		"a member says it is short":  {lasting(time.Minute, memberOf("chat", pod("p", whole(1)))), told{"n1": "", "n2": "", "n3": full}},
		"one of another service":     {memberOf("other", pod("p", whole(1))), told{"n1": held, "n2": "", "n3": full}},
		"of another, and says it is short: it stays for ever": {lasting(time.Minute, memberOf("other", pod("p", whole(1)))), told{"n1": held, "n2": "", "n3": full}},
		"of a group that is no service":                       {memberOf("train", pod("p", whole(1))), told{"n1": gpu.GangIncomplete, "n2": gpu.GangIncomplete, "n3": gpu.GangIncomplete}},
		"of a job, which is no task group":                    {in("train", pod("p", whole(1))), told{"n1": held, "n2": "", "n3": full}},
		"a slice":                                             {pod("p", slice(100)), told{"n1": held, "n2": "", "n3": gpu.InsufficientGPUMemory}},
		"no card":                                             {pod("p"), told{"n1": "", "n2": "", "n3": ""}},
	}
	now := time.Now()
	c := newCluster(2, 1, 2)
	c.cfg.Now = func() time.Time { return now }
	c.joins("one", "ns", "n3-d0", alone)
	c.joins("two", "ns", "n3-d1", alone)
	c.keeps("chat", now.Add(time.Hour), "n1-d0", "n1-d1", "n3-d0")
	c.keeps("other", now)
	for range 2 { // the second time of what is remembered, by turns of who wants the same for another time
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				if diff := cmp.Diff(tc.want, c.reasons(tc.request)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestHorizon: what is taken back in a year is no reason to leave cards unused until then.
func TestHorizon(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		from    time.Duration
		request gpu.Request
		want    gpu.Reason
	}{
		"for ever, and it is soon":      {horizon - 1, pod("p", whole(1)), gpu.HeldForOther},
		"for ever, and it is far off":   {horizon, pod("p", whole(1)), ""},
		"for long, and it is soon":      {horizon - 1, lasting(2*horizon, pod("p", whole(1))), gpu.HeldForOther},
		"for long, and it is far off":   {horizon, lasting(2*horizon, pod("p", whole(1))), ""},
		"for days, and it is sooner":    {horizon / 2, lasting(horizon/2+1, pod("p", whole(1))), gpu.HeldForOther},
		"for days, and it is as far":    {horizon / 2, lasting(horizon/2, pod("p", whole(1))), ""},
		"for so long that it overflows": {horizon, lasting(1<<63-1, pod("p", whole(1))), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(1)
			c.cfg.Now = func() time.Time { return now }
			c.keeps("chat", now.Add(tc.from), "n1-d0")
			if diff := cmp.Diff(told{"n1": tc.want}, c.reasons(tc.request)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestKindsOfRequests: for how long it is, and whether it is of a task group, makes a
// request no other kind: there would be as many as lengths.
func TestKindsOfRequests(t *testing.T) {
	a, b := pod("a", slice(1)), lasting(time.Minute, pod("b", slice(1)))
	b.Gang = true
	if keyOf(&a, 1) != keyOf(&b, 1) {
		t.Errorf("%s\n%s", keyOf(&a, 1), keyOf(&b, 1))
	}
}

// TestBindBesideKept: what is kept is looked at once more when the pod is bound, and what
// a claim has made room for is given.
func TestBindBesideKept(t *testing.T) {
	bind := func(c cluster, r gpu.Request) gpu.Reason {
		c.server.create(r)
		_, err := c.Bind(t.Context(), target(r.Name, "n1"))
		var refusal *Refusal
		errors.As(err, &refusal)
		if refusal == nil {
			return ""
		}
		return refusal.Reason
	}
	one := whole(1)
	tests := map[string]struct {
		before  func(cluster)
		request gpu.Request
		want    gpu.Reason
	}{
		"for ever":            {request: pod("p", one), want: gpu.HeldForOther},
		"too long":            {request: lasting(2*time.Hour, pod("p", one)), want: gpu.HeldForOther},
		"short":               {request: lasting(time.Minute, pod("p", one))},
		"a member":            {request: memberOf("chat", pod("p", one))},
		"of no service":       {request: memberOf("train", pod("p", one)), want: gpu.GangIncomplete},
		"no card":             {request: pod("p")},
		"on a claim":          {func(c cluster) { c.claims(t, lasting(time.Minute, pod("p", one)), "n1-d0") }, pod("p", one), ""},
		"no service any more": {func(c cluster) { c.ledger.DropService("chat") }, pod("p", one), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(1)
			c.keeps("chat", time.Now().Add(time.Hour), "n1-d0")
			if tc.before != nil {
				tc.before(c)
			}
			if got := bind(c, tc.request); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestAClaimantGetsWhatIsKept: others were ended for it before that was promised.
func TestAClaimantGetsWhatIsKept(t *testing.T) {
	c := newCluster(1, 1)
	c.takes(t, "victim", "n1", whole(1))
	c.claims(t, pod("p", whole(1)), "n1-d0", "victim")
	c.keeps("chat", time.Now().Add(time.Hour), "n1-d0")
	c.ends("victim")
	if diff := cmp.Diff(told{"n1": "", "n2": gpu.PreemptionPending}, c.reasons(pod("p", whole(1)))); diff != "" {
		t.Errorf("the claimant (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(told{"n1": gpu.HeldForOther, "n2": ""}, c.reasons(pod("q", whole(1)))); diff != "" {
		t.Errorf("another (-want +got):\n%s", diff)
	}
}

// TestForesee of a pod of a task group says whether that is known.
func TestForeseeTaskGroups(t *testing.T) {
	c := newCluster(1)
	c.keeps("chat", time.Now())
	for name, want := range map[string]bool{"chat": false, "train": true} {
		r := memberOf(name, pod("p", whole(1)))
		if got := c.Foresee(&r).Waits; got != want {
			t.Errorf("%s: it waits: %t, want %t", name, got, want)
		}
	}
	r := in("train", pod("p", whole(1)))
	if c.Foresee(&r).Waits {
		t.Error("a pod of a job waits for a task group")
	}
}

// TestTrialBesideKept: who ends others for a pod sees what is kept: it would end them for
// cards that the pod does not get.
func TestTrialBesideKept(t *testing.T) {
	c := newCluster(2)
	c.takes(t, "borrower", "n1", whole(1))
	h, _ := c.ledger.Hold("borrower")
	c.keeps("chat", time.Now().Add(time.Hour), h.Uses()[0].Card)
	now := c.ledger.Snapshot()
	fits := func(r gpu.Request, in ledger.Snapshot) bool {
		trial := c.Trial(&r, in)
		_, placed := trial.Place(in, "n1")
		if got := trial.Fits(in, "n1"); got != placed {
			t.Errorf("%s fits: %t, is placed: %t", r.Name, got, placed)
		}
		return placed
	}
	without := now.Without("n1", "borrower")
	tests := map[string]struct {
		request gpu.Request
		now     bool
		without bool
	}{
		"two for ever":         {pod("p", whole(2)), false, false},
		"two for a while":      {lasting(time.Minute, pod("p", whole(2))), false, true},
		"one for ever":         {pod("p", whole(1)), true, true},
		"two of the service":   {memberOf("chat", pod("p", whole(2))), false, true},
		"one of no task group": {memberOf("train", pod("p", whole(1))), false, false},
	}
	for range 2 { // once more of what is remembered
		for name, tc := range tests {
			if got := fits(tc.request, now); got != tc.now {
				t.Errorf("%s fits now: %t", name, got)
			}
			if got := fits(tc.request, without); got != tc.without {
				t.Errorf("%s fits without the borrower: %t", name, got)
			}
		}
	}
}

// TestNobodyIsEndedForWhatIsKept: neither who has borrowed what the pod would not get
// either, nor anybody for a pod whose task group is not known.
func TestNobodyIsEndedForWhatIsKept(t *testing.T) {
	now := time.Now()
	plan := func(r gpu.Request, kept bool) (preempt.Outcome, int) {
		c := newCluster(1)
		c.takes(t, "low", "n1", whole(1))
		if kept {
			c.keeps("chat", now.Add(time.Hour), "n1-d0")
		}
		low := preempt.Pod{ID: "low", Namespace: "ns", Name: "low", Node: "n1", Preemptible: true, Ours: true, Phase: preempt.Running, Since: now.Add(-time.Hour)}
		w := &preempt.World{
			State: c.ledger.Snapshot(), Pods: map[gpu.NodeID][]preempt.Pod{"n1": {low}}, Now: now, Rules: preempt.Rules{Stage: preempt.OfRunning}, Trial: c.Trial,
		}
		r.Priority = 10
		p, outcome := (&preempt.Planner{}).Plan(w, &preempt.Asker{Request: r})
		return outcome, len(p.Victims)
	}
	for name, tc := range map[string]struct {
		request gpu.Request
		kept    bool
		want    preempt.Outcome
	}{
		"nothing is kept":             {pod("p", whole(1)), false, preempt.Planned},
		"for ever":                    {pod("p", whole(1)), true, preempt.Hopeless},
		"for a while":                 {lasting(time.Minute, pod("p", whole(1))), true, preempt.Planned},
		"a member":                    {memberOf("chat", pod("p", whole(1))), true, preempt.Planned},
		"of no task group":            {memberOf("train", pod("p", whole(1))), false, preempt.Exempt},
		"of no task group, beside it": {memberOf("train", pod("p", whole(1))), true, preempt.Exempt},
	} {
		t.Run(name, func(t *testing.T) {
			if got, victims := plan(tc.request, tc.kept); got != tc.want || victims != map[bool]int{true: 1}[tc.want == preempt.Planned] {
				t.Errorf("outcome %d with %d victims, want %d", got, victims, tc.want)
			}
		})
	}
}

// TestPlansGoByTheTime: a node of which something is kept is another to a pod as time goes
// by, though nothing has happened to it.
func TestPlansGoByTheTime(t *testing.T) {
	now := time.Now()
	c := newCluster(2)
	c.cfg.Now = func() time.Time { return now }
	c.joins("low", "ns", "n1-d0", alone)
	c.keeps("chat", now.Add(time.Hour), "n1-d1")
	low := preempt.Pod{ID: "low", Namespace: "ns", Name: "low", Node: "n1", Preemptible: true, Ours: true, Phase: preempt.Running, Since: now.Add(-time.Hour)}
	var planner preempt.Planner
	plan := func(runtime time.Duration) preempt.Outcome {
		r := lasting(runtime, pod("p", whole(1)))
		r.Priority = 10
		w := &preempt.World{
			State: c.ledger.Snapshot(), Pods: map[gpu.NodeID][]preempt.Pod{"n1": {low}}, Now: now, Rules: preempt.Rules{Stage: preempt.OfRunning},
			Trial: c.Trial, Policy: "the same",
		}
		_, outcome := planner.Plan(w, &preempt.Asker{Request: r})
		return outcome
	}
	if got := plan(30 * time.Minute); got != preempt.FitsNow {
		t.Errorf("it ends before: outcome %d", got)
	}
	if got := plan(2 * time.Hour); got != preempt.Planned {
		t.Errorf("it ends after: outcome %d", got)
	}
	now = now.Add(45 * time.Minute)
	if got := plan(30 * time.Minute); got != preempt.Planned {
		t.Errorf("it would not end before any more: outcome %d", got)
	}
}

// A pod of a task group that is not known is woken when it is, and not before; and once
// it is one no more, it waits again.
func TestWakesWhoseTaskGroupAppears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		for _, r := range []gpu.Request{memberOf("chat", pod("early", whole(1))), memberOf("train", pod("other", whole(1)))} {
			c.server.create(r)
			c.tries(t, r.Name, false)
		}
		c.wakes(t)
		time.Sleep(time.Minute)
		c.takes(t, "holder", "n1", slice(100))
		c.ends("holder") // room that it does not wait for
		time.Sleep(time.Minute)
		c.mustHaveWoken(t)

		c.keeps("chat", time.Now())
		time.Sleep(time.Second)
		c.mustHaveWoken(t, "early")
		c.ledger.DropService("chat")
		c.tries(t, "early", false)
		time.Sleep(time.Minute)
		c.mustHaveWoken(t, "early")
		c.keeps("chat", time.Now())
		time.Sleep(time.Second)
		c.mustHaveWoken(t, "early", "early")
	})
}

// Each waits for what it would get: who stays for ever for what is not kept any more, who
// is short for what is free, members for what is theirs. They are of one kind but for that.
func TestWakesWhomItIsNotKeptFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		c.takes(t, "holder", "n1", whole(1))
		c.keeps("chat", time.Now().Add(time.Hour), "n1-d0")
		c.keeps("other", time.Now())
		for _, r := range []gpu.Request{
			pod("ever", whole(1)), pod("ever-2", whole(1)), lasting(2*time.Hour, pod("long", whole(1))),
			lasting(10*time.Minute, pod("short", whole(1))), memberOf("other", pod("stranger", whole(1))), memberOf("chat", pod("member", whole(1))),
		} {
			c.server.create(r)
			c.tries(t, r.Name, false)
		}
		c.wakes(t)
		time.Sleep(time.Minute)
		c.mustHaveWoken(t)
		c.ends("holder")
		time.Sleep(time.Second)
		c.mustHaveWoken(t, "short")
		c.tries(t, "short", true)
		c.Forget("short")
		time.Sleep(10 * time.Second)
		c.mustHaveWoken(t, "short", "member")
		c.Forget("member")
		c.ledger.DropService("chat")
		time.Sleep(time.Second)
		c.mustHaveWoken(t, "short", "member", "ever")
	})
}

// TestScoresBesideKept: what is kept is as good as claimed, for who has to leave it.
func TestScoresBesideKept(t *testing.T) {
	c := newCluster()
	for _, id := range []gpu.NodeID{"n1", "n2"} {
		c.ledger.SetNode(ledger.Facts{ID: id, Cards: cards(id, 4), CPU: 1000})
	}
	former := func(id gpu.CardID) gpu.Placement {
		share := alone
		share.Card = id
		return gpu.Placement{Pod: gpu.PodID(id), Namespace: "ns", Node: "n1", CPU: 100, Grants: []gpu.Grant{{Shares: []gpu.Share{share}}}}
	}
	c.ledger.SetService(ledger.Service{Group: "chat", From: time.Now(), Kept: []gpu.Placement{former("n1-d0"), former("n1-d1")}})
	r := pod("p", whole(1))
	for range 2 {
		for _, s := range c.Score(&r, c.all()) {
			n, _ := c.ledger.Snapshot().Node(s.Node)
			by := stand(&r, c.ledger.Snapshot(), c.terms(c.ledger.Snapshot()), c.cfg.Now())
			want, parts := by.pipe.Rate(by.cycle, by.meets(n))
			if raw, _ := by.pipe.Rate(by.cycle, n); s.Total != want || (raw == want) != (s.Node == "n2") {
				t.Errorf("%s: %v, want %v, and not %v", s.Node, s.Total, want, raw)
			}
			if diff := cmp.Diff(parts, s.Parts); diff != "" {
				t.Errorf("%s is made of (-want +got):\n%s", s.Node, diff)
			}
		}
		c.Forget("p")
	}
	for i := range 4 { // two on either are free, and n2 has four
		if f := c.Filter(&r, []gpu.NodeID{"n1"}); f.Fit != 1 {
			if i != 2 {
				t.Errorf("after %d pods n1 has no room: %s", i, f.Summary)
			}
			return
		}
		c.takes(t, fmt.Sprintf("x%d", i), "n1", whole(1))
	}
	t.Error("what is kept is given away")
}
