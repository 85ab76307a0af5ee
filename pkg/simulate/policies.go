package simulate

import (
	"fmt"
	"math/rand"
	"strings"

	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/policy"
)

// Policy is something to replay a trace with.
type Policy struct {
	Name string
	// Pipeline returns a pipeline for one replay of the trace.
	Pipeline func(*Trace) *pipeline.Pipeline
}

// Ours is what the server does by these settings.
func Ours(name string, s policy.Settings) Policy {
	return Policy{name, func(*Trace) *pipeline.Pipeline { return s.Pipeline() }}
}

// Policies returns those of the names, each of which is one of ours or published.
func Policies(names []string) ([]Policy, error) {
	var found []Policy
	for _, name := range names {
		p, ok := named(name)
		if !ok {
			return nil, fmt.Errorf("there is no policy %q; there are %s", name, strings.Join(append(PolicyNames(), policy.Heterogeneous), ", "))
		}
		found = append(found, p)
	}
	return found, nil
}

// PolicyNames lists what is compared if nobody says otherwise. Policies knows other
// presets too.
func PolicyNames() []string { return []string{policy.Packing, "default", "fgd", "bestfit", "random"} }

func named(name string) (Policy, bool) {
	if s, preset := policy.Preset(name); preset && name != "" {
		return Ours(name, s), true
	}
	switch name {
	case "default":
		return Ours(name, policy.Default()), true
	case "fgd":
		return Policy{name, func(t *Trace) *pipeline.Pipeline {
			f := newFGD(mixOf(t.Pods))
			return reference(pipeline.Weighted{Score: f}, f)
		}}, true
	case "bestfit":
		return Policy{name, func(*Trace) *pipeline.Pipeline {
			return reference(pipeline.Weighted{Score: bestFit{}}, bestFit{})
		}}, true
	case "random":
		return Policy{name, func(*Trace) *pipeline.Pipeline {
			r := random{rand.New(rand.NewSource(1))}
			return reference(pipeline.Weighted{Score: r, Near: true}, r)
		}}, true
	}
	return Policy{}, false
}
