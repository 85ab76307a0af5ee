package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

func TestForesee(t *testing.T) {
	cards, memory, cores := cardLimit(4), memoryLimit(4000), coreLimit(250)
	cards.Quota, memory.Quota, cores.Quota = "Tenant ns", "Tenant ns", "Tenant ns"
	tight := memory
	tight.Most = 1449
	tiny := memory
	tiny.Most = 299
	musaCards, musaMemory := gpu.Limit{Quota: "Tenant ns", Name: "musa", Vendor: gpu.Musa}, memory
	musaMemory.Vendor, musaMemory.Most = gpu.Musa, 100
	excess := func(l gpu.Limit, used, asked int64) *gpu.Excess {
		return &gpu.Excess{Limit: &l, Used: used, Asked: asked}
	}
	of := func(v gpu.Vendor, a gpu.Ask) gpu.Ask { a.Vendor = v; return a }
	in := func(role gpu.Role, a gpu.Ask) gpu.Ask { a.Role = role; return a }
	neutral := gpu.Ask{Count: 1, Cores: 50}
	tests := map[string]struct {
		rules rules
		asks  []gpu.Ask
		want  Outlook
	}{
		"nothing is limited":      {asks: []gpu.Ask{whole(99)}},
		"it asks for no card":     {rules: rules{closed: []string{"ns"}}.limiting("ns", gpu.Limit{})},
		"its tenant is closed":    {rules: rules{closed: []string{"ns"}}, asks: []gpu.Ask{whole(1)}, want: Outlook{Closed: gpu.TenantInactive}},
		"two claim its namespace": {rules: rules{tenants: map[string]gpu.TenantID{"ns": ""}}, asks: []gpu.Ask{slice(1)}, want: Outlook{Unknown: true}},
		"closed, and never": {
			rules: rules{closed: []string{"ns"}}.limiting("ns", cards), asks: []gpu.Ask{whole(5)},
			want: Outlook{Closed: gpu.TenantInactive, Never: excess(cards, 0, 5), Now: excess(cards, 1, 5)},
		},
		"it fits":                            {rules: rules{}.limiting("ns", cards), asks: []gpu.Ask{whole(3)}},
		"not beside what is":                 {rules: rules{}.limiting("ns", cards), asks: []gpu.Ask{whole(4)}, want: Outlook{Now: excess(cards, 1, 4)}},
		"not even alone":                     {rules: rules{}.limiting("ns", cards), asks: []gpu.Ask{whole(5)}, want: Outlook{Never: excess(cards, 0, 5), Now: excess(cards, 1, 5)}},
		"the first limit never":              {rules: rules{}.limiting("ns", cards, memory), asks: []gpu.Ask{whole(5)}, want: Outlook{Never: excess(cards, 0, 5), Now: excess(cards, 1, 5)}},
		"one now, another never":             {rules: rules{}.limiting("ns", cards, cores), asks: []gpu.Ask{{Count: 4, Cores: 70}}, want: Outlook{Never: excess(cores, 0, 280), Now: excess(cards, 1, 4)}},
		"whole cards may be of less compute": {rules: rules{}.limiting("ns", cores), asks: []gpu.Ask{whole(3)}, want: Outlook{Now: excess(cores, 100, 300)}},

		// The cards that suit are of 1000 and of 2000 MiB, 900 of either for slices.
		"whole cards, as small as there are": {rules: rules{}.limiting("ns", memory), asks: []gpu.Ask{of(gpu.Nvidia, whole(3))}},
		"of the smallest it takes too many":  {rules: rules{}.limiting("ns", memory), asks: []gpu.Ask{of(gpu.Nvidia, whole(4))}, want: Outlook{Now: excess(memory, 1000, 4000)}},
		"those that are large enough": {
			rules: rules{}.limiting("ns", memory), asks: []gpu.Ask{{Count: 2, Vendor: gpu.Nvidia, Whole: true, Memory: 1001}},
			want: Outlook{Now: excess(memory, 1000, 4000)},
		},
		"all of them too large": {rules: rules{}.limiting("ns", tiny), asks: []gpu.Ask{whole(1)}, want: Outlook{Now: excess(tiny, 1000, 300)}},
		"large by what it says": {
			rules: rules{}.limiting("ns", tiny), asks: []gpu.Ask{{Count: 2, Vendor: gpu.Nvidia, Whole: true, Memory: 150}},
			want: Outlook{Never: excess(tiny, 0, 300), Now: excess(tiny, 1000, 2000)},
		},
		"a share of any of them":    {rules: rules{}.limiting("ns", tiny), asks: []gpu.Ask{of(gpu.Nvidia, gpu.Ask{Count: 1, MemoryPercent: 50})}, want: Outlook{Now: excess(tiny, 1000, 450)}},
		"a share of the smallest":   {rules: rules{}.limiting("ns", tight), asks: []gpu.Ask{percent(50)}, want: Outlook{Now: excess(tight, 1000, 450)}},
		"none there suits at all":   {rules: rules{}.limiting("ns", memory), asks: []gpu.Ask{of(gpu.Ascend, whole(1))}},
		"none there, and too many":  {rules: rules{}.limiting("ns", cards), asks: []gpu.Ask{of(gpu.Ascend, whole(5))}, want: Outlook{Never: excess(cards, 0, 5), Now: excess(cards, 1, 5)}},
		"the larger of init and it": {rules: rules{}.limiting("ns", cards), asks: []gpu.Ask{whole(3), in(gpu.Init, whole(2))}},
		"a sidecar beside it":       {rules: rules{}.limiting("ns", cards), asks: []gpu.Ask{whole(3), in(gpu.Sidecar, whole(2))}, want: Outlook{Never: excess(cards, 0, 5), Now: excess(cards, 1, 5)}},

		// Of any vendor: one that has some left will do.
		"the other vendor":      {rules: rules{}.limiting("ns", musaCards), asks: []gpu.Ask{neutral}},
		"the one that it names": {rules: rules{}.limiting("ns", musaCards), asks: []gpu.Ask{of(gpu.Musa, neutral)}, want: Outlook{Never: excess(musaCards, 0, 1), Now: excess(musaCards, 0, 1)}},
		"neither vendor": {
			rules: rules{}.limiting("ns", musaMemory, gpu.Limit{Vendor: gpu.Nvidia}), asks: []gpu.Ask{neutral},
			want: Outlook{Now: excess(musaMemory, 0, 150)},
		},
		"each container its own":  {rules: rules{}.limiting("ns", musaCards), asks: []gpu.Ask{neutral, neutral}},
		"what holds for any card": {rules: rules{}.limiting("ns", cards), asks: []gpu.Ask{{Count: 3, Cores: 10}, {Count: 2, Cores: 10}}, want: Outlook{Never: excess(cards, 0, 5), Now: excess(cards, 1, 5)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(1)
			large := sized("n2", 2000, 2000, 2000)
			for i := range large.Cards {
				large.Cards[i].Usable = 900
			}
			c.ledger.SetNode(large)
			musa := sized("n3", 300)
			musa.Cards[0].Vendor = gpu.Musa
			c.ledger.SetNode(musa)
			mustReserve(c, "holder", "n1-d0") // what is in use counts as there
			c.ledger.Govern(tc.rules)
			r := pod("asks", tc.asks...)
			if diff := cmp.Diff(tc.want, c.Foresee(&r)); diff != "" {
				t.Errorf("outlook (-want +got):\n%s", diff)
			}
		})
	}
}

