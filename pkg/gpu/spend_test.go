package gpu

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// spend is what is held of NVIDIA cards by way of the neutral form.
func spend(devices, whole int64, memory MiB, cores Cores) Spend {
	return Spend{Vendor: Nvidia, Devices: devices, Whole: whole, Memory: memory, Cores: cores}
}

// by is s by way of a resource.
func by(resource string, s Spend) Spend { s.Resource = resource; return s }

// of is s of another vendor's cards.
func of(v Vendor, s Spend) Spend { s.Vendor = v; return s }

func TestSpendingArithmetic(t *testing.T) {
	one := spend(1, 0, 10, 20)
	tests := map[string]struct {
		do   func(a, b Spending) Spending
		a, b Spending
		want Spending
	}{
		"plus adds each unit":          {Spending.Plus, Spending{spend(1, 1, 10, 20)}, Spending{spend(2, 0, 3, 4)}, Spending{spend(3, 1, 13, 24)}},
		"plus nothing":                 {Spending.Plus, Spending{one}, nil, Spending{one}},
		"nothing plus":                 {Spending.Plus, nil, Spending{one}, Spending{one}},
		"plus keeps resources apart":   {Spending.Plus, Spending{by("b", one)}, Spending{by("a", one)}, Spending{by("a", one), by("b", one)}},
		"the neutral form comes first": {Spending.Plus, Spending{by("a", one)}, Spending{one}, Spending{one, by("a", one)}},
		"plus orders by vendor, then resource": {
			Spending.Plus, Spending{of(Nvidia, by("a", one))}, Spending{of(Ascend, by("z", one)), of(Ascend, one)},
			Spending{of(Ascend, one), of(Ascend, by("z", one)), of(Nvidia, by("a", one))},
		},
		"minus what is all":           {Spending.Minus, Spending{one, by("a", one)}, Spending{one}, Spending{by("a", one)}},
		"minus everything is nothing": {Spending.Minus, Spending{one}, Spending{one}, Spending{}},
		"minus a part":                {Spending.Minus, Spending{spend(3, 1, 13, 24)}, Spending{spend(2, 0, 3, 4)}, Spending{spend(1, 1, 10, 20)}},
		"minus nothing":               {Spending.Minus, Spending{one}, nil, Spending{one}},
		"minus drops what has come to nothing, not what has some unit left": {
			Spending.Minus, Spending{spend(1, 0, 10, 0)}, Spending{spend(1, 0, 9, 0)}, Spending{spend(0, 0, 1, 0)},
		},
		"max takes each unit by itself": {Spending.Max, Spending{spend(1, 1, 10, 0)}, Spending{spend(2, 0, 3, 4)}, Spending{spend(2, 1, 10, 4)}},
		"max keeps resources apart":     {Spending.Max, Spending{by("b", one)}, Spending{by("a", one)}, Spending{by("a", one), by("b", one)}},
		"max with nothing":              {Spending.Max, Spending{one}, nil, Spending{one}},
		"nothing with max":              {Spending.Max, nil, Spending{one}, Spending{one}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := slices.Clone(tc.a), slices.Clone(tc.b)
			if diff := cmp.Diff(tc.want, tc.do(tc.a, tc.b)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !slices.Equal(a, tc.a) || !slices.Equal(b, tc.b) {
				t.Error("an operand was edited")
			}
		})
	}
}

// What is added and taken off again leaves no trace, whatever the order.
func TestSpendingComesBackToNothing(t *testing.T) {
	parts := []Spending{
		{spend(1, 0, 10, 20)}, {by("a", spend(2, 2, 5, 200))}, {of(Ascend, spend(1, 1, 0, 0)), by("a", spend(1, 0, 1, 1))}, {spend(4, 0, 0, 0)},
	}
	var s Spending
	for _, p := range parts {
		s = s.Plus(p)
	}
	for _, i := range []int{2, 0, 3, 1} {
		s = s.Minus(parts[i])
	}
	if len(s) != 0 {
		t.Errorf("left: %+v", s)
	}
}

