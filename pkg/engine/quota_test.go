package engine

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// all returns the names of the cluster's nodes.
func (c cluster) all() (ids []gpu.NodeID) {
	for id := range c.ledger.Snapshot().Nodes() {
		ids = append(ids, id)
	}
	return ids
}

// percent is a slice of that much of a card's memory.
func percent(n int) gpu.Ask { return gpu.Ask{Count: 1, Vendor: gpu.Nvidia, MemoryPercent: n} }

// sized gives the cards of a node these sizes, of which slices may take all.
func sized(node gpu.NodeID, sizes ...gpu.MiB) ledger.Facts {
	f := ledger.Facts{ID: node, Cards: cards(node, len(sizes))}
	for i, m := range sizes {
		f.Cards[i].Memory, f.Cards[i].Usable = m, m
	}
	return f
}

// What the pod's owner reads: whose quota it is, what is used of it and what was
// asked; and the one code that kube-scheduler is told.
func TestFilterUnderQuota(t *testing.T) {
	tests := map[string]struct {
		limits  []gpu.Limit
		holders []gpu.Ask
		ask     gpu.Ask
		reason  gpu.Reason
		text    string // "" for one that fits
	}{
		"below it":              {[]gpu.Limit{cardLimit(4)}, []gpu.Ask{whole(3)}, whole(1), "", ""},
		"what is used and more": {[]gpu.Limit{cardLimit(4)}, []gpu.Ask{whole(3)}, whole(2), gpu.QuotaExceeded, "0/3 nodes: 3 QuotaExceeded (cards of Tenant ns: 3 of 4 used, 2 asked)"},
		"all is used":           {[]gpu.Limit{cardLimit(4)}, []gpu.Ask{whole(3), slice(100)}, slice(100), gpu.QuotaExceeded, "0/3 nodes: 3 QuotaExceeded (cards of Tenant ns: 4 of 4 used, 1 asked)"},
		"more than it":          {[]gpu.Limit{cardLimit(4)}, nil, whole(5), gpu.QuotaExceeded, "0/3 nodes: 3 QuotaExceeded (cards of Tenant ns: 0 of 4 used, 5 asked)"},
		"lowered since":         {[]gpu.Limit{cardLimit(0)}, nil, slice(1), gpu.QuotaExceeded, "0/3 nodes: 3 QuotaExceeded (cards of Tenant ns: 0 of 0 used, 1 asked)"},
		"memory of slices":      {[]gpu.Limit{memoryLimit(500)}, []gpu.Ask{slice(300)}, slice(201), gpu.QuotaExceeded, "0/3 nodes: 3 QuotaExceeded (memoryMiB of Tenant ns: 300 of 500 used, 201 asked)"},
		"memory to the last":    {[]gpu.Limit{memoryLimit(500)}, []gpu.Ask{slice(300)}, slice(200), "", ""},
		"compute of a whole card": {[]gpu.Limit{coreLimit(150)}, []gpu.Ask{{Count: 1, Memory: 1, Cores: 60}}, whole(1), gpu.QuotaExceeded,
			"0/3 nodes: 3 QuotaExceeded (cores of Tenant ns: 60 of 150 used, 100 asked)"},
		// What is not a number of MiB in the request is one on the card.
		"memory of whole cards": {[]gpu.Limit{memoryLimit(1500)}, []gpu.Ask{whole(1)}, whole(1), gpu.QuotaExceeded, "0/3 nodes: 3 QuotaExceeded (memoryMiB of Tenant ns: 1000 of 1500 used, 1000 asked)"},
		"memory of a percentage": {[]gpu.Limit{memoryLimit(500)}, []gpu.Ask{percent(50)}, percent(10), gpu.QuotaExceeded,
			"0/3 nodes: 3 QuotaExceeded (memoryMiB of Tenant ns: 450 of 500 used, 90 asked)"},
		"two reasons": {[]gpu.Limit{memoryLimit(4500)}, nil, whole(5), gpu.QuotaExceeded,
			"0/3 nodes: 2 InsufficientGPUCount (most free: 4 of 5 cards on n1), 1 QuotaExceeded (memoryMiB of Tenant ns: 0 of 4500 used, 5000 asked)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := limited(tc.limits, 4, 4, 5)
			c.ledger.Govern(rules{})
			for i, ask := range tc.holders {
				c.takes(t, fmt.Sprint("holder-", i), "n1", ask)
			}
			c.ledger.Govern(rules{}.limiting("ns", tc.limits...))
			r := pod("asks", tc.ask)
			f := c.Filter(&r, c.all())
			if (f.Fit > 0) != (tc.text == "") || f.Fit == 0 && f.Reason != tc.reason {
				t.Fatalf("%d fit, reason %s, want %q", f.Fit, f.Reason, tc.reason)
			}
			if text := f.Summary.String(); f.Fit == 0 && text != tc.text {
				t.Errorf("event %s\nwant  %s", text, tc.text)
			}
			_, err := c.tryBind(t, r)
			if (err == nil) != (tc.text == "") {
				t.Errorf("bind: %v", err)
			}
		})
	}
}

