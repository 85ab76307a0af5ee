package codec

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

const head = "apiVersion: heteroflow.io/v1alpha1\nkind: SchedulerPolicy\nmetadata: {name: default}\n"

func TestPolicy(t *testing.T) {
	tests := map[string]struct {
		manifest string
		want     func(*policy.Settings)
	}{
		"nothing said":            {head, func(*policy.Settings) {}},
		"an empty spec":           {head + "spec: {}", func(*policy.Settings) {}},
		"comments around":         {"# ours\n---\n" + head + "---\n# the end\n", func(*policy.Settings) {}},
		"JSON":                    {`{"apiVersion":"heteroflow.io/v1alpha1","kind":"SchedulerPolicy","metadata":{"name":"default"}}`, func(*policy.Settings) {}},
		"injection":               {head + "spec: {injection: downwardAPI}", func(s *policy.Settings) { s.Injection = policy.InjectionDownwardAPI }},
		"a plugin off":            {head + "spec: {plugins: [{name: spread, enabled: false}]}", func(s *policy.Settings) { s.Plugins[0].Enabled = false }},
		"a plugin on and heavier": {head + "spec: {plugins: [{name: binpack, enabled: true, weight: 2.5}]}", func(s *policy.Settings) { s.Plugins[1].Enabled, s.Plugins[1].Weight = true, 2.5 }},
		"no weight is not 0":      {head + "spec: {plugins: [{name: spread}]}", func(*policy.Settings) {}},
		"a weight of 0":           {head + "spec: {plugins: [{name: spread, weight: 0}]}", func(s *policy.Settings) { s.Plugins[0].Weight = 0 }},
		"arguments":               {head + "spec: {plugins: [{name: spread, args: {}}]}", func(s *policy.Settings) { s.Plugins[0].Args = []byte("{}") }},
		"a plugin that is always on": {head + "spec: {plugins: [{name: resource-filter}]}", func(s *policy.Settings) {
			s.Plugins = append(s.Plugins, policy.Plugin{Name: "resource-filter", Enabled: true})
		}},
		"half a reserve": {head + "spec: {memoryReserve: {percent: 0}}", func(s *policy.Settings) { s.Reserve.Percent = 0 }},
		"a reserve":      {head + "spec: {memoryReserve: {percent: 5, fixedMiB: 0}}", func(s *policy.Settings) { s.Reserve = policy.Reserve{Percent: 5} }},
		"overcommit":     {head + "spec: {deviceMemoryScaling: 1.125, deviceCoreScaling: 2}", func(s *policy.Settings) { s.MemoryScale, s.CoreScale = 1125, 2000 }},
		"all that fit":   {head + "spec: {shortlist: 0}", func(s *policy.Settings) { s.Shortlist = 0 }},
		"one threshold":  {head + "spec: {loadThresholds: {gpuTemperatureCelsius: 85}}", func(s *policy.Settings) { s.Thresholds.GPUTemperature = 85 }},
		"thresholds": {head + "spec: {loadThresholds: {cpuPercent: 1, memoryPercent: 2, gpuMemoryPercent: 3, gpuUtilizationPercent: 0, gpuTemperatureCelsius: 5}}", func(s *policy.Settings) {
			s.Thresholds = policy.Thresholds{CPU: 1, Memory: 2, GPUMemory: 3, GPUTemperature: 5}
		}},
		"a preset":        {head + "spec: {preset: packing}", func(s *policy.Settings) { *s, _ = policy.Preset(policy.Packing) }},
		"the other":       {head + "spec: {preset: heterogeneous}", func(s *policy.Settings) { *s, _ = policy.Preset(policy.Heterogeneous) }},
		"an empty preset": {head + `spec: {preset: ""}`, func(*policy.Settings) {}},
		"a preset, changed": {head + "spec: {shortlist: 5, preset: packing, plugins: [{name: spread, enabled: true}, {name: fragment, weight: 3}]}", func(s *policy.Settings) {
			*s, _ = policy.Preset(policy.Packing)
			s.Shortlist, s.Plugins[0].Enabled, s.Plugins[len(s.Plugins)-3].Weight = 5, true, 3
		}},
		"a mode": {head + "spec: {plugins: [{name: fragment, args: {mode: bestfit}}]}", func(s *policy.Settings) {
			s.Plugins[len(s.Plugins)-3].Args = []byte(`{"mode":"bestfit"}`)
		}},
		"nobody is ended": {head + "spec: {plugins: [{name: preempt, args: {preemptStage: disabled}}]}", func(s *policy.Settings) {
			s.Plugins[len(s.Plugins)-2].Args = []byte(`{"preemptStage":"disabled"}`)
		}},
		"members are left where they are": {head + "spec: {plugins: [{name: rebuild, enabled: false}]}", func(s *policy.Settings) {
			s.Plugins[len(s.Plugins)-1].Enabled = false
		}},
		"many at once": {head + "spec: {plugins: [{name: rebuild, args: {atOnce: 5}}]}", func(s *policy.Settings) {
			s.Plugins[len(s.Plugins)-1].Args = []byte(`{"atOnce":5}`)
		}},
		"a timeout": {head + "spec: {defaultTaskTimeout: 90m}", func(s *policy.Settings) { s.DefaultTaskTimeout = 90 * time.Minute }},
		"a timeout that holds": {head + "spec: {defaultTaskTimeout: 24h, enforceTaskTimeout: true}", func(s *policy.Settings) {
			s.DefaultTaskTimeout, s.EnforceTaskTimeout = 24*time.Hour, true
		}},
		"no timeout":           {head + "spec: {defaultTaskTimeout: 0s}", func(s *policy.Settings) { s.DefaultTaskTimeout = 0 }},
		"the default, holding": {head + "spec: {enforceTaskTimeout: true}", func(s *policy.Settings) { s.EnforceTaskTimeout = true }},
		"slices' cores":        {head + "spec: {defaultSliceCores: none}", func(s *policy.Settings) { s.SliceCores = policy.SliceCoresNone }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := policy.Default()
			tc.want(&want)
			got, err := Policy([]byte(tc.manifest))
			sameFaults(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPolicyRefused(t *testing.T) {
	tests := map[string]struct {
		manifest string
		want     []string // each is part of a line, in order
	}{
		"nothing": {"", []string{
			`apiVersion: "" is not heteroflow.io/v1alpha1`, `kind: "" is not SchedulerPolicy`, `metadata.name: "" is not default`,
		}},
		"another object":    {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", []string{`apiVersion: "v1"`, `kind: "ConfigMap"`, `metadata.name: "x"`}},
		"two documents":     {head + "---\n" + head, []string{"there are two documents; write one"}},
		"an unknown field":  {head + "spec: {memoryReserve: {percents: 5}}", []string{`unknown field "spec.memoryReserve.percents"`}},
		"another spelling":  {head + "spec: {loadThresholds: {gpuUtilisationPercent: 5}}", []string{`unknown field "spec.loadThresholds.gpuUtilisationPercent"`}},
		"a status":          {head + "status: {}", []string{`unknown field "status"`}},
		"a field's case":    {head + "spec: {DefaultSliceCores: none}", []string{`unknown field "spec.DefaultSliceCores"`}},
		"a key twice":       {head + "spec: {deviceCoreScaling: 1, deviceCoreScaling: 2}", []string{`key "deviceCoreScaling" already set`}},
		"an argument twice": {head + "spec: {plugins: [{name: spread, args: {a: 1, a: 2}}]}", []string{`key "a" already set`}},
		"no YAML":           {head + "spec: [", []string{"did not find expected node content"}},
		"another type":      {head + "spec: {memoryReserve: {percent: ten}}", []string{"cannot unmarshal string into Go struct field MemoryReserve.spec.memoryReserve.percent"}},
		"a part of a percent": {head + "spec: {memoryReserve: {percent: 2.5}}",
			[]string{"cannot unmarshal number 2.5 into Go struct field MemoryReserve.spec.memoryReserve.percent of type int64"}},
		"no such preset":          {head + "spec: {preset: Packing, shortlist: -1}", []string{`preset: "Packing" is not packing or heterogeneous; leave it out for the defaults`, "shortlist: -1 is outside"}},
		"no such mode":            {head + "spec: {plugins: [{name: fragment, args: {mode: best}}]}", []string{`plugins[fragment].args: mode: "best" is not gradient or bestfit`}},
		"a number for a duration": {head + "spec: {defaultTaskTimeout: 7200}", []string{"cannot unmarshal number into Go struct field SchedulerPolicySpec.spec.defaultTaskTimeout of type string"}},
		"no duration":             {head + `spec: {defaultTaskTimeout: "7200"}`, []string{`defaultTaskTimeout: "7200" is not a duration, like 90m or 2h; 0s is none`}},
		"an empty duration":       {head + `spec: {defaultTaskTimeout: ""}`, []string{`defaultTaskTimeout: "" is not a duration`}},
		"never":                   {head + "spec: {defaultTaskTimeout: 9000h}", []string{"defaultTaskTimeout: 9000h0m0s is outside 0s..8760h0m0s"}},
		"none at once":            {head + "spec: {plugins: [{name: rebuild, args: {atOnce: 0}}]}", []string{"plugins[rebuild].args: atOnce: 0 is outside 1..1000"}},
		"a fourth decimal":        {head + "spec: {deviceMemoryScaling: 1.0005}", []string{"deviceMemoryScaling: 1.0005 has more than three decimals"}},
		"a huge factor":           {head + "spec: {deviceCoreScaling: 1e300}", []string{"deviceCoreScaling: 1e+300 is not a factor"}},
		"every fault": {head + `spec:
  plugins: [{name: spread}, {name: spread}, {name: nvlnik}, {name: resource-filter, enabled: false}, {name: binpack, weight: -1}]
  memoryReserve: {percent: 91, fixedMiB: -1}
  deviceMemoryScaling: 0.9
  deviceCoreScaling: 10.001
  defaultSliceCores: half
  injection: cdi
  shortlist: 5001
  defaultTaskTimeout: -1s
  loadThresholds: {cpuPercent: 101, memoryPercent: -1, gpuMemoryPercent: 101, gpuUtilizationPercent: 101, gpuTemperatureCelsius: 151}
`, []string{
			"plugins[spread]: named twice",
			"memoryReserve.percent: 91 is outside 0..90",
			"memoryReserve.fixedMiB: -1 is outside 0..",
			"deviceMemoryScaling: 0.9 is outside 1..10",
			"deviceCoreScaling: 10.001 is outside 1..10",
			`defaultSliceCores: "half" is not proportional or none`,
			"shortlist: 5001 is outside 0..5000",
			`injection: "cdi" is not downwardAPI`,
			"loadThresholds.cpuPercent: 101 is outside 0..100",
			"loadThresholds.memoryPercent: -1 is outside 0..100",
			"loadThresholds.gpuMemoryPercent: 101 is outside 0..100",
			"loadThresholds.gpuUtilizationPercent: 101 is outside 0..100",
			"loadThresholds.gpuTemperatureCelsius: 151 is outside 0..150",
			"defaultTaskTimeout: -1s is outside 0s..",
			"plugins[binpack].weight: -1 is outside 0..1000",
			"plugins[nvlnik]: there is no such plugin",
			"plugins[resource-filter]: cannot be disabled",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Policy([]byte(tc.manifest))
			if err == nil {
				t.Fatalf("no error, want %q", tc.want)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) < len(tc.want) {
				t.Fatalf("%d faults, want %d: %v", len(lines), len(tc.want), err)
			}
			rest := err.Error()
			for _, want := range tc.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("%q is not in (or not in this order in)\n%v", want, err)
				}
				rest = after
			}
			if diff := cmp.Diff(policy.Settings{}, got); diff != "" {
				t.Errorf("settings beside an error (-want +got):\n%s", diff)
			}
		})
	}
}

// The defaults of the manifest's documentation are those that hold.
func TestDefaults(t *testing.T) {
	s, err := Policy([]byte(head))
	sameFaults(t, err)
	want := policy.Reserve{Percent: 10, Fixed: gpu.MiB(500)}
	if s.Reserve != want || s.MemoryScale != 1000 || s.CoreScale != 1000 || s.SliceCores != "" {
		t.Errorf("defaults are %+v", s)
	}
}
