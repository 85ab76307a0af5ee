package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// What a request takes of quotas whatever the cards, and at most.
func TestLeastAndMost(t *testing.T) {
	const all = 100 * gpu.MostMemory
	slice := gpu.Ask{Vendor: gpu.Nvidia, Plugin: "nvidia.com/gpu", Count: 2, Memory: 30, Cores: 20}
	in := func(role gpu.Role, a gpu.Ask) gpu.Ask { a.Role = role; return a }
	of := func(devices, whole int64, memory gpu.MiB, cores gpu.Cores) gpu.Spend {
		return gpu.Spend{Vendor: gpu.Nvidia, Resource: "nvidia.com/gpu", Devices: devices, Whole: whole, Memory: memory, Cores: cores}
	}
	neutral := func(v gpu.Vendor, devices, whole int64, memory gpu.MiB, cores gpu.Cores) gpu.Spend {
		return gpu.Spend{Vendor: v, Devices: devices, Whole: whole, Memory: memory, Cores: cores}
	}
	tests := map[string]struct {
		vendor      gpu.Vendor
		asks        []gpu.Ask
		least, most gpu.Spending // on cards of Ascend, where the vendor is open
		fixed       bool
	}{
		"no cards":          {fixed: true},
		"slices of a size":  {asks: []gpu.Ask{slice}, least: gpu.Spending{of(2, 0, 60, 40)}, most: gpu.Spending{of(2, 0, 60, 40)}, fixed: true},
		"no compute at all": {asks: []gpu.Ask{{Vendor: gpu.Nvidia, Count: 1, Memory: 30}}, least: gpu.Spending{neutral(gpu.Nvidia, 1, 0, 30, 0)}, most: gpu.Spending{neutral(gpu.Nvidia, 1, 0, 30, 0)}, fixed: true},
		"compute in proportion": {
			asks:  []gpu.Ask{{Vendor: gpu.Nvidia, Count: 1, Memory: 30, ProportionalCores: true}},
			least: gpu.Spending{neutral(gpu.Nvidia, 1, 0, 30, 0)}, most: gpu.Spending{neutral(gpu.Nvidia, 1, 0, 30, 100)},
		},
		"a percentage": {
			asks:  []gpu.Ask{{Vendor: gpu.Nvidia, Count: 1, MemoryPercent: 50, Cores: 20}},
			least: gpu.Spending{neutral(gpu.Nvidia, 1, 0, 0, 20)}, most: gpu.Spending{neutral(gpu.Nvidia, 1, 0, all, 20)},
		},
		"compute alone": {
			asks:  []gpu.Ask{{Vendor: gpu.Nvidia, Count: 1, Cores: 20}},
			least: gpu.Spending{neutral(gpu.Nvidia, 1, 0, 0, 20)}, most: gpu.Spending{neutral(gpu.Nvidia, 1, 0, all, 20)},
		},
		"whole cards": {
			asks:  []gpu.Ask{{Vendor: gpu.Nvidia, Plugin: "nvidia.com/gpu", Count: 3, Whole: true, Memory: 80}},
			least: gpu.Spending{of(3, 3, 240, 0)}, most: gpu.Spending{of(3, 3, 3*all, 300)},
		},
		"whole cards, as all of their compute is named": {
			asks:  []gpu.Ask{{Vendor: gpu.Nvidia, Plugin: "nvidia.com/gpu", Count: 1, Whole: true, Cores: 100}},
			least: gpu.Spending{of(1, 1, 0, 0)}, most: gpu.Spending{of(1, 1, all, 100)},
		},
		"of any vendor": {
			asks:  []gpu.Ask{{Count: 1, Memory: 30, Cores: 20}},
			least: gpu.Spending{neutral("", 1, 0, 30, 20)}, most: gpu.Spending{neutral(gpu.Ascend, 1, 0, 30, 20)},
		},
		"of the vendor that the pod names": {
			vendor: gpu.Hygon, asks: []gpu.Ask{{Count: 1, Memory: 30, Cores: 20}},
			least: gpu.Spending{neutral(gpu.Hygon, 1, 0, 30, 20)}, most: gpu.Spending{neutral(gpu.Hygon, 1, 0, 30, 20)}, fixed: true,
		},
		"several containers": {
			asks: []gpu.Ask{slice, slice, in(gpu.Sidecar, slice)}, least: gpu.Spending{of(6, 0, 180, 120)}, most: gpu.Spending{of(6, 0, 180, 120)}, fixed: true,
		},
		"an init container may share its card, or not": {
			asks: []gpu.Ask{slice, in(gpu.Init, slice)}, least: gpu.Spending{of(2, 0, 60, 40)}, most: gpu.Spending{of(4, 0, 120, 80)},
		},
		"a larger init container": {
			asks: []gpu.Ask{slice, in(gpu.Init, gpu.Ask{Vendor: gpu.Nvidia, Plugin: "nvidia.com/gpu", Count: 1, Memory: 90, Cores: 10})}, least: gpu.Spending{of(2, 0, 90, 40)}, most: gpu.Spending{of(3, 0, 150, 50)},
		},
		"an init container beside one of any vendor": {
			asks:  []gpu.Ask{{Count: 1, Memory: 30, Cores: 20}, in(gpu.Init, gpu.Ask{Vendor: gpu.Ascend, Count: 1, Memory: 90, Cores: 10})},
			least: gpu.Spending{neutral("", 1, 0, 30, 20)}, most: gpu.Spending{neutral(gpu.Ascend, 2, 0, 120, 30)},
		},
		"one init container alone": {asks: []gpu.Ask{in(gpu.Init, slice)}, least: gpu.Spending{of(2, 0, 60, 40)}, most: gpu.Spending{of(2, 0, 60, 40)}, fixed: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &gpu.Request{Vendor: tc.vendor, Asks: tc.asks}
			if diff := cmp.Diff(tc.least, Least(r)); diff != "" {
				t.Errorf("least (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.most, Most(r, gpu.Ascend)); diff != "" {
				t.Errorf("most (-want +got):\n%s", diff)
			}
			if Fixed(r) != tc.fixed {
				t.Errorf("fixed %t", Fixed(r))
			}
		})
	}
}

