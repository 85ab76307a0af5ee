package policy

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/plugins/affinity"
	"heteroflow.io/heteroflow/pkg/plugins/availability"
	"heteroflow.io/heteroflow/pkg/plugins/binpack"
	"heteroflow.io/heteroflow/pkg/plugins/gpufilter"
	"heteroflow.io/heteroflow/pkg/plugins/resourcefilter"
	"heteroflow.io/heteroflow/pkg/plugins/spread"
	"heteroflow.io/heteroflow/pkg/plugins/tenant"
)

// alwaysOn lists the plugins that correctness rests on, in the order in which
// they run; chosen those that a policy may switch.
func alwaysOn() []string {
	return []string{availability.Name, gpufilter.Name, affinity.Name, tenant.Name, resourcefilter.Name}
}

func chosen() []string { return []string{spread.Name, binpack.Name} }

func fixed(name string) bool { return slices.Contains(alwaysOn(), name) }

func known(name string) bool { return fixed(name) || slices.Contains(chosen(), name) }

// PluginNames lists every registered plugin.
func PluginNames() []string { return append(alwaysOn(), chosen()...) }

// Pipeline builds the pipeline that these settings ask for. They must be valid.
func (s Settings) Pipeline() *pipeline.Pipeline {
	return pipeline.New(pipeline.Config{
		Filters: []pipeline.Filter{
			availability.Plugin{}, tenant.Nodes{}, gpufilter.Plugin{}, affinity.Plugin{}, tenant.Cards{},
		},
		Pack: resourcefilter.Plugin{},
		Scores: []pipeline.Weighted{
			{Score: spread.Plugin{}, Weight: s.weight(spread.Name), Layout: gpu.Spread},
			{Score: binpack.Plugin{}, Weight: s.weight(binpack.Name), Layout: gpu.Binpack},
		},
		Places: map[gpu.Policy]pipeline.Place{
			gpu.Binpack: binpack.Plugin{},
			gpu.Spread:  spread.Plugin{},
		},
		NodeLayout: s.nodeLayout(),
		CardLayout: gpu.Binpack,
		Shortlist:  s.Shortlist,
	})
}

// nodeLayout is binpack where it is enabled, even beside spread; none where
// both are off.
func (s Settings) nodeLayout() gpu.Policy {
	switch {
	case s.plugin(binpack.Name).Enabled:
		return gpu.Binpack
	case s.plugin(spread.Name).Enabled:
		return gpu.Spread
	}
	return ""
}

// weight of a layout plugin. One that is off still serves the pods that name it
// in node-policy, and must weigh something then.
func (s Settings) weight(name string) float64 {
	if p := s.plugin(name); p.Enabled || p.Weight > 0 {
		return p.Weight
	}
	return 1
}

func (s Settings) plugin(name string) Plugin {
	for _, p := range s.Plugins {
		if p.Name == name {
			return p
		}
	}
	return Plugin{Name: name}
}
