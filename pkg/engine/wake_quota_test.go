package engine

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// joins gives a pod of another namespace the card, as a bind that has been
// confirmed would.
func (c cluster) joins(name, namespace string, card gpu.CardID, share gpu.Share) {
	share.Card, share.Vendor = card, gpu.Nvidia
	c.ledger.Confirm(gpu.Placement{
		Pod: gpu.PodID(name), Namespace: namespace, Name: name, Node: gpu.NodeID(card[:2]), Grants: []gpu.Grant{{Shares: []gpu.Share{share}}},
	})
}

var alone = gpu.Share{Memory: 1000, Cores: 100, Exclusive: true} // read only

// A quota that is freed on a node where there is no room wakes who fits on another,
// that has not changed; every time, though others have been faster before.
func TestWakesWhenAQuotaIsFreed(t *testing.T) {
	for name, limit := range map[string]gpu.Limit{"cards": cardLimit(1), "memory": memoryLimit(1000), "cores": coreLimit(100)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := limited([]gpu.Limit{limit}, 1, 1)
				c.takes(t, "holder", "n1", whole(1))
				c.waits(t, "waiter", whole(1))
				c.wakes(t)
				time.Sleep(time.Minute)
				c.mustHaveWoken(t)

				var woken []string
				for range 8 {
					c.ends("holder")
					c.joins("stranger", "other", "n1-d0", alone)
					time.Sleep(time.Second)
					woken = append(woken, "waiter")
					c.mustHaveWoken(t, woken...)

					// Somebody who did not wait takes it before the pod comes.
					c.ledger.Release("stranger")
					c.joins("holder", "ns", "n1-d0", alone)
					c.tries(t, "waiter", false)
					time.Sleep(10 * time.Second)
					c.mustHaveWoken(t, woken...)
				}
			})
		})
	}
}

// So it does where the quota was not in the way yet when the pod was refused, but
// when room came.
func TestWakesWhenAQuotaIsFreedAfterTheRoom(t *testing.T) {
	for name, limit := range map[string]gpu.Limit{"cards": cardLimit(1), "memory": memoryLimit(1000)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := limited([]gpu.Limit{limit}, 1, 1)
				c.joins("stranger", "other", "n1-d0", alone)
				c.joins("another", "other", "n2-d0", alone)
				c.waits(t, "waiter", whole(1))
				c.wakes(t)
				c.ledger.Release("another")
				c.joins("holder", "ns", "n2-d0", alone)
				c.ledger.Release("stranger")
				time.Sleep(time.Minute)
				c.mustHaveWoken(t)
				c.ledger.Release("holder")
				c.joins("another", "other", "n2-d0", alone)
				time.Sleep(time.Second)
				c.mustHaveWoken(t, "waiter")
			})
		})
	}
}

// What administrators write wakes whom it lets in, within a second.
func TestWakesWhenTheRulesChange(t *testing.T) {
	beside := func(c cluster) { c.joins("stranger", "other", "n1-d0", gpu.Share{Memory: 100, Cores: 10}) }
	tests := map[string]struct {
		before, after rules
		with          func(cluster)
		ask           gpu.Ask
	}{
		"a limit is raised":     {before: rules{}.limiting("ns", cardLimit(0)), after: rules{}.limiting("ns", cardLimit(1)), ask: whole(1)},
		"of what a card counts": {before: rules{}.limiting("ns", memoryLimit(999)), after: rules{}.limiting("ns", memoryLimit(1000)), ask: whole(1)},
		"a limit is taken away": {before: rules{}.limiting("ns", cardLimit(0)), ask: whole(1)},
		"a tenant is activated": {before: rules{closed: []string{"ns"}}, ask: whole(1)},
		"a group is added":      {after: rules{groups: [][]gpu.TenantID{{"ns", "other"}}}, with: beside, ask: slice(100)},
		"the namespace moves":   {after: rules{tenants: map[string]gpu.TenantID{"ns": "other"}}, with: beside, ask: slice(100)},
		"the other one moves":   {after: rules{tenants: map[string]gpu.TenantID{"other": "ns"}}, with: beside, ask: slice(100)},
		"a node is opened to it": {
			before: rules{tenants: map[string]gpu.TenantID{"ns": "red"}}, after: rules{tenants: map[string]gpu.TenantID{"ns": "blue"}}, ask: whole(1),
			with: func(c cluster) { c.ledger.SetNode(ledger.Facts{ID: "n1", Cards: cards("n1", 1), Dedicated: "blue"}) },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(1)
				c.ledger.Govern(tc.before)
				if tc.with != nil {
					tc.with(c)
				}
				c.waits(t, "waiter", tc.ask)
				c.wakes(t)
				time.Sleep(time.Minute)
				c.mustHaveWoken(t)
				c.ledger.Govern(tc.after)
				time.Sleep(time.Second)
				c.mustHaveWoken(t, "waiter")
				c.tries(t, "waiter", true)
			})
		})
	}
}

