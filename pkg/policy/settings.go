// Package policy holds the cluster's choices: which plugins run with which
// weight, how much of a card is kept back, how far cards are overcommitted.
//
// Settings are checked as a whole by Validate; nothing runs by settings that
// have not passed it. The registry of plugins is here and nowhere else.
package policy

import (
	"errors"
	"fmt"
	"math"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/plugins/load"
)

// Settings is one policy. It never changes once in force.
type Settings struct {
	Plugins     []Plugin
	Reserve     Reserve
	MemoryScale Scale      // of slices' memory
	CoreScale   Scale      // of slices' compute
	SliceCores  SliceCores // compute of a slice that names none
	Injection   Injection
	// Shortlist is how many of the nodes that fit kube-scheduler is told, the
	// best ones; 0 for all.
	Shortlist int
	// Thresholds are the loads from which on nothing more is placed.
	Thresholds Thresholds
	// DefaultTaskTimeout is how long a pod may run that does not say so itself; 0: for
	// ever. With EnforceTaskTimeout it is stopped then.
	DefaultTaskTimeout time.Duration
	EnforceTaskTimeout bool
}

// Thresholds are those of the plugin load.
type Thresholds = load.Thresholds

// Plugin is the configuration of one plugin.
type Plugin struct {
	Name    string
	Enabled bool
	Weight  float64 // 0 or more
	Args    []byte  // JSON; empty for the plugin's defaults
}

// Reserve is the memory of each card that slices never get: the larger of
// Percent of the card and an equal part of Fixed, which is per node.
type Reserve struct {
	Percent int
	Fixed   gpu.MiB
}

// Scale is an overcommit factor in thousandths: 1000 promises what is there.
type Scale int

// One promises exactly what is there.
const One Scale = 1000

// SliceCores says what compute a slice gets that names none.
type SliceCores string

// The empty one leaves it to the form of the request: in proportion to the
// memory in the neutral form, none in a vendor's form.
const (
	SliceCoresByForm       SliceCores = ""
	SliceCoresProportional SliceCores = "proportional"
	SliceCoresNone         SliceCores = "none"
)

// Injection says how containers are shown their cards where no component of
// the node does it.
type Injection string

// With InjectionDownwardAPI admission adds variables that read our annotations
// to each container that asks for cards.
const (
	InjectionNone        Injection = ""
	InjectionDownwardAPI Injection = "downwardAPI"
)

// Default returns the settings that hold without a policy: spread, and beside it what
// is spoiled for pods to come; what goes by what nodes tell of links and of places where
// they do, and by what is measured where it is; pods that allow it are ended for others of
// higher priority; members of services on nodes that are gone are replaced; 10 % or 500 MiB
// a node kept back, no overcommit, a shortlist of 16 nodes; who runs for two hours without
// having said so is told.
func Default() Settings {
	return Settings{
		Plugins: []Plugin{
			{Name: "spread", Enabled: true, Weight: 1},
			{Name: "binpack", Enabled: false, Weight: 1},
			{Name: "topology-aware", Enabled: false, Weight: 1},
			{Name: "topology", Enabled: true, Weight: 1},
			{Name: "nvlink", Enabled: true, Weight: 1},
			{Name: "rdma", Enabled: true, Weight: 1},
			{Name: "thermal", Enabled: true, Weight: 1},
			{Name: "network", Enabled: true, Weight: 1},
			{Name: "fragment", Enabled: true, Weight: 1},
			{Name: "preempt", Enabled: true},
			{Name: "rebuild", Enabled: true},
		},
		Reserve:     Reserve{Percent: 10, Fixed: 500},
		MemoryScale: One,
		CoreScale:   One,
		Shortlist:   16,
		Thresholds:  Thresholds{CPU: 90, Memory: 90, GPUMemory: 95, GPUUtilisation: 95, GPUTemperature: 79},

		DefaultTaskTimeout: 2 * time.Hour,
	}
}