// tryBind binds the pod to the last node, whatever Filter says.
func (c cluster) tryBind(t *testing.T, r gpu.Request) (Bound, error) {
	t.Helper()
	c.server.create(r)
	all := c.all()
	return c.Bind(t.Context(), Target{Pod: r.Pod, Namespace: r.Namespace, Name: r.Name, Node: all[len(all)-1]})
}

// What is only seen at bind is told likewise, and nothing is held.
func TestBindIsRefused(t *testing.T) {
	tests := map[string]struct {
		rules  rules
		reason gpu.Reason
		text   string
	}{
		"by a quota": {rules{}.limiting("ns", cardLimit(0)), gpu.QuotaExceeded, "QuotaExceeded: node n1 no longer fits (cards of Tenant ns: 0 of 0 used, 1 asked)"},
		"by a quota that counts the card": {rules{}.limiting("ns", memoryLimit(999)), gpu.QuotaExceeded,
			"QuotaExceeded: node n1 no longer fits (memoryMiB of Tenant ns: 0 of 999 used, 1000 asked)"},
		"by a tenant that is not active": {rules{closed: []string{"ns"}}, gpu.TenantInactive, "TenantInactive: node n1 no longer fits"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(1)
			r := pod("a", whole(1))
			if f := c.Filter(&r, c.all()); f.Fit != 1 {
				t.Fatal("does not fit")
			}
			c.ledger.Govern(tc.rules)
			_, err := c.tryBind(t, r)
			var refusal *Refusal
			if !errors.As(err, &refusal) || refusal.Reason != tc.reason || err.Error() != tc.text {
				t.Errorf("bind: %v\nwant: %s", err, tc.text)
			}
			if held := c.ledger.Pods(); len(held) > 0 {
				t.Errorf("held for %v", held)
			}
		})
	}
}

// The slices of another tenant are in the way of slices, and only of those: a pod
// that needs a free card is told that none is.
func TestNoTenantEligibleGPUIsNotFull(t *testing.T) {
	c := newCluster(2, 2, 1)
	for i, card := range []gpu.CardID{"n1-d0", "n1-d1", "n2-d0", "n2-d1"} {
		c.ledger.Confirm(gpu.Placement{Pod: gpu.PodID(fmt.Sprint("other-", i)), Namespace: "other", Node: gpu.NodeID(card[:2]), Grants: []gpu.Grant{{
			Shares: []gpu.Share{{Card: card, Vendor: gpu.Nvidia, Memory: 100, Cores: 10}},
		}}})
	}
	mustReserve(c, "full", "n3-d0")
	for want, ask := range map[string]gpu.Ask{
		"0/3 nodes: 2 NoTenantEligibleGPU (4 cards closed; most left: 0 of 1 cards on n1), 1 InsufficientGPUMemory (most free: 0 of 100 MiB on n3)": slice(100),
		"0/3 nodes: 3 InsufficientGPUCount (most free: 0 of 1 cards on n1)":                                                                         whole(1),
	} {
		r := pod("asks", ask)
		if got := c.Filter(&r, c.all()).Summary.String(); got != want {
			t.Errorf("event %s\nwant  %s", got, want)
		}
	}
	r := pod("asks", slice(100))
	c.server.create(r)
	_, err := c.Bind(t.Context(), target("asks", "n1"))
	if want := "NoTenantEligibleGPU: node n1 no longer fits (2 cards closed; left: 0 of 1 cards)"; err == nil || err.Error() != want {
		t.Errorf("bind: %v\nwant: %s", err, want)
	}
}

