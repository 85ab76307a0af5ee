package gpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// card80 is an 80 GiB card of which slices may take 73,728 MiB.
func card80() *Card {
	return &Card{ID: "d0", Vendor: Nvidia, Memory: 81920, Usable: 73728, Cores: 100, UsableCores: 100, MaxSlices: 10, Mode: ModeSlice, Isolation: IsolationSoft}
}

func usable(m MiB) *Card {
	c := card80()
	c.Usable = m
	return c
}

func TestAskOn(t *testing.T) {
	tests := map[string]struct {
		ask  Ask
		card *Card
		want Use
	}{
		"whole takes the board, not what is usable": {Ask{Whole: true}, card80(), Use{81920, 100, 1, true}},
		"whole with a least size still takes all":   {Ask{Whole: true, Memory: 100}, card80(), Use{81920, 100, 1, true}},
		"whole ignores proportion":                  {Ask{Whole: true, ProportionalCores: true}, usable(0), Use{81920, 100, 1, true}},

		"memory alone, none reserved":             {Ask{Memory: 10000}, card80(), Use{10000, 0, 1, false}},
		"memory alone, in proportion":             {Ask{Memory: 36864, ProportionalCores: true}, card80(), Use{36864, 50, 1, false}},
		"proportion is rounded down":              {Ask{Memory: 36863, ProportionalCores: true}, card80(), Use{36863, 49, 1, false}},
		"proportion is at least 1":                {Ask{Memory: 1, ProportionalCores: true}, card80(), Use{1, 1, 1, false}},
		"proportion of all is 100":                {Ask{Memory: 73728, ProportionalCores: true}, card80(), Use{73728, 100, 1, false}},
		"proportion of more than all is 100":      {Ask{Memory: 1 << 20, ProportionalCores: true}, card80(), Use{1 << 20, 100, 1, false}},
		"nothing usable leaves no proportion":     {Ask{Memory: 10, ProportionalCores: true}, usable(0), Use{10, 0, 1, false}},
		"cores that are named are not worked out": {Ask{Memory: 36864, Cores: 5, ProportionalCores: true}, card80(), Use{36864, 5, 1, false}},

		"percent of what is usable":          {Ask{MemoryPercent: 50}, card80(), Use{36864, 0, 1, false}},
		"percent is rounded down":            {Ask{MemoryPercent: 33}, usable(100), Use{33, 0, 1, false}},
		"percent rounds 1.98 down to 1":      {Ask{MemoryPercent: 99}, usable(2), Use{1, 0, 1, false}},
		"percent is at least 1":              {Ask{MemoryPercent: 1}, usable(99), Use{1, 0, 1, false}},
		"100 percent is all that is usable":  {Ask{MemoryPercent: 100}, card80(), Use{73728, 0, 1, false}},
		"percent and proportion":             {Ask{MemoryPercent: 50, ProportionalCores: true}, card80(), Use{36864, 50, 1, false}},
		"percent and cores":                  {Ask{MemoryPercent: 50, Cores: 30}, card80(), Use{36864, 30, 1, false}},
		"percent of an overcommitted card":   {Ask{MemoryPercent: 100, ProportionalCores: true}, usable(2 * 73728), Use{2 * 73728, 100, 1, false}},
		"percent of nothing fits nowhere":    {Ask{MemoryPercent: 50}, usable(0), Use{1, 0, 1, false}},
		"the largest card overflows nothing": {Ask{MemoryPercent: 100, ProportionalCores: true}, usable(10 * MostMemory), Use{10 * MostMemory, 100, 1, false}},

		"cores alone take memory in proportion": {Ask{Cores: 25}, card80(), Use{18432, 25, 1, false}},
		"cores alone round memory down":         {Ask{Cores: 33}, usable(1000), Use{330, 33, 1, false}},
		"cores alone take at least 1 MiB":       {Ask{Cores: 1}, usable(50), Use{1, 1, 1, false}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.ask.On(tc.card)); diff != "" {
				t.Errorf("use (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAskSuits(t *testing.T) {
	tests := map[string]struct {
		ask    Ask
		vendor Vendor
		model  string
		want   bool
	}{
		"anything":                        {Ask{}, Nvidia, "", true},
		"its vendor, whatever the model":  {Ask{Vendor: Ascend}, Ascend, "910B3", true},
		"another vendor":                  {Ask{Vendor: Ascend}, Nvidia, "910B3", false},
		"another vendor of that model":    {Ask{Vendor: Ascend, Model: "910B3"}, Nvidia, "910B3", false},
		"the model as the vendor's tool":  {Ask{Vendor: Ascend, Model: "910B3"}, Ascend, "910B3", true},
		"... as HAMi writes it":           {Ask{Vendor: Ascend, Model: "910B3"}, Ascend, "Ascend910B3", true},
		"... in two words":                {Ask{Vendor: Ascend, Model: "910B3"}, Ascend, "HUAWEI Ascend 910B3 64GB", true},
		"... in any case":                 {Ask{Vendor: Iluvatar, Model: "MR-V100"}, Iluvatar, "iluvatar mr-v100", true},
		"another model":                   {Ask{Vendor: Ascend, Model: "910B3"}, Ascend, "910B4", false},
		"a model that is not known":       {Ask{Vendor: Ascend, Model: "910B3"}, Ascend, "", false},
		"a shorter one":                   {Ask{Vendor: Ascend, Model: "910B3"}, Ascend, "910B", false},
		"a digit may follow":              {Ask{Vendor: Ascend, Model: "310P"}, Ascend, "310P3", true},
		"a letter makes another":          {Ask{Vendor: Ascend, Model: "910B2"}, Ascend, "910B2C", false},
		"so does a small one":             {Ask{Vendor: Ascend, Model: "910B2"}, Ascend, "910b2c", false},
		"so does a hyphen":                {Ask{Vendor: Ascend, Model: "910B4"}, Ascend, "910B4-1", false},
		"which is asked for in full":      {Ask{Vendor: Ascend, Model: "910B4-1"}, Ascend, "Ascend910B4-1", true},
		"but not instead of the short":    {Ask{Vendor: Ascend, Model: "910B4-1"}, Ascend, "910B4", false},
		"the second time it stands there": {Ask{Model: "B4"}, Ascend, "910B4-1 of the B4 series", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.ask.Suits(&Card{Vendor: tc.vendor, Model: tc.model}); got != tc.want {
				t.Errorf("suits = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAskSuitsPlugin(t *testing.T) {
	tests := map[string]struct {
		ask          Ask
		card         Card
		vendor, want bool // by the vendor, and by the model too
	}{
		"given out by nobody":              {Ask{Vendor: Metax}, Card{Vendor: Metax}, true, true},
		"... whatever count is named":      {Ask{Vendor: Metax, Plugin: "sgpu"}, Card{Vendor: Metax}, true, true},
		"by the count that is named":       {Ask{Vendor: Metax, Plugin: "sgpu"}, Card{Vendor: Metax, Plugin: "sgpu"}, true, true},
		"by another count of the vendor's": {Ask{Vendor: Metax, Plugin: "sgpu"}, Card{Vendor: Metax, Plugin: "gpu"}, false, false},
		"no count is named":                {Ask{Vendor: Metax}, Card{Vendor: Metax, Plugin: "gpu"}, false, false},
		"no vendor is named":               {Ask{}, Card{Vendor: Metax, Plugin: "gpu"}, false, false},
		"of another vendor":                {Ask{Vendor: Musa, Plugin: "gpu"}, Card{Vendor: Metax, Plugin: "gpu"}, false, false},
		"a model's own plugin":             {Ask{Vendor: Ascend, Model: "910B3", Plugin: "910B3"}, Card{Vendor: Ascend, Plugin: "910B3", Model: "NPU"}, true, true},
		"another model's plugin":           {Ask{Vendor: Ascend, Model: "910B3", Plugin: "910B3"}, Card{Vendor: Ascend, Plugin: "910B4", Model: "910B3"}, false, false},
		"a model, given out by nobody":     {Ask{Vendor: Ascend, Model: "910B3", Plugin: "910B3"}, Card{Vendor: Ascend, Model: "NPU"}, true, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if vendor, got := tc.ask.SuitsVendor(&tc.card), tc.ask.Suits(&tc.card); vendor != tc.vendor || got != tc.want {
				t.Errorf("suits by vendor %v and at all %v, want %v and %v", vendor, got, tc.vendor, tc.want)
			}
		})
	}
}

func TestAsksForCards(t *testing.T) {
	if (&Request{}).AsksForCards() {
		t.Error("a request without asks asks for cards")
	}
	if !(&Request{Asks: []Ask{{Count: 1}}}).AsksForCards() {
		t.Error("a request with an ask asks for none")
	}
}
