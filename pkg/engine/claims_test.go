package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// claims has room claimed for the pod as a plan does: on that card, where victims are.
func (c cluster) claims(t *testing.T, r gpu.Request, card gpu.CardID, victims ...gpu.PodID) {
	t.Helper()
	n, _ := c.ledger.Snapshot().Without("n1", victims...).Node("n1")
	s := stand(&r, c.ledger.Snapshot(), c.terms(c.ledger.Snapshot()), c.cfg.Now())
	p, v := s.assign(n)
	if !v.OK() || p.Uses()[0].Card != card {
		t.Fatalf("before: %v, %+v", v, p.Uses())
	}
	if err := c.ledger.Claim(p, victims); err != nil {
		t.Fatal(err)
	}
}

// reasons is what Filter says of each node.
func (c cluster) reasons(r gpu.Request) map[gpu.NodeID]gpu.Reason {
	f := c.Filter(&r, c.all())
	c.hints.drop(r.Pod)
	all := map[gpu.NodeID]gpu.Reason{}
	for _, x := range f.Refused {
		all[x.Node] = x.Verdict.Reason
	}
	for _, node := range f.Feasible {
		all[node] = ""
	}
	return all
}

type told = map[gpu.NodeID]gpu.Reason

// TestFilterBesideClaims: the claimant is sent to its node and to no other, and is told
// that it is waited for; others are told of the claim where nothing else is in their way.
func TestFilterBesideClaims(t *testing.T) {
	c := newCluster(1, 1)
	c.takes(t, "victim", "n1", whole(1))
	c.takes(t, "stays", "n2", whole(1))
	p, other := pod("p", whole(1)), pod("other", slice(100))
	step := func(name string, wantClaimant, wantOther told) {
		t.Helper()
		for range 2 { // the second time of what is remembered
			if diff := cmp.Diff(wantClaimant, c.reasons(p)); diff != "" {
				t.Errorf("%s: the claimant (-want +got):\n%s", name, diff)
			}
			if diff := cmp.Diff(wantOther, c.reasons(other)); diff != "" {
				t.Errorf("%s: another (-want +got):\n%s", name, diff)
			}
		}
	}
	pending := told{"n1": gpu.PreemptionPending, "n2": gpu.PreemptionPending}
	full := gpu.InsufficientGPUMemory
	c.claims(t, p, "n1-d0", "victim")
	step("while the victim runs", pending, told{"n1": full, "n2": full})
	c.ends("stays")
	step("a node is free that is not its", pending, told{"n1": full, "n2": ""})
	c.ends("victim")
	step("the victim has gone", told{"n1": "", "n2": gpu.PreemptionPending}, told{"n1": gpu.HeldForOther, "n2": ""})
	c.ledger.Unclaim("p")
	step("it has given up", told{"n1": "", "n2": ""}, told{"n1": "", "n2": ""})
}

// TestFilterTellsOfTheClaimant: its own code, once for all nodes, and none of a quota
// that those are still charged to who are to go.
func TestFilterTellsOfTheClaimant(t *testing.T) {
	c := limited([]gpu.Limit{cardLimit(1)}, 1)
	c.takes(t, "victim", "n1", whole(1))
	p := pod("p", whole(1))
	if err := c.ledger.Claim(gpu.Placement{Pod: "p", Namespace: "ns", Name: "p", Node: "n1", Grants: []gpu.Grant{{
		Container: "c0", Shares: []gpu.Share{{Card: "n1-d0", Vendor: gpu.Nvidia, Memory: 1000, Cores: 100, Exclusive: true}},
	}}}, []gpu.PodID{"victim"}); err != nil {
		t.Fatal(err)
	}
	f := c.Filter(&p, c.all())
	if got, want := f.Summary.String(), "0/1 nodes: 1 PreemptionPending"; got != want || f.Reason != gpu.PreemptionPending {
		t.Errorf("%s %q, want %s %q", f.Reason, got, gpu.PreemptionPending, want)
	}
	c.ends("victim")
	if f := c.Filter(&p, c.all()); f.Fit != 1 {
		t.Errorf("its victim has gone, and it is told %s: %s", f.Reason, f.Summary)
	}
}

