package policy

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultIsValid(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}

// A caller that changes what Default returned must not change the next caller's.
func TestDefaultIsTheCallersOwn(t *testing.T) {
	Default().Plugins[0].Enabled = false
	if !Default().Plugins[0].Enabled {
		t.Error("the default has been changed")
	}
}

func TestValidate(t *testing.T) {
	plugins := func(p ...Plugin) func(*Settings) { return func(s *Settings) { s.Plugins = p } }
	tests := map[string]struct {
		change func(*Settings)
		want   []string // what the error's lines begin with; none: valid
	}{
		"no plugin is named":        {plugins(), nil},
		"reserve at its least":      {func(s *Settings) { s.Reserve = Reserve{} }, nil},
		"reserve at its most":       {func(s *Settings) { s.Reserve = Reserve{90, 1 << 20} }, nil},
		"no timeout":                {func(s *Settings) { s.DefaultTaskTimeout = 0 }, nil},
		"timeout at its most":       {func(s *Settings) { s.DefaultTaskTimeout = 8760 * time.Hour }, nil},
		"timeout below":             {func(s *Settings) { s.DefaultTaskTimeout = -1 }, []string{"defaultTaskTimeout: -1ns is outside 0s..8760h0m0s"}},
		"timeout above":             {func(s *Settings) { s.DefaultTaskTimeout = 8760*time.Hour + 1 }, []string{"defaultTaskTimeout: 8760h0m0.000000001s "}},
		"percent below":             {func(s *Settings) { s.Reserve.Percent = -1 }, []string{"memoryReserve.percent: -1 "}},
		"percent above":             {func(s *Settings) { s.Reserve.Percent = 91 }, []string{"memoryReserve.percent: 91 "}},
		"fixed below":               {func(s *Settings) { s.Reserve.Fixed = -1 }, []string{"memoryReserve.fixedMiB: -1 "}},
		"fixed above":               {func(s *Settings) { s.Reserve.Fixed = 1<<20 + 1 }, []string{"memoryReserve.fixedMiB: 1048577 "}},
		"scales at their most":      {func(s *Settings) { s.MemoryScale, s.CoreScale = 10000, 10000 }, nil},
		"memory scale below":        {func(s *Settings) { s.MemoryScale = 999 }, []string{"deviceMemoryScaling: 0.999 "}},
		"memory scale above":        {func(s *Settings) { s.MemoryScale = 10001 }, []string{"deviceMemoryScaling: 10.001 "}},
		"core scale not set":        {func(s *Settings) { s.CoreScale = 0 }, []string{"deviceCoreScaling: 0 "}},
		"core scale above":          {func(s *Settings) { s.CoreScale = 10001 }, []string{"deviceCoreScaling: 10.001 "}},
		"slice cores proportional":  {func(s *Settings) { s.SliceCores = SliceCoresProportional }, nil},
		"slice cores none":          {func(s *Settings) { s.SliceCores = SliceCoresNone }, nil},
		"slice cores of no kind":    {func(s *Settings) { s.SliceCores = "half" }, []string{`defaultSliceCores: "half" `}},
		"injection by admission":    {func(s *Settings) { s.Injection = InjectionDownwardAPI }, nil},
		"no shortlist":              {func(s *Settings) { s.Shortlist = 0 }, nil},
		"a negative shortlist":      {func(s *Settings) { s.Shortlist = -1 }, []string{"shortlist: -1 is outside 0..5000"}},
		"too long a shortlist":      {func(s *Settings) { s.Shortlist = 5001 }, []string{"shortlist: 5001 is outside 0..5000"}},
		"injection of no kind":      {func(s *Settings) { s.Injection = "none" }, []string{`injection: "none" is not downwardAPI; leave it out for none`}},
		"unknown plugin":            {plugins(Plugin{Name: "fast"}), []string{"plugins[fast]: there is no such plugin"}},
		"plugin without a name":     {plugins(Plugin{}), []string{"plugins[]: there is no such plugin"}},
		"names are exact":           {plugins(Plugin{Name: "Spread"}), []string{"plugins[Spread]: there is no such plugin"}},
		"named twice":               {plugins(Plugin{Name: "spread"}, Plugin{Name: "spread"}), []string{"plugins[spread]: named twice"}},
		"one that is fixed, on":     {plugins(Plugin{Name: "resource-filter", Enabled: true}), nil},
		"one that is fixed, off":    {plugins(Plugin{Name: "resource-filter"}), []string{"plugins[resource-filter]: cannot be disabled"}},
		"the boundary, off":         {plugins(Plugin{Name: "tenant"}), []string{"plugins[tenant]: cannot be disabled"}},
		"both layouts":              {plugins(Plugin{Name: "spread", Enabled: true}, Plugin{Name: "binpack", Enabled: true}), nil},
		"neither layout":            {plugins(Plugin{Name: "spread"}, Plugin{Name: "binpack"}), nil},
		"weight 0":                  {plugins(Plugin{Name: "spread", Enabled: true}), nil},
		"weight at its most":        {plugins(Plugin{Name: "spread", Weight: 1000}), nil},
		"weight below":              {plugins(Plugin{Name: "spread", Weight: -0.1}), []string{"plugins[spread].weight: -0.1 "}},
		"weight above":              {plugins(Plugin{Name: "spread", Weight: 1000.5}), []string{"plugins[spread].weight: 1000.5 "}},
		"weight is not a number":    {plugins(Plugin{Name: "spread", Weight: math.NaN()}), []string{"plugins[spread].weight: NaN "}},
		"weight is infinite":        {plugins(Plugin{Name: "spread", Weight: math.Inf(1)}), []string{"plugins[spread].weight: +Inf "}},
		"empty arguments":           {plugins(Plugin{Name: "spread", Args: []byte("{}")}), nil},
		"null arguments":            {plugins(Plugin{Name: "spread", Args: []byte("null")}), nil},
		"arguments of nvlink":       {plugins(Plugin{Name: "nvlink", Args: []byte(`{"requireNVLink":true}`)}), nil},
		"others of nvlink":          {plugins(Plugin{Name: "nvlink", Args: []byte(`{"strict":true}`)}), []string{"plugins[nvlink].args: strict: "}},
		"arguments that nobody has": {plugins(Plugin{Name: "spread", Args: []byte(`{"a":1}`)}), []string{"plugins[spread].args: "}},
		"arguments of rdma":         {plugins(Plugin{Name: "rdma", Args: []byte(` {"strict": true} `)}), nil},
		"none of rdma":              {plugins(Plugin{Name: "rdma", Args: []byte("null")}, Plugin{Name: "topology", Args: []byte("{}")}), nil},
		"a typo in them":            {plugins(Plugin{Name: "rdma", Args: []byte(`{"strikt":true}`)}), []string{`plugins[rdma].args: strikt: there is no such argument`}},
		"of another type":           {plugins(Plugin{Name: "rdma", Args: []byte(`{"strict":"yes"}`)}), []string{"plugins[rdma].args: strict: is a string"}},
		"more than one object":      {plugins(Plugin{Name: "rdma", Args: []byte(`{} {}`)}), []string{"plugins[rdma].args: is not an object"}},
		"half an object":            {plugins(Plugin{Name: "rdma", Args: []byte(`{"strict":`)}), []string{"plugins[rdma].args: is not an object"}},
		"arguments of topology":     {plugins(Plugin{Name: "topology", Args: []byte(`{"strict":true}`)}), []string{"plugins[topology].args: the plugin takes none"}},
		"arguments of network":      {plugins(Plugin{Name: "network", Args: []byte(`1`)}), []string{"plugins[network].args: the plugin takes none"}},
		"every fault at once": {
			func(s *Settings) {
				*s = Settings{
					Plugins:    []Plugin{{Name: "fast", Weight: -1}, {Name: "tenant", Args: []byte("1")}},
					Reserve:    Reserve{-1, -1},
					SliceCores: "half",
					Injection:  "cdi",
					Shortlist:  -1,
				}
			},
			[]string{
				"memoryReserve.percent: ", "memoryReserve.fixedMiB: ", "deviceMemoryScaling: ", "deviceCoreScaling: ", "defaultSliceCores: ", "shortlist: ", "injection: ",
				"plugins[fast]: ", "plugins[fast].weight: ", "plugins[tenant]: ", "plugins[tenant].args: ",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := Default()
			tc.change(&s)
			var got []string
			if err := s.Validate(); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			ok := len(got) == len(tc.want)
			for i := 0; ok && i < len(got); i++ {
				ok = strings.HasPrefix(got[i], tc.want[i])
			}
			if !ok {
				t.Errorf("faults (-want +got):\n%s", cmp.Diff(tc.want, got))
			}
		})
	}
}
