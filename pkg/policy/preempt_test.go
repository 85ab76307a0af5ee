package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/preempt"
)

func preempting(enabled bool, args string) Settings {
	s := Default()
	s.Plugins = instead(s.Plugins, Plugin{Name: "preempt", Enabled: enabled, Args: []byte(args)})
	return s
}

func TestPreempt(t *testing.T) {
	ordinary := preempt.Rules{Stage: preempt.OfRunning, MaxGrace: 30 * time.Minute, Cooldown: 10 * time.Minute, Bare: true}
	none := Default()
	none.Plugins = nil
	packing, _ := Preset(Packing)
	tests := map[string]struct {
		settings Settings
		want     preempt.Rules
	}{
		"by default":        {Default(), ordinary},
		"of a preset":       {packing, ordinary},
		"without arguments": {preempting(true, ""), ordinary},
		"off":               {preempting(false, `{"preemptStage":"running"}`), preempt.Rules{Stage: preempt.Disabled}},
		"not listed":        {none, preempt.Rules{Stage: preempt.Disabled}},
		"nobody":            {preempting(true, `{"preemptStage":"disabled"}`), preempt.Rules{Stage: preempt.Disabled, MaxGrace: 30 * time.Minute, Cooldown: 10 * time.Minute, Bare: true}},
		"all of it": {
			preempting(true, `{"preemptStage":"scheduled","minRuntime":"90s","maxGrace":"0s","evictionsPerHourPerTenant":7,"cooldown":"1h","barePods":false}`),
			preempt.Rules{Stage: preempt.OfScheduled, MinRuntime: 90 * time.Second, PerHour: 7, Cooldown: time.Hour},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := tc.settings.Validate(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.settings.Preempt()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPreemptIsValidated(t *testing.T) {
	const at = "plugins[preempt].args: "
	for args, want := range map[string][]string{
		`{"preemptStage":"Running"}`:             {at + `preemptStage: "Running" is not disabled, scheduled or running`},
		`{"minRuntime":"-1s"}`:                   {at + `minRuntime: "-1s" is not a duration of 0s to 720h0m0s, like 90s or 10m`},
		`{"maxGrace":"1y"}`:                      {at + `maxGrace: "1y" is not a duration of 0s to 720h0m0s, like 90s or 10m`},
		`{"minRuntime":"90"}`:                    {at + `minRuntime: "90" is not a duration of 0s to 720h0m0s, like 90s or 10m`},
		`{"cooldown":"61m"}`:                     {at + `cooldown: "61m" is not a duration of 0s to 1h0m0s, like 90s or 10m`},
		`{"evictionsPerHourPerTenant":-1}`:       {at + `evictionsPerHourPerTenant: -1 is outside 0..100000`},
		`{"stage":"running"}`:                    {at + `stage: there is no such argument`},
		`{"barePods":"yes"}`:                     {at + `barePods: is a string, and not a bool`},
		`{"preemptStage":"","cooldown":"never"}`: {at + `preemptStage: "" is not disabled, scheduled or running`, `cooldown: "never" is not a duration of 0s to 1h0m0s, like 90s or 10m`},
	} {
		t.Run(args, func(t *testing.T) {
			err := preempting(true, args).Validate()
			if err == nil {
				t.Fatal("no fault")
			}
			if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	s := Default()
	s.Plugins = instead(s.Plugins, Plugin{Name: "preempt", Enabled: true, Weight: 1})
	if err := s.Validate(); err == nil || err.Error() != "plugins[preempt].weight: it rates no node; leave it out" {
		t.Errorf("a weight: %v", err)
	}
}

// Whether pods may be ended for others is no part of how a node is judged.
func TestPreemptIsNoPlugin(t *testing.T) {
	if slices.Contains(PluginNames(), "preempt") {
		t.Error("it is listed as one")
	}
	n := &ledger.Node{Facts: ledger.Facts{CPU: 4, Memory: 4}, UsedCPU: 1, UsedMemory: 1}
	cycle := &pipeline.Cycle{Request: &gpu.Request{}}
	on, off := preempting(true, ""), preempting(false, "")
	a, with := on.Pipeline().Rate(cycle, n)
	b, without := off.Pipeline().Rate(cycle, n)
	if a != b || !cmp.Equal(with, without) {
		t.Errorf("rated %v by %v with it, %v by %v without", a, with, b, without)
	}
}