// TestProcessorsAreClaimed: kube-scheduler knows nothing of them.
func TestProcessorsAreClaimed(t *testing.T) {
	tests := map[string]struct {
		facts   ledger.Facts
		cpu     gpu.MilliCPU
		memory  gpu.Bytes
		claimed gpu.Placement
		want    gpu.Reason
	}{
		"room beside it":                    {facts: ledger.Facts{CPU: 10}, cpu: 4, claimed: gpu.Placement{CPU: 6}},
		"no processors":                     {facts: ledger.Facts{CPU: 10}, cpu: 5, claimed: gpu.Placement{CPU: 6}, want: gpu.HeldForOther},
		"no memory":                         {facts: ledger.Facts{Memory: 10}, memory: 5, claimed: gpu.Placement{Memory: 6}, want: gpu.HeldForOther},
		"no place for a pod":                {facts: ledger.Facts{Pods: 1}, want: gpu.HeldForOther},
		"a place for two":                   {facts: ledger.Facts{Pods: 2}},
		"too large with and without it":     {facts: ledger.Facts{CPU: 10}, cpu: 11, claimed: gpu.Placement{CPU: 6}}, // kube-scheduler's to say
		"what the node has is not known":    {cpu: 11, claimed: gpu.Placement{CPU: 6}},
		"the victim's are the claimant's":   {facts: ledger.Facts{CPU: 10}, cpu: 4, claimed: gpu.Placement{CPU: 6, Name: "victim"}},
		"a claim without cards is one, too": {facts: ledger.Facts{CPU: 10}, cpu: 5, claimed: gpu.Placement{CPU: 6}, want: gpu.HeldForOther},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			tc.facts.ID, tc.facts.Cards = "n1", cards("n1", 1)
			c.ledger.SetNode(tc.facts)
			var victims []gpu.PodID
			if tc.claimed.Name != "" {
				c.ledger.Confirm(gpu.Placement{Pod: "victim", Namespace: "ns", Name: "victim", Node: "n1", CPU: 6})
				victims = append(victims, "victim")
			}
			tc.claimed.Pod, tc.claimed.Namespace, tc.claimed.Node = "p", "ns", "n1"
			if err := c.ledger.Claim(tc.claimed, victims); err != nil {
				t.Fatal(err)
			}
			r := pod("other", slice(100))
			r.CPU, r.Memory = tc.cpu, tc.memory
			if diff := cmp.Diff(told{"n1": tc.want}, c.reasons(r)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestBindOnAClaim: the claimant goes to its node, as soon as there is room, and to no
// other; a Binding that fails costs it nothing.
func TestBindOnAClaim(t *testing.T) {
	c := newCluster(1, 1)
	c.takes(t, "victim", "n1", whole(1))
	p := pod("p", whole(1))
	c.server.create(p)
	c.server.create(pod("other", whole(1)))
	c.claims(t, p, "n1-d0", "victim")
	refused := func(name string, node gpu.NodeID, want gpu.Reason) {
		t.Helper()
		_, err := c.Bind(t.Context(), target(name, node))
		if got := (&Refusal{}); !errors.As(err, &got) || got.Reason != want {
			t.Errorf("bind %s to %s: %v, want %s", name, node, err, want)
		}
	}
	refused("p", "n2", gpu.PreemptionPending)
	refused("p", "n1", gpu.PreemptionPending)
	refused("other", "n1", gpu.InsufficientGPUCount)
	c.ends("victim")
	refused("other", "n1", gpu.HeldForOther)
	c.server.next = []behaviour{refuses}
	refused("p", "n1", gpu.BindConflict)
	if h, _ := c.ledger.Hold("p"); h.State != ledger.Claimed {
		t.Fatalf("a Binding that was refused has left the pod %s", h.State)
	}
	refused("other", "n1", gpu.HeldForOther)
	if _, err := c.Bind(t.Context(), target("p", "n1")); err != nil {
		t.Fatalf("bind p to n1: %v", err)
	}
	c.confirm()
	c.server.mustAgree(t, c.ledger)
	c.mustLeaveNoGate(t)
}

// TestBindWithoutAnAnswerOnAClaim: what is held is looked up, and if the pod is not bound
// its claim stands.
func TestBindWithoutAnAnswerOnAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1, 1)
		p := pod("p", whole(1))
		c.server.create(p)
		c.claims(t, p, "n1-d0")
		c.server.next = []behaviour{losesRequest}
		c.server.set(true)
		if _, err := c.Bind(t.Context(), target("p", "n1")); !errors.Is(err, ErrUnknown) {
			t.Fatalf("bind = %v, want %v", err, ErrUnknown)
		}
		c.server.set(false)
		if got := c.reasons(p); got["n2"] != gpu.PreemptionPending || got["n1"] != "" {
			t.Errorf("while nobody knows: %v", got)
		}
		c.sweep(t.Context(), c.sweep(t.Context(), nil))
		if h, _ := c.ledger.Hold("p"); h.State != ledger.Claimed {
			t.Errorf("it is %s, want %s", h.State, ledger.Claimed)
		}
	})
}

// TestAPodWithoutCardsGivesItsClaimUp: nobody can send it to its node, so what
// kube-scheduler has found for it will do.
func TestAPodWithoutCardsGivesItsClaimUp(t *testing.T) {
	c := newCluster(1, 1)
	c.server.create(pod("p"))
	if err := c.ledger.Claim(gpu.Placement{Pod: "p", Namespace: "ns", Name: "p", Node: "n1", CPU: 5}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Bind(t.Context(), target("p", "n2")); err != nil {
		t.Fatal(err)
	}
	if _, claims := c.ledger.Snapshot().Claim("p"); claims {
		t.Error("it has its claim still")
	}
}

// TestClaimantsAreNotWoken: there is one node for them, and who has others leave it
// sends them there. Once the claim has ended they are as anybody.
func TestClaimantsAreNotWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1, 1)
		c.takes(t, "victim", "n1", whole(1))
		c.takes(t, "stays", "n2", whole(1))
		c.waits(t, "before", whole(1)) // refused before it has a claim
		c.wakes(t)
		c.claims(t, pod("before", whole(1)), "n1-d0", "victim")
		c.ends("stays")
		time.Sleep(time.Minute)
		c.mustHaveWoken(t)
		c.tries(t, "before", false) // and again with it
		c.ends("victim")
		time.Sleep(time.Minute)
		c.mustHaveWoken(t)
		c.ledger.Unclaim("before")
		time.Sleep(time.Second)
		c.mustHaveWoken(t, "before")
	})
}

// TestAWakeUpThatIsOvertaken: a pod that was about to be woken has a claim by now.
func TestAWakeUpThatIsOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(append([]int{1}, make([]int, shownWhole)...)...)
		c.takes(t, "holder", "n1", whole(1))
		c.waits(t, "waiter", whole(1))
		c.wakes(t)
		c.ends("holder")
		time.Sleep(time.Second)
		c.mustHaveNominated(t, history{Nominated: []string{"waiter@n1"}})
		c.claims(t, pod("waiter", whole(1)), "n1-d0")
		time.Sleep(time.Minute)
		// The nomination is for the node that is claimed: it is not ours to take back.
		c.mustHaveNominated(t, history{Nominated: []string{"waiter@n1"}})
	})
}
