package codec

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// Policy reads a manifest of SchedulerPolicy. What it leaves out keeps its
// default, or what it is in the preset. One with a fault is refused as a whole, with every fault named.
func Policy(manifest []byte) (policy.Settings, error) {
	s, err := readPolicy(manifest)
	if err != nil {
		return policy.Settings{}, fmt.Errorf("%s: %w", v1alpha1.SchedulerPolicyKind, err)
	}
	return s, nil
}

func readPolicy(manifest []byte) (policy.Settings, error) {
	document, err := only(manifest)
	if err != nil {
		return policy.Settings{}, err
	}
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return policy.Settings{}, err
	}
	var p v1alpha1.SchedulerPolicy
	if err := strictJSON(string(text), &p); err != nil {
		return policy.Settings{}, err
	}
	s, errs := settings(&p)
	return s, errors.Join(append(errs, s.Validate())...)
}

// only returns the one document of a YAML stream that says anything. The decoder
// would read the first and drop the others without a word.
func only(manifest []byte) (document []byte, err error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for {
		next, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return document, nil
		}
		if err != nil {
			return nil, err
		}
		var content any
		if yaml.Unmarshal(next, &content) == nil && content == nil {
			continue // comments alone
		}
		if document != nil {
			return nil, errors.New("there are two documents; write one")
		}
		document = next
	}
}

// settings lays the manifest over its preset, and returns the faults that
// Validate cannot see any more.
func settings(p *v1alpha1.SchedulerPolicy) (policy.Settings, []error) {
	errs := identity(p)
	s, known := policy.Preset(p.Spec.Preset)
	if !known {
		s = policy.Default() // the rest is judged by these
		errs = append(errs, fmt.Errorf("preset: %q is not %s; leave it out for the defaults", p.Spec.Preset, strings.Join(policy.Presets(), " or ")))
	}
	seen := map[string]bool{}
	for i := range p.Spec.Plugins {
		change := &p.Spec.Plugins[i]
		if seen[change.Name] {
			errs = append(errs, fmt.Errorf("plugins[%s]: named twice", change.Name))
		}
		seen[change.Name] = true
		s.Plugins = with(s.Plugins, change)
	}
	if r := p.Spec.MemoryReserve; r != nil {
		s.Reserve.Percent = int(or(r.Percent, int64(s.Reserve.Percent)))
		s.Reserve.Fixed = gpu.MiB(or(r.FixedMiB, int64(s.Reserve.Fixed)))
	}
	if err := scale(p.Spec.DeviceMemoryScaling, &s.MemoryScale); err != nil {
		errs = append(errs, fmt.Errorf("deviceMemoryScaling: %w", err))
	}
	if err := scale(p.Spec.DeviceCoreScaling, &s.CoreScale); err != nil {
		errs = append(errs, fmt.Errorf("deviceCoreScaling: %w", err))
	}
	s.SliceCores = policy.SliceCores(p.Spec.DefaultSliceCores)
	s.Injection = policy.Injection(p.Spec.Injection)
	s.Shortlist = int(or(p.Spec.Shortlist, int64(s.Shortlist)))
	if t := p.Spec.LoadThresholds; t != nil {
		s.Thresholds = thresholds(t, s.Thresholds)
	}
	if err := timeout(p.Spec.DefaultTaskTimeout, &s.DefaultTaskTimeout); err != nil {
		errs = append(errs, fmt.Errorf("defaultTaskTimeout: %w", err))
	}
	s.EnforceTaskTimeout = or(p.Spec.EnforceTaskTimeout, s.EnforceTaskTimeout)
	return s, errs
}

func timeout(given *string, into *time.Duration) error {
	if given == nil {
		return nil
	}
	d, err := time.ParseDuration(*given)
	if err != nil {
		return fmt.Errorf("%s is not a duration, like 90m or 2h; 0s is none", quoted(*given))
	}
	*into = d
	return nil
}

// thresholds lays those of a manifest over those that hold.
func thresholds(t *v1alpha1.LoadThresholds, s policy.Thresholds) policy.Thresholds {
	return policy.Thresholds{
		CPU:            or(t.CPUPercent, s.CPU),
		Memory:         or(t.MemoryPercent, s.Memory),
		GPUMemory:      or(t.GPUMemoryPercent, s.GPUMemory),
		GPUUtilisation: or(t.GPUUtilizationPercent, s.GPUUtilisation),
		GPUTemperature: or(t.GPUTemperatureCelsius, s.GPUTemperature),
	}
}

// identity checks that the manifest is the one there can be.
func identity(p *v1alpha1.SchedulerPolicy) (errs []error) {
	for _, is := range []struct{ field, given, want string }{
		{"apiVersion", p.APIVersion, v1alpha1.APIVersion},
		{"kind", p.Kind, v1alpha1.SchedulerPolicyKind},
		{"metadata.name", p.Name, v1alpha1.SchedulerPolicyName},
	} {
		if is.given != is.want {
			errs = append(errs, fmt.Errorf("%s: %q is not %s", is.field, is.given, is.want))
		}
	}
	return errs
}

// with returns the plugins with one of them changed. A plugin that the defaults
// do not list is on unless the change says otherwise.
func with(plugins []policy.Plugin, change *v1alpha1.PluginPolicy) []policy.Plugin {
	at := -1
	for i := range plugins {
		if plugins[i].Name == change.Name {
			at = i
		}
	}
	if at < 0 {
		at = len(plugins)
		plugins = append(plugins, policy.Plugin{Name: change.Name, Enabled: true})
	}
	p := &plugins[at]
	p.Enabled = or(change.Enabled, p.Enabled)
	p.Weight = or(change.Weight, p.Weight)
	if change.Args != nil {
		p.Args = change.Args.Raw
	}
	return plugins
}

// scale reads a factor into thousandths. A fourth decimal is refused and not
// rounded: the sum over a card would not be what the policy says.
func scale(given *float64, into *policy.Scale) error {
	const exact = 1e-6
	if given == nil {
		return nil
	}
	thousandths := *given * float64(policy.One)
	whole := math.Round(thousandths)
	if !(math.Abs(whole) < math.MaxInt32) { // not a number is not less either
		return fmt.Errorf("%g is not a factor", *given)
	}
	if math.Abs(thousandths-whole) > exact {
		return fmt.Errorf("%g has more than three decimals", *given)
	}
	*into = policy.Scale(whole)
	return nil
}