func TestLimitOf(t *testing.T) {
	spending := Spending{
		of(Ascend, spend(1, 1, 100, 1000)), of(Ascend, by("x", spend(2, 0, 200, 2000))),
		spend(4, 2, 400, 4000), by("a", spend(8, 0, 800, 8000)), by("b", spend(16, 4, 1600, 16000)),
	}
	tests := map[string]struct {
		limit Limit
		want  int64
	}{
		"all devices":                           {Limit{Measure: Devices}, 31},
		"all whole cards":                       {Limit{Measure: WholeCards}, 7},
		"all memory":                            {Limit{Measure: Memory}, 3100},
		"all compute":                           {Limit{Measure: Compute}, 31000},
		"a vendor's, whatever the form":         {Limit{Measure: Devices, Vendor: Nvidia}, 28},
		"a vendor's by one resource or neutral": {Limit{Measure: Devices, Vendor: Nvidia, Resource: "a"}, 12},
		"... by the other":                      {Limit{Measure: Memory, Vendor: Nvidia, Resource: "b"}, 2000},
		"... by one that nobody asked by":       {Limit{Measure: Compute, Vendor: Nvidia, Resource: "c"}, 4000},
		"another vendor's":                      {Limit{Measure: WholeCards, Vendor: Ascend}, 1},
		"a resource of another vendor":          {Limit{Measure: Devices, Vendor: Ascend, Resource: "a"}, 1},
		"a vendor that holds nothing":           {Limit{Measure: Devices, Vendor: Cambricon}, 0},
		"a resource of any vendor":              {Limit{Measure: Devices, Resource: "x"}, 7},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.limit.Of(spending); got != tc.want {
				t.Errorf("Of = %d, want %d", got, tc.want)
			}
			if got := tc.limit.Of(nil); got != 0 {
				t.Errorf("Of nothing = %d", got)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	cards := func(most int64) Limit {
		return Limit{Quota: "Tenant blue", Name: "cards", Measure: Devices, Most: most}
	}
	memory := func(most int64) Limit {
		return Limit{Quota: "ResourceQuota ml/gpus", Name: "requests.nvidia.com/gpumem", Measure: Memory, Vendor: Nvidia, Most: most}
	}
	tests := map[string]struct {
		limits      []Limit
		used, asked Spending
		want        string // "" when it passes none
	}{
		"no limits":                       {nil, Spending{spend(9, 0, 9, 9)}, Spending{spend(9, 0, 9, 9)}, ""},
		"to the limit":                    {[]Limit{cards(4)}, Spending{spend(3, 0, 0, 0)}, Spending{spend(1, 0, 0, 0)}, ""},
		"one over":                        {[]Limit{cards(4)}, Spending{spend(4, 0, 0, 0)}, Spending{spend(1, 0, 0, 0)}, "cards of Tenant blue: 4 of 4 used, 1 asked"},
		"some room, but not enough":       {[]Limit{memory(10)}, Spending{spend(1, 0, 9, 0)}, Spending{spend(1, 0, 10, 0)}, "requests.nvidia.com/gpumem of ResourceQuota ml/gpus: 9 of 10 used, 10 asked"},
		"more than there ever is":         {[]Limit{cards(4)}, nil, Spending{spend(5, 0, 0, 0)}, "cards of Tenant blue: 0 of 4 used, 5 asked"},
		"exactly all":                     {[]Limit{cards(4)}, nil, Spending{spend(4, 0, 0, 0)}, ""},
		"a limit of nothing":              {[]Limit{cards(0)}, nil, Spending{spend(1, 0, 0, 0)}, "cards of Tenant blue: 0 of 0 used, 1 asked"},
		"lowered below what is used":      {[]Limit{cards(4)}, Spending{spend(9, 0, 0, 0)}, Spending{spend(1, 0, 0, 0)}, "cards of Tenant blue: 9 of 4 used, 1 asked"},
		"lowered, but nothing more of it": {[]Limit{memory(4)}, Spending{spend(9, 0, 9, 0)}, Spending{of(Ascend, spend(1, 0, 1, 0))}, ""},
		"asked for nothing":               {[]Limit{cards(0)}, Spending{spend(9, 0, 0, 0)}, nil, ""},
		"the first that is passed": {
			[]Limit{cards(9), memory(5), cards(1)}, nil, Spending{spend(2, 0, 6, 0)},
			"requests.nvidia.com/gpumem of ResourceQuota ml/gpus: 0 of 5 used, 6 asked",
		},
		"another vendor's limit": {[]Limit{memory(5)}, nil, Spending{of(Ascend, spend(2, 0, 6, 0))}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			x, over := Check(tc.limits, tc.used, tc.asked)
			got := ""
			if over {
				got = x.String()
			}
			if got != tc.want {
				t.Errorf("Check = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPlacementSpending(t *testing.T) {
	made := func(v Vendor, shares ...Share) []Share {
		for i := range shares {
			shares[i].Vendor = v
		}
		return shares
	}
	asked := func(resource string, role Role, shares ...Share) Grant {
		return Grant{Role: role, Resource: resource, Shares: made(Nvidia, shares...)}
	}
	tests := map[string]struct {
		place Placement
		want  Spending
	}{
		"no cards": {Placement{}, nil},
		"a slice":  {Placement{Grants: []Grant{asked("", App, part("a", 10, 5))}}, Spending{spend(1, 0, 10, 5)}},
		"a whole card counts in full": {
			Placement{Grants: []Grant{asked("a", App, whole("a"))}}, Spending{by("a", spend(1, 1, 1000, 100))},
		},
		"several devices": {
			Placement{Grants: []Grant{asked("", App, part("a", 10, 5), part("b", 10, 5))}}, Spending{spend(2, 0, 20, 10)},
		},
		"two containers on one card": {
			Placement{Grants: []Grant{asked("", App, part("a", 10, 5)), asked("", App, part("a", 20, 7))}}, Spending{spend(2, 0, 30, 12)},
		},
		"the larger of init and app, and the sidecar, of one card": {
			Placement{Grants: []Grant{asked("", Init, part("a", 100, 1)), asked("", App, part("a", 30, 12)), asked("", Sidecar, part("a", 1, 2))}},
			Spending{spend(2, 0, 101, 14)},
		},
		"an init container on a card of its own holds that too": {
			Placement{Grants: []Grant{asked("", Init, part("b", 5, 5)), asked("", App, part("a", 10, 5))}}, Spending{spend(2, 0, 15, 10)},
		},
		"a card that is whole for one of its two containers is one whole card": {
			Placement{Grants: []Grant{asked("", Init, whole("a")), asked("", App, part("a", 10, 5)), asked("", Sidecar, part("a", 1, 1))}},
			Spending{spend(2, 1, 1001, 101)},
		},
		"two resources on one card, each charged for its own": {
			Placement{Grants: []Grant{asked("x", Init, part("a", 100, 1)), asked("", App, part("a", 30, 12)), asked("x", App, part("a", 7, 7))}},
			Spending{spend(1, 0, 30, 12), by("x", spend(1, 0, 100, 7))},
		},
		"two vendors": {
			Placement{Grants: []Grant{
				{Shares: append(made(Nvidia, part("a", 10, 5)), made(Ascend, part("d", 1, 2))...)}, {Resource: "y", Shares: made(Ascend, part("d", 3, 4))},
			}},
			Spending{of(Ascend, spend(1, 0, 1, 2)), of(Ascend, by("y", spend(1, 0, 3, 4))), spend(1, 0, 10, 5)},
		},
		"cards that nobody can name": {
			Placement{Foreign: []Foreign{{Nvidia, 2}, {"", 1}}}, Spending{of("", spend(1, 1, 0, 100)), spend(2, 2, 0, 200)},
		},
		"all cards that there are count as one": {Placement{Foreign: []Foreign{{Nvidia, AllCards}}}, Spending{spend(1, 1, 0, 100)}},
		"less than none counts as one too":      {Placement{Foreign: []Foreign{{Nvidia, -7}}}, Spending{spend(1, 1, 0, 100)}},
		"a claim on no cards":                   {Placement{Foreign: []Foreign{{Nvidia, 0}}}, Spending{}},
		"claims beside what is known": {
			Placement{Grants: []Grant{asked("", App, part("a", 10, 5))}, Foreign: []Foreign{{Nvidia, 1}}}, Spending{spend(2, 1, 10, 105)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.place.Spending()); diff != "" {
				t.Errorf("spending (-want +got):\n%s", diff)
			}
			slices.Reverse(tc.place.Grants)
			slices.Reverse(tc.place.Foreign)
			if diff := cmp.Diff(tc.want, tc.place.Spending()); diff != "" {
				t.Errorf("spending in another order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAccounts(t *testing.T) {
	// A Tenant and a namespace of one name are not one account.
	if a, b := NamespaceAccount("blue"), TenantAccount("blue"); a != "namespace/blue" || b != "tenant/blue" {
		t.Errorf("accounts %q and %q", a, b)
	}
}