// Who has been woken in vain, and so is left alone for long, is not when it becomes
// somebody else's, or may come again: that may be what kube-scheduler had against it.
func TestWakesAnewWhoIsSomebodyElses(t *testing.T) {
	for name, after := range map[string][]rules{
		"another tenant": {{tenants: map[string]gpu.TenantID{"ns": "blue"}}},
		"closed and not": {{closed: []string{"ns"}}, {}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(1)
				c.takes(t, "holder", "n1", whole(1))
				c.waits(t, "waiter", whole(1))
				c.wakes(t)
				c.ends("holder")
				for range 8 {
					c.joins("stranger", "other", "n1-d0", alone)
					time.Sleep(2 * time.Minute)
					c.ledger.Release("stranger")
					time.Sleep(5 * time.Second) // it is woken and does not come
				}
				c.mustHaveWoken(t, slices.Repeat([]string{"waiter"}, 8)...)
				for _, r := range after {
					c.ledger.Govern(r)
					time.Sleep(time.Second)
				}
				c.mustHaveWoken(t, slices.Repeat([]string{"waiter"}, 9)...)
			})
		})
	}
}

// Rules that are about others cost those who wait nothing: no node is looked at.
func TestOtherPeoplesRulesLookAtNobody(t *testing.T) {
	tests := map[string]struct {
		after  rules
		judged int
	}{
		"another namespace's tenant": {after: rules{tenants: map[string]gpu.TenantID{"other": "blue"}}},
		"another namespace closed":   {after: rules{closed: []string{"other"}}},
		"another tenant's limit":     {after: rules{}.limiting("other", cardLimit(1))},
		"its own tenant":             {after: rules{tenants: map[string]gpu.TenantID{"ns": "blue"}}, judged: 2},
		"the groups":                 {after: rules{groups: [][]gpu.TenantID{{"red", "blue"}}}, judged: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(1, 1)
			r := pod("waiter", whole(2))
			c.Filter(&r, c.all())
			w := newWaker(&c.waiting, func(Target) bool { return true }, c.terms(c.ledger.Snapshot()))
			for range 2 { // all that there is to look at
				w.next(c.ledger.Snapshot(), c.terms(c.ledger.Snapshot()), c.cfg.Now())
			}
			c.ledger.Govern(tc.after)
			w.next(c.ledger.Snapshot(), c.terms(c.ledger.Snapshot()), c.cfg.Now())
			if w.judged != tc.judged {
				t.Errorf("%d nodes are looked at, want %d", w.judged, tc.judged)
			}
		})
	}
}

// As many are woken as a quota lets in, whatever room there is besides, and of
// those that another quota is for as many as that.
func TestWakesAsManyAsAQuotaLetsIn(t *testing.T) {
	for name, limit := range map[string]gpu.Limit{"cards": cardLimit(2), "memory": memoryLimit(2000)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(4, 4, 4)
				mustHave := func(want ...string) { // those of a turn in any order
					t.Helper()
					synctest.Wait()
					if diff := cmp.Diff(want, slices.Sorted(slices.Values(c.woken()))); diff != "" {
						t.Errorf("woken (-want +got):\n%s", diff)
					}
				}
				c.ledger.Govern(rules{closed: []string{"ns"}})
				for i := range 6 {
					c.waits(t, fmt.Sprint("w", i), whole(1))
				}
				c.wakes(t)
				time.Sleep(time.Minute)
				c.ledger.Govern(rules{}.limiting("ns", limit))
				time.Sleep(time.Second)
				mustHave("w0", "w1")
				for _, name := range []string{"w0", "w1"} {
					if _, err := c.Bind(t.Context(), target(name, "n1")); err != nil {
						t.Fatal(err)
					}
				}
				c.confirm()
				time.Sleep(time.Minute)
				mustHave("w0", "w1")
				c.ends("w0")
				time.Sleep(time.Second)
				mustHave("w0", "w1", "w2")
			})
		})
	}
}

