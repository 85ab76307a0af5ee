package policy

import (
	"errors"
	"fmt"
	"time"

	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// preemptName is the name by which a policy switches preemption. It is listed among
// the plugins, and is none of them: it takes no part in a decision about a node.
const preemptName = "preempt"

// preemptArgs is its part of the policy.
type preemptArgs struct {
	// PreemptStage is who may be ended: nobody, who is bound and does not run yet, or
	// who runs.
	PreemptStage preempt.Stage `json:"preemptStage"`
	// MinRuntime is how long a pod has run before it may be ended.
	MinRuntime string `json:"minRuntime"`
	// MaxGrace is the longest grace that a pod may have for it to be ended for another,
	// who waits as long; 0: any.
	MaxGrace string `json:"maxGrace"`
	// EvictionsPerHourPerTenant bounds how many pods of a tenant are ended within an
	// hour; 0: any number.
	EvictionsPerHourPerTenant int `json:"evictionsPerHourPerTenant"`
	// Cooldown is between two times that the same one has the same other ended.
	Cooldown string `json:"cooldown"`
	// BarePods says whether pods may be ended that nobody but us would make anew.
	BarePods bool `json:"barePods"`
}

const (
	mostRuntime = 30 * 24 * time.Hour
	// mostCooldown is how long it is remembered who was ended for whom.
	mostCooldown  = time.Hour
	mostEvictions = 100_000
)

// Preempt returns by which rules pods may be ended so that others can run.
func (s Settings) Preempt() preempt.Rules {
	p := s.plugin(preemptName)
	if !p.Enabled {
		return preempt.Rules{Stage: preempt.Disabled}
	}
	rules, _ := readPreempt(p.Args) // valid, as all of the settings
	return rules
}

// readPreempt reads the arguments, and names every fault.
func readPreempt(text []byte) (preempt.Rules, error) {
	args := preemptArgs{PreemptStage: preempt.OfRunning, MinRuntime: "0s", MaxGrace: "30m", Cooldown: "10m", BarePods: true}
	if err := pipeline.ReadArgs(text, &args); err != nil {
		return preempt.Rules{}, err
	}
	var errs []error
	switch args.PreemptStage {
	case preempt.Disabled, preempt.OfScheduled, preempt.OfRunning:
	default:
		errs = append(errs, fmt.Errorf("preemptStage: %q is not %s, %s or %s", args.PreemptStage, preempt.Disabled, preempt.OfScheduled, preempt.OfRunning))
	}
	if n := args.EvictionsPerHourPerTenant; n < 0 || n > mostEvictions {
		errs = append(errs, fmt.Errorf("evictionsPerHourPerTenant: %d is outside 0..%d", n, mostEvictions))
	}
	runtime, err := within("minRuntime", args.MinRuntime, mostRuntime)
	errs = append(errs, err)
	grace, err := within("maxGrace", args.MaxGrace, mostRuntime)
	errs = append(errs, err)
	cooldown, err := within("cooldown", args.Cooldown, mostCooldown)
	if err := errors.Join(append(errs, err)...); err != nil {
		return preempt.Rules{}, err
	}
	return preempt.Rules{
		Stage: args.PreemptStage, MinRuntime: runtime, MaxGrace: grace, PerHour: args.EvictionsPerHourPerTenant, Cooldown: cooldown, Bare: args.BarePods,
	}, nil
}

func within(field, text string, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > most {
		return 0, fmt.Errorf("%s: %q is not a duration of 0s to %s, like 90s or 10m", field, text, most)
	}
	return d, nil
}