// What is never to be is refused by every node, and what is not now by those there
// are: nothing that would be bound is foreseen to be refused.
func TestForeseeRefusesNothingThatFits(t *testing.T) {
	kinds := []gpu.Ask{whole(1), whole(2), percent(50), {Count: 1, Cores: 50}, {Count: 2, Memory: 100, Vendor: gpu.Nvidia}, {Count: 1, Whole: true, Memory: 1500}}
	limits := []func(int64) gpu.Limit{cardLimit, memoryLimit, coreLimit}
	for k, ask := range kinds {
		for l, limit := range limits {
			for most := int64(0); most <= 3000; most += []int64{1, 150, 50}[l] {
				c := limited([]gpu.Limit{limit(most)}, 2)
				c.ledger.SetNode(sized("n2", 1500, 2500))
				r := pod("asks", ask)
				f, o := c.Filter(&r, c.all()), c.Foresee(&r)
				if f.Fit > 0 && (o.Now != nil || o.Never != nil) || o.Never != nil && o.Now == nil {
					t.Fatalf("ask %d, %s %d: fits %v, outlook %+v", k, limit(most).Name, most, f.Feasible, o)
				}
				if f.Fit == 0 && f.Reason == gpu.QuotaExceeded && o.Now == nil {
					t.Fatalf("ask %d, %s %d: not foreseen: %s", k, limit(most).Name, most, f.Summary)
				}
				if most > 10 && l == 0 {
					break
				}
			}
		}
	}
}

// Kinds of cards come with a change of a node, and go when nodes go. What there is
// makes a pod wait, and never ends its hopes: smaller cards may come, as where a pool
// has been scaled down to nothing.
func TestForeseeFollowsTheCluster(t *testing.T) {
	c := limited([]gpu.Limit{memoryLimit(700)}, 1, 1)
	r := pod("asks", whole(1))
	mustWait := func(want bool, when string) {
		t.Helper()
		if o := c.Foresee(&r); (o.Now != nil) != want || o.Never != nil {
			t.Errorf("%s: %+v", when, o)
		}
	}
	mustWait(true, "cards of 1000 MiB alone")
	c.ledger.SetNode(sized("n2", 500, 1000))
	mustWait(false, "a small card is there")
	c.ledger.RemoveNode("n2")
	mustWait(true, "it has gone")
	c.ledger.SetNode(sized("n3", 600))
	mustWait(false, "a small card on a new node")
	for _, id := range []gpu.NodeID{"n1", "n3"} {
		c.ledger.RemoveNode(id)
	}
	mustWait(false, "no card at all")
}

// BenchmarkForesee is what a new pod costs whose quota counts what cards are like.
func BenchmarkForesee(b *testing.B) {
	c, _ := pool(5000)
	for name, r := range map[string]gpu.Request{"whole": pod("a", whole(1)), "slice": pod("a", gpu.Ask{Count: 1, Vendor: gpu.Nvidia, Memory: 100})} {
		for limit, rules := range map[string]ledger.Rules{"without": rules{}, "with": rules{}.limiting("ns", memoryLimit(1000))} {
			c.ledger.Govern(rules)
			b.Run(name+"/"+limit, func(b *testing.B) {
				for b.Loop() {
					c.Foresee(&r)
				}
			})
		}
	}
}
