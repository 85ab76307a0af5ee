package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func rebuilding(enabled bool, args string) Settings {
	s := Default()
	s.Plugins = instead(s.Plugins, Plugin{Name: "rebuild", Enabled: enabled, Args: []byte(args)})
	return s
}

func TestRebuild(t *testing.T) {
	ordinary := Rebuild{Grace: time.Minute, AtOnce: 1}
	none := Default()
	none.Plugins = nil
	packing, _ := Preset(Packing)
	heterogeneous, _ := Preset(Heterogeneous)
	tests := map[string]struct {
		settings Settings
		want     Rebuild
		enabled  bool
	}{
		"by default":        {Default(), ordinary, true},
		"of a preset":       {packing, ordinary, true},
		"of the other":      {heterogeneous, ordinary, true},
		"without arguments": {rebuilding(true, ""), ordinary, true},
		"of no arguments":   {rebuilding(true, "{}"), ordinary, true},
		"off":               {rebuilding(false, `{"atOnce":2}`), Rebuild{}, false},
		"not listed":        {none, Rebuild{}, false},
		"at their least":    {rebuilding(true, `{"grace":"0s","atOnce":1}`), Rebuild{AtOnce: 1}, true},
		"at their most":     {rebuilding(true, `{"grace":"24h","atOnce":1000}`), Rebuild{Grace: 24 * time.Hour, AtOnce: 1000}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := tc.settings.Validate(); err != nil {
				t.Fatal(err)
			}
			got, enabled := tc.settings.Rebuild()
			if diff := cmp.Diff(tc.want, got); diff != "" || enabled != tc.enabled {
				t.Errorf("enabled %t (-want +got):\n%s", enabled, diff)
			}
		})
	}
	if slices.Contains(PluginNames(), "rebuild") {
		t.Error("it is listed as one that judges nodes")
	}
}

func TestRebuildIsValidated(t *testing.T) {
	const at = "plugins[rebuild].args: "
	for args, want := range map[string][]string{
		`{"grace":"-1s"}`:             {at + `grace: "-1s" is not a duration of 0s to 24h0m0s, like 90s or 10m`},
		`{"grace":"25h"}`:             {at + `grace: "25h" is not a duration of 0s to 24h0m0s, like 90s or 10m`},
		`{"grace":"60"}`:              {at + `grace: "60" is not a duration of 0s to 24h0m0s, like 90s or 10m`},
		`{"grace":60}`:                {at + `grace: is a number, and not a string`},
		`{"atOnce":0}`:                {at + `atOnce: 0 is outside 1..1000`},
		`{"atOnce":1001}`:             {at + `atOnce: 1001 is outside 1..1000`},
		`{"atonce":1}`:                {at + `atonce: there is no such argument`},
		`[]`:                          {at + `is not an object`},
		`{"grace":"now","atOnce":-1}`: {at + `grace: "now" is not a duration of 0s to 24h0m0s, like 90s or 10m`, `atOnce: -1 is outside 1..1000`},
	} {
		t.Run(args, func(t *testing.T) {
			err := rebuilding(true, args).Validate()
			if err == nil {
				t.Fatal("no fault")
			}
			if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	s := Default()
	s.Plugins = instead(s.Plugins, Plugin{Name: "rebuild", Enabled: true, Weight: 1})
	if err := s.Validate(); err == nil || err.Error() != "plugins[rebuild].weight: it rates no node; leave it out" {
		t.Errorf("a weight: %v", err)
	}
}

func TestTaskTimeout(t *testing.T) {
	tests := map[string]struct {
		limit   time.Duration
		enforce bool
		want    bool
	}{
		"only told":           {time.Hour, false, false},
		"stopped":             {time.Hour, true, true},
		"for ever":            {0, false, false},
		"nothing to stop for": {0, true, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := Default()
			s.DefaultTaskTimeout, s.EnforceTaskTimeout = tc.limit, tc.enforce
			if err := s.Validate(); err != nil {
				t.Fatal(err)
			}
			if limit, enforced := s.TaskTimeout(); limit != tc.limit || enforced != tc.want {
				t.Errorf("%s, enforced %t", limit, enforced)
			}
		})
	}
	for _, preset := range append(Presets(), "") {
		s, _ := Preset(preset)
		if limit, enforced := s.TaskTimeout(); limit != 2*time.Hour || enforced {
			t.Errorf("preset %q: %s, enforced %t", preset, limit, enforced)
		}
	}
}