// Three pods in the same instant under a quota for two, each with a node of its own.
func TestBindsUnderAQuotaAtOnce(t *testing.T) {
	for round := range 50 {
		c := limited([]gpu.Limit{cardLimit(2)}, 1, 1, 1)
		results := make([]error, 3)
		var all sync.WaitGroup
		start := make(chan struct{})
		for i := range results {
			name := fmt.Sprint("p", i)
			c.server.create(pod(name, whole(1)))
			all.Go(func() {
				<-start
				_, results[i] = c.Bind(t.Context(), target(name, gpu.NodeID(fmt.Sprint("n", i+1))))
			})
		}
		close(start)
		all.Wait()
		bound := 0
		for _, err := range results {
			var refusal *Refusal
			switch {
			case err == nil:
				bound++
			case !errors.As(err, &refusal) || refusal.Reason != gpu.QuotaExceeded || !strings.Contains(err.Error(), "cards of Tenant ns: 2 of 2 used, 1 asked"):
				t.Errorf("round %d: %v", round, err)
			}
		}
		if bound != 2 || len(c.ledger.Pods()) != 2 {
			t.Fatalf("round %d: %d bound, %v hold cards", round, bound, c.ledger.Pods())
		}
	}
}

// Pods on their way count: a burst that fills a quota to the last card, over more
// nodes than it may use, has no bind refused.
func TestBurstAtAQuotaDoesNotBounce(t *testing.T) {
	for name, tc := range map[string]struct {
		limit gpu.Limit
		ask   gpu.Ask
	}{
		"cards": {cardLimit(6), whole(1)}, "memory": {memoryLimit(6000), whole(1)}, "slices": {memoryLimit(600), slice(100)},
	} {
		t.Run(name, func(t *testing.T) {
			c := limited([]gpu.Limit{tc.limit}, 2, 2, 2, 2)
			nodes := map[string]gpu.NodeID{}
			for i := range 6 {
				name := fmt.Sprint("p", i)
				nodes[name] = c.goes(t, name, tc.ask, c.all()...)
			}
			for name, node := range nodes {
				if _, err := c.Bind(t.Context(), target(name, node)); err != nil {
					t.Error(err)
				}
			}
			if got := c.goes(t, "one more", tc.ask, c.all()...); got != "" {
				t.Errorf("one more is sent to %s", got)
			}
		})
	}
}

// Where pods are expected is no reason: who would fit but for those is sent, and
// has what is left if its bind comes first.
func TestHintIsNoSpending(t *testing.T) {
	for name, limit := range map[string]gpu.Limit{"cards": cardLimit(1), "memory": memoryLimit(1000)} {
		t.Run(name, func(t *testing.T) {
			c := limited([]gpu.Limit{limit}, 2, 2)
			c.goes(t, "first", whole(1), "n1", "n2")
			r := pod("second", whole(1))
			c.server.create(r)
			if f := c.Filter(&r, c.all()); f.Fit != 2 {
				t.Fatalf("refused: %s", f.Summary)
			}
			if _, err := c.Bind(t.Context(), target("second", "n2")); err != nil {
				t.Error(err)
			}
			_, err := c.Bind(t.Context(), target("first", "n1"))
			var refusal *Refusal
			if !errors.As(err, &refusal) || refusal.Reason != gpu.QuotaExceeded {
				t.Errorf("bind of the first = %v", err)
			}
		})
	}
}

// The last of a quota goes to who was served first, though its bind to another node
// is overtaken.
func TestBindGivesWayForAQuota(t *testing.T) {
	for name, limit := range map[string]gpu.Limit{"cards": cardLimit(1), "memory": memoryLimit(1000)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := limited([]gpu.Limit{limit}, 1, 1)
				first, second := pod("first", whole(1)), pod("second", whole(1))
				first.Priority = 90
				c.sent(t, &first, "n1")
				c.sent(t, &second, "n2")
				time.AfterFunc(time.Second, func() {
					if _, err := c.Bind(t.Context(), target("first", "n1")); err != nil {
						t.Error(err)
					}
				})
				start := time.Now()
				_, err := c.Bind(t.Context(), target("second", "n2"))
				var refusal *Refusal
				if !errors.As(err, &refusal) || refusal.Reason != gpu.QuotaExceeded || time.Since(start) != time.Second {
					t.Errorf("bind of the second = %v after %v", err, time.Since(start))
				}
			})
		})
	}
}

// Another tenant's pods on their way are nothing to wait for.
func TestBindGivesNoWayToAnotherTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1, 1)
		c.ledger.Govern(rules{}.limiting("ns", cardLimit(1)).limiting("other", cardLimit(1)))
		first, second := pod("first", whole(1)), pod("second", whole(1))
		first.Priority, first.Namespace = 90, "other"
		c.sent(t, &first, "n1")
		c.sent(t, &second, "n2")
		start := time.Now()
		if _, err := c.Bind(t.Context(), target("second", "n2")); err != nil || time.Since(start) != 0 {
			t.Errorf("bind of the second = %v after %v", err, time.Since(start))
		}
	})
}