// firstFit packs each ask onto the first open cards, one vendor's.
type firstFit struct{}

func (firstFit) Name() string { return "first-fit" }

func (firstFit) Pack(c *Cycle, n *Candidate) ([]gpu.Grant, Verdict) {
	var grants []gpu.Grant
	for i := range c.Request.Asks {
		a := &c.Request.Asks[i]
		g := gpu.Grant{Container: a.Container, Role: a.Role, Resource: a.Plugin}
		for _, at := range n.Open[:min(a.Count, len(n.Open))] {
			card := &n.Node.Cards[at].Card
			if card.Vendor == n.Node.Cards[n.Open[0]].Vendor {
				u := a.On(card)
				g.Shares = append(g.Shares, gpu.Share{Card: card.ID, Vendor: card.Vendor, Memory: u.Memory, Cores: u.Cores, Exclusive: u.Exclusive})
			}
		}
		if len(g.Shares) < a.Count {
			return nil, Verdict{Reason: gpu.InsufficientGPUCount, Have: int64(len(g.Shares)), Want: int64(a.Count)}
		}
		grants = append(grants, g)
	}
	return grants, Verdict{}
}

// budget limits one tenant, whom everybody belongs to.
type budget []gpu.Limit

func (budget) MayShare(a, b gpu.TenantID) bool         { return true }
func (budget) Owner(string) (gpu.TenantID, gpu.Reason) { return "t", "" }
func (b budget) Boundary() ledger.Boundary             { return b }
func (budget) Equal(ledger.Boundary) bool              { return true }
func (budget) Dedicated(string) gpu.TenantID           { return "t" }
func (budget) Accounts(string) []gpu.Account           { return []gpu.Account{gpu.TenantAccount("t")} }
func (b budget) Limits(gpu.Account) []gpu.Limit        { return b }
func (b budget) purse() ledger.Purse                   { return ledger.New(b).Snapshot().Purse("ns") }
func limit(m gpu.Measure, v gpu.Vendor, most int64) gpu.Limit {
	return gpu.Limit{Quota: "Tenant t", Measure: m, Vendor: v, Most: most}
}