// TaskTimeout returns how long a pod may run that does not say so itself, and whether
// it is stopped then; 0: for ever.
func (s Settings) TaskTimeout() (limit time.Duration, enforced bool) {
	return s.DefaultTaskTimeout, s.EnforceTaskTimeout && s.DefaultTaskTimeout > 0
}

const (
	// mostShortlist is as many nodes as a cluster is allowed.
	mostShortlist = 5000
	mostTimeout   = 365 * 24 * time.Hour
)

// Validate reports every fault of the settings at once.
func (s Settings) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Reserve.Percent < 0 || s.Reserve.Percent > 90 {
		fault("memoryReserve.percent: %d is outside 0..90", s.Reserve.Percent)
	}
	if s.Reserve.Fixed < 0 || s.Reserve.Fixed > gpu.MostMemory {
		fault("memoryReserve.fixedMiB: %d is outside 0..%d", s.Reserve.Fixed, gpu.MostMemory)
	}
	const most = 10 * One
	if s.MemoryScale < One || s.MemoryScale > most {
		fault("deviceMemoryScaling: %g is outside 1..10", float64(s.MemoryScale)/float64(One))
	}
	if s.CoreScale < One || s.CoreScale > most {
		fault("deviceCoreScaling: %g is outside 1..10", float64(s.CoreScale)/float64(One))
	}
	switch s.SliceCores {
	case SliceCoresByForm, SliceCoresProportional, SliceCoresNone:
	default:
		fault("defaultSliceCores: %q is not proportional or none", s.SliceCores)
	}
	if s.Shortlist < 0 || s.Shortlist > mostShortlist {
		fault("shortlist: %d is outside 0..%d", s.Shortlist, mostShortlist)
	}
	if s.Injection != InjectionNone && s.Injection != InjectionDownwardAPI {
		fault("injection: %q is not downwardAPI; leave it out for none", s.Injection)
	}
	errs = append(errs, validateThresholds(s.Thresholds)...)
	if t := s.DefaultTaskTimeout; t < 0 || t > mostTimeout {
		fault("defaultTaskTimeout: %s is outside 0s..%s", t, mostTimeout)
	}
	return errors.Join(append(errs, s.validatePlugins()...)...)
}

func validateThresholds(t Thresholds) (errs []error) {
	const hottest = 150 // degrees: no card stands that
	for _, at := range []struct {
		field     string
		threshold int64
		most      int64
	}{
		{"cpuPercent", t.CPU, 100},
		{"memoryPercent", t.Memory, 100},
		{"gpuMemoryPercent", t.GPUMemory, 100},
		{"gpuUtilizationPercent", t.GPUUtilisation, 100},
		{"gpuTemperatureCelsius", t.GPUTemperature, hottest},
	} {
		if at.threshold < 0 || at.threshold > at.most {
			errs = append(errs, fmt.Errorf("loadThresholds.%s: %d is outside 0..%d", at.field, at.threshold, at.most))
		}
	}
	return errs
}

func (s Settings) validatePlugins() (errs []error) {
	seen := map[string]bool{}
	for _, p := range s.Plugins {
		at := fmt.Sprintf("plugins[%s]", p.Name)
		switch {
		case !known(p.Name):
			errs = append(errs, fmt.Errorf("%s: there is no such plugin", at))
		case seen[p.Name]:
			errs = append(errs, fmt.Errorf("%s: named twice", at))
		case fixed(p.Name) && !p.Enabled:
			errs = append(errs, fmt.Errorf("%s: cannot be disabled", at))
		}
		seen[p.Name] = true
		if beside(p.Name) && p.Weight != 0 {
			errs = append(errs, fmt.Errorf("%s.weight: it rates no node; leave it out", at))
		}
		if math.IsNaN(p.Weight) || p.Weight < 0 || p.Weight > 1000 {
			errs = append(errs, fmt.Errorf("%s.weight: %g is outside 0..1000", at, p.Weight))
		}
		if err := readArgs(p.Name, p.Args); err != nil {
			errs = append(errs, fmt.Errorf("%s.args: %w", at, err))
		}
	}
	return errs
}