// What a pod holds itself, as the outcome of its bind is not known, does not keep
// it from coming again.
func TestOwnHoldIsNoSpending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := limited([]gpu.Limit{memoryLimit(1000)}, 1, 1)
		c.server.create(pod("a", whole(1)))
		c.server.next = []behaviour{losesRequest}
		c.server.set(true)
		if _, err := c.Bind(t.Context(), target("a", "n1")); !errors.Is(err, ErrUnknown) {
			t.Fatal(err)
		}
		r := pod("a", whole(1))
		if f := c.Filter(&r, c.all()); f.Fit != 2 {
			t.Errorf("%d fit: %s", f.Fit, f.Summary)
		}
		other := pod("b", whole(1))
		if f := c.Filter(&other, c.all()); f.Reason != gpu.QuotaExceeded {
			t.Errorf("another: %s", f.Summary)
		}
	})
}

// Nothing new comes from a closed namespace, but who asks for no card does.
func TestClosedNamespace(t *testing.T) {
	c := newCluster(2)
	c.ledger.Govern(rules{closed: []string{"ns"}})
	r := pod("a", slice(100))
	f := c.Filter(&r, c.all())
	if got, want := f.Summary.String(), "0/1 nodes: 1 TenantInactive"; got != want || f.Reason != gpu.TenantInactive {
		t.Errorf("%s %s, want %s", f.Reason, got, want)
	}
	plain := pod("plain")
	if f := c.Filter(&plain, c.all()); f.Fit != 1 {
		t.Errorf("without cards: %s", f.Summary)
	}
	if _, err := c.tryBind(t, plain); err != nil {
		t.Error(err)
	}
}

// A whole card is judged by the compute that it is charged for, which is its own:
// not all cards have 100 percent of one.
func TestWholeCardsAreJudgedByTheirCompute(t *testing.T) {
	tests := map[string]struct {
		limit int64
		cores [2]gpu.Cores // of the two cards
		ask   gpu.Ask
		used  gpu.Cores // if it fits
	}{
		"just what the card has":     {limit: 50, cores: [2]gpu.Cores{50, 50}, ask: whole(1), used: 50},
		"less than that":             {limit: 49, cores: [2]gpu.Cores{50, 50}, ask: whole(1)},
		"two of them":                {limit: 100, cores: [2]gpu.Cores{50, 50}, ask: whole(2), used: 100},
		"less than two":              {limit: 99, cores: [2]gpu.Cores{50, 50}, ask: whole(2)},
		"the one that has less":      {limit: 50, cores: [2]gpu.Cores{100, 50}, ask: whole(1), used: 50},
		"all of it is named":         {limit: 50, cores: [2]gpu.Cores{50, 50}, ask: gpu.Ask{Count: 1, Whole: true, Cores: 100}, used: 50},
		"one of full compute":        {limit: 100, cores: [2]gpu.Cores{100, 100}, ask: whole(1), used: 100},
		"none within the limit":      {limit: 99, cores: [2]gpu.Cores{100, 100}, ask: whole(1)},
		"both, of different compute": {limit: 150, cores: [2]gpu.Cores{100, 50}, ask: whole(2), used: 150},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := limited([]gpu.Limit{coreLimit(tc.limit)}, 2)
			f := ledger.Facts{ID: "n1", Cards: cards("n1", 2)}
			for i := range f.Cards {
				f.Cards[i].Cores = tc.cores[i]
			}
			c.ledger.SetNode(f)
			r := pod("p", tc.ask)
			c.server.create(r)
			o, judged := c.Foresee(&r), c.Filter(&r, c.all())
			if fits := tc.used > 0; fits != (judged.Fit > 0) || fits != (o.Now == nil) || o.Never != nil {
				t.Fatalf("fits %v, is foreseen as %+v, want %t", judged.Feasible, o, fits)
			}
			if tc.used == 0 {
				return
			}
			if _, err := c.Bind(t.Context(), target("p", "n1")); err != nil {
				t.Fatal(err)
			}
			if got := c.ledger.Snapshot().Spent(gpu.TenantAccount("ns")); len(got) != 1 || got[0].Cores != tc.used {
				t.Errorf("charged for %+v, want %d percent", got, tc.used)
			}
		})
	}
}