// Where the cards that are preferred would pass a quota, smaller ones do, and of
// several vendors the one that has some left. What the prices say Assign does.
func TestAssignKeepsToThePurse(t *testing.T) {
	sizes := func(v gpu.Vendor, sizes ...gpu.MiB) (cards []ledger.Card) {
		for i, m := range sizes {
			cards = append(cards, ledger.Card{Card: gpu.Card{ID: gpu.CardID(string(v) + string(rune('0'+i))), Index: i, Vendor: v, Memory: m, Usable: m, Cores: 100}})
		}
		return cards
	}
	mixed := append(sizes(gpu.Nvidia, 40), sizes(gpu.Ascend, 60)...)
	whole, half := gpu.Ask{Count: 1, Whole: true}, gpu.Ask{Count: 1, MemoryPercent: 50}
	weak := sizes(gpu.Nvidia, 40, 40)
	weak[0].Cores = 50
	tests := map[string]struct {
		cards  []ledger.Card // the last is preferred
		ask    gpu.Ask
		limits budget
		want   gpu.CardID // "" for none
		over   gpu.Excess
		prices int
	}{
		"the preferred one":           {sizes(gpu.Nvidia, 40, 80), whole, budget{limit(gpu.Memory, "", 80)}, "nvidia1", gpu.Excess{}, 2},
		"a smaller one":               {sizes(gpu.Nvidia, 80, 40, 90), whole, budget{limit(gpu.Memory, "", 79)}, "nvidia1", gpu.Excess{}, 2},
		"none is small enough":        {sizes(gpu.Nvidia, 40, 80), whole, budget{limit(gpu.Memory, "", 39)}, "", gpu.Excess{Asked: 80}, 2},
		"a percentage of the smaller": {sizes(gpu.Nvidia, 40, 80), half, budget{limit(gpu.Memory, "", 39)}, "nvidia0", gpu.Excess{}, 2},
		"all alike":                   {sizes(gpu.Nvidia, 40, 40), whole, budget{limit(gpu.Memory, "", 39)}, "", gpu.Excess{Asked: 40}, 1},
		"the other vendor":            {mixed, whole, budget{limit(gpu.Devices, gpu.Ascend, 0)}, "nvidia0", gpu.Excess{}, 2},
		"the other vendor, though larger": {
			append(sizes(gpu.Ascend, 60), sizes(gpu.Nvidia, 40)...), whole, budget{limit(gpu.Devices, gpu.Nvidia, 0)}, "ascend0", gpu.Excess{}, 2,
		},
		"neither vendor": {mixed, whole, budget{limit(gpu.Devices, gpu.Ascend, 0), limit(gpu.Memory, gpu.Nvidia, 39)}, "", gpu.Excess{Asked: 1}, 2},
		"less compute":   {weak, whole, budget{limit(gpu.Compute, "", 50)}, "nvidia0", gpu.Excess{}, 2},
		"too much of it": {weak, whole, budget{limit(gpu.Compute, "", 49)}, "", gpu.Excess{Asked: 100}, 2},
		"no limits":      {mixed, whole, nil, "ascend0", gpu.Excess{}, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var trace []string
			p := New(Config{Pack: firstFit{}, CardLayout: gpu.Binpack, Places: map[gpu.Policy]Place{gpu.Binpack: tracer{trace: &trace}}})
			for i := range tc.cards {
				tc.cards[i].Index = i
			}
			n := &ledger.Node{Cards: tc.cards}
			c := &Cycle{Request: &gpu.Request{Asks: []gpu.Ask{tc.ask}}, Purse: tc.limits.purse()}
			placed, v := p.Assign(c, n)
			var got gpu.CardID
			if v.OK() {
				got = placed.Grants[0].Shares[0].Card
			} else if v.Reason != gpu.QuotaExceeded || v.Limit == nil || (gpu.Excess{Used: v.Have, Asked: v.Want}) != tc.over {
				t.Errorf("refused with %+v, want %+v", v, tc.over)
			}
			if got != tc.want {
				t.Errorf("on %q, want %q", got, tc.want)
			}
			prices := p.Prices(c, n, &Scratch{})
			if len(prices) != tc.prices {
				t.Errorf("prices %+v, want %d", prices, tc.prices)
			}
			if judged := Afford(c.Purse, prices...); judged != v {
				t.Errorf("judged %+v, assigned %+v", judged, v)
			}
		})
	}
}