// One whom kube-scheduler lets onto no node that has room is not woken again and
// again by a quota that is not in its way.
func TestAQuotaDoesNotWakeInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := limited([]gpu.Limit{memoryLimit(1500)}, 1, 1)
		c.ledger.SetNode(sized("n2", 2000)) // would pass the quota
		c.joins("stranger", "other", "n1-d0", alone)
		c.waits(t, "waiter", whole(1))
		c.wakes(t)
		c.ledger.Release("stranger")
		time.Sleep(time.Second)
		c.mustHaveWoken(t, "waiter")
		r := pod("waiter", whole(1))
		c.Filter(&r, []gpu.NodeID{"n2"}) // n1 has a taint, or the like
		time.Sleep(time.Hour)
		c.mustHaveWoken(t, "waiter")
	})
}

// The memory for what quotas would have to allow is bounded; what does not fit into
// it is not lost: any other purse may allow it.
func TestPricesAreBounded(t *testing.T) {
	purse := func(most int64) ledger.Purse {
		return ledger.New(rules{}.limiting("ns", memoryLimit(most))).Snapshot().Purse("ns")
	}
	few := func(n int) (p prices) {
		for i := range 2 * n { // each twice
			p.add(purse(10), gpu.Spending{{Vendor: gpu.Nvidia, Devices: 1, Memory: gpu.MiB(1000 + i/2)}})
		}
		return p
	}
	tests := map[string]struct {
		prices prices
		others bool // other purses, which allow none of what is remembered
	}{
		"none":            {},
		"one":             {prices: few(1)},
		"as many as fit":  {prices: few(mostPrices)},
		"one more":        {prices: few(mostPrices + 1), others: true},
		"many times more": {prices: few(10 * mostPrices), others: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if len(tc.prices.all) > mostPrices {
				t.Errorf("%d prices", len(tc.prices.all))
			}
			for most, want := range map[int64]bool{10: false, 11: tc.others, 9: tc.others, 1000: tc.prices.some()} {
				if got := tc.prices.within(purse(most)); got != want {
					t.Errorf("within %d MiB: %t, want %t", most, got, want)
				}
			}
		})
	}
}

// A pod that more kinds of cards are too dear for than are remembered costs a turn
// nothing as long as its quotas leave the same.
func TestManyPricesAreLookedAtOnce(t *testing.T) {
	c := limited([]gpu.Limit{memoryLimit(900)})
	for i := range 2 * mostPrices {
		c.ledger.SetNode(sized(gpu.NodeID(fmt.Sprintf("n%02d", i)), gpu.MiB(1000+i)))
	}
	r := pod("waiter", whole(1))
	c.Filter(&r, c.all())
	w := newWaker(&c.waiting, func(Target) bool { return true }, c.terms(c.ledger.Snapshot()))
	turn := func() int { w.next(c.ledger.Snapshot(), c.terms(c.ledger.Snapshot()), c.cfg.Now()); return w.judged }
	if got := []int{turn(), turn()}; got[0]+got[1] > 0 {
		t.Errorf("%v nodes are looked at, want none", got)
	}
	c.ledger.Govern(rules{}.limiting("ns", memoryLimit(901)))
	if got := []int{turn(), turn()}; got[0] != 2*mostPrices || got[1] > 0 {
		t.Errorf("%v nodes are looked at under another limit, want each once", got)
	}
	c.ledger.Govern(rules{}.limiting("ns", memoryLimit(1000+2*mostPrices-1)))
	turn()
	if len(w.claims) != 1 {
		t.Error("the pod fits now, and is not woken")
	}
}

// BenchmarkWakeOfMany is a turn with thousands that wait, for a quota or for room,
// in a cluster where something changes all the time.
func BenchmarkWakeOfMany(b *testing.B) {
	for name, tc := range map[string]struct {
		rules rules
		ask   gpu.Ask
	}{
		"room":   {rules{}, whole(9)},
		"cards":  {rules{}.limiting("ns", cardLimit(1)), whole(1)},
		"memory": {rules{}.limiting("ns", memoryLimit(1000)), whole(1)},
	} {
		b.Run(name, func(b *testing.B) {
			c, nodes := pool(1000)
			c.ledger.Govern(tc.rules)
			for i := range mostWaiting {
				r := pod(fmt.Sprint("w", i), tc.ask)
				c.Filter(&r, nodes)
			}
			w := newWaker(&c.waiting, func(Target) bool { return true }, c.terms(c.ledger.Snapshot()))
			w.next(c.ledger.Snapshot(), c.terms(c.ledger.Snapshot()), c.cfg.Now())
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				c.joins("stranger", "other", "n1-d7", gpu.Share{Memory: gpu.MiB(1 + i%2), Cores: 1})
				if got := w.next(c.ledger.Snapshot(), c.terms(c.ledger.Snapshot()), c.cfg.Now()); len(got) > 0 {
					b.Fatalf("%v are woken", got)
				}
			}
		})
	}
}
