package policy

import (
	"errors"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/plugins/affinity"
	"heteroflow.io/heteroflow/pkg/plugins/availability"
	"heteroflow.io/heteroflow/pkg/plugins/binpack"
	"heteroflow.io/heteroflow/pkg/plugins/fragment"
	"heteroflow.io/heteroflow/pkg/plugins/gpufilter"
	"heteroflow.io/heteroflow/pkg/plugins/load"
	"heteroflow.io/heteroflow/pkg/plugins/network"
	"heteroflow.io/heteroflow/pkg/plugins/nvlink"
	"heteroflow.io/heteroflow/pkg/plugins/rdma"
	"heteroflow.io/heteroflow/pkg/plugins/resourcefilter"
	"heteroflow.io/heteroflow/pkg/plugins/spread"
	"heteroflow.io/heteroflow/pkg/plugins/tenant"
	"heteroflow.io/heteroflow/pkg/plugins/thermal"
	"heteroflow.io/heteroflow/pkg/plugins/topology"
	"heteroflow.io/heteroflow/pkg/plugins/topologyaware"
)

// alwaysOn lists the plugins that correctness rests on, in the order in which
// they run; chosen those that a policy may switch.
func alwaysOn() []string {
	return []string{availability.Name, gpufilter.Name, affinity.Name, tenant.Name, load.Name, resourcefilter.Name}
}

func chosen() []string {
	return []string{spread.Name, binpack.Name, topologyaware.Name, topology.Name, nvlink.Name, rdma.Name, thermal.Name, network.Name, fragment.Name}
}

func fixed(name string) bool { return slices.Contains(alwaysOn(), name) }

// known also takes what a policy switches and arranges like a plugin.
func known(name string) bool {
	return fixed(name) || slices.Contains(chosen(), name) || beside(name)
}

// beside reports whether the name is of what takes no part in a decision about a node.
func beside(name string) bool { return name == preemptName || name == rebuildName }

// readArgs has a plugin judge its arguments.
func readArgs(name string, args []byte) error {
	switch name {
	case nvlink.Name:
		_, err := nvlink.New(args)
		return err
	case rdma.Name:
		_, err := rdma.New(args)
		return err
	case thermal.Name:
		_, err := thermal.New(args)
		return err
	case fragment.Name:
		_, err := fragment.New(args)
		return err
	case preemptName:
		_, err := readPreempt(args)
		return err
	case rebuildName:
		_, err := readRebuild(args)
		return err
	}
	if a := string(args); a != "" && a != "{}" && a != "null" {
		return errors.New("the plugin takes none")
	}
	return nil
}

// PluginNames lists every registered plugin.
func PluginNames() []string { return append(alwaysOn(), chosen()...) }

// Pipeline builds the pipeline that these settings ask for. They must be valid.
func (s Settings) Pipeline() *pipeline.Pipeline {
	links, remote, fragments := s.nvlink(), s.rdma(), s.fragment()
	c := pipeline.Config{
		Filters: []pipeline.Filter{
			availability.Plugin{}, tenant.Nodes{}, gpufilter.Plugin{}, affinity.Plugin{}, tenant.Cards{}, remote, links, load.Plugin{Thresholds: s.Thresholds},
		},
		Pack: resourcefilter.Plugin{},
		Scores: []pipeline.Weighted{
			{Score: spread.Plugin{}, Weight: s.weight(spread.Name), Layout: gpu.Spread},
			{Score: binpack.Plugin{}, Weight: s.weight(binpack.Name), Layout: gpu.Binpack},
			{Cards: topologyaware.Plugin{}, Weight: s.weight(topologyaware.Name), Layout: gpu.TopologyAware},
			{Score: topology.Plugin{}, Weight: s.share(topology.Name), Near: true},
			{Score: remote, Weight: s.share(rdma.Name), Near: true},
			{Score: network.Plugin{}, Weight: s.share(network.Name), Near: true},
			{Score: fragments, Weight: s.share(fragment.Name)},
		},
		Places: map[gpu.Policy]pipeline.Place{
			gpu.Binpack:       binpack.Plugin{},
			gpu.Spread:        spread.Plugin{},
			gpu.TopologyAware: topologyaware.Plugin{},
			byFragments:       fragments,
		},
		NodeLayout: s.aware(s.usage()),
		CardLayout: s.aware(s.cards()),
		Otherwise:  s.usage(),
		Shortlist:  s.Shortlist,
	}
	if s.plugin(nvlink.Name).Enabled {
		c.Scores = append(c.Scores, pipeline.Weighted{Cards: links, Weight: s.weight(nvlink.Name)})
		c.Linked = links
	}
	if heat, on := s.thermal(); on {
		c.Filters = append(c.Filters, heat)
		c.Scores = append(c.Scores, pipeline.Weighted{Score: heat, Weight: s.share(thermal.Name)})
	}
	return pipeline.New(c)
}

// MaxMeanTemperature is the mean temperature of a node's cards, in degrees Celsius,
// above which the plugin thermal refuses it; 0 where that is off.
func (s Settings) MaxMeanTemperature() int64 {
	if heat, on := s.thermal(); on {
		return heat.Args.MaxMeanTemperature
	}
	return 0
}

// thermal returns the plugin, and whether it is on.
func (s Settings) thermal() (heat thermal.Plugin, on bool) {
	p := s.plugin(thermal.Name)
	heat, _ = thermal.New(p.Args) // valid, as all of the settings
	return heat, p.Enabled
}

// nvlink returns the plugin. One that is off rates nothing and chooses no cards;
// what a pod requires is required all the same.
func (s Settings) nvlink() nvlink.Plugin {
	p := s.plugin(nvlink.Name)
	if !p.Enabled {
		return nvlink.Plugin{}
	}
	links, _ := nvlink.New(p.Args) // valid, as all of the settings
	return links
}

// rdma returns the plugin, which keeps to what pods require whether or not its score
// is on.
func (s Settings) rdma() rdma.Plugin {
	remote, _ := rdma.New(s.plugin(rdma.Name).Args) // valid, as all of the settings
	return remote
}

// fragment returns the plugin.
func (s Settings) fragment() fragment.Plugin {
	p, _ := fragment.New(s.plugin(fragment.Name).Args) // valid, as all of the settings
	return p
}

// byFragments is the card policy of the plugin fragment. A pod cannot name it.
const byFragments gpu.Policy = fragment.Name

// cards is the card policy of pods that name none.
func (s Settings) cards() gpu.Policy {
	if s.plugin(fragment.Name).Enabled {
		return byFragments
	}
	return gpu.Binpack
}

// aware is topology-aware where it is enabled, else what there is otherwise.
func (s Settings) aware(otherwise gpu.Policy) gpu.Policy {
	if s.plugin(topologyaware.Name).Enabled {
		return gpu.TopologyAware
	}
	return otherwise
}

// usage is binpack where it is enabled, even beside spread; none where both are
// off.
func (s Settings) usage() gpu.Policy {
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

// share is the weight of a plugin that is on; of one that is off, 0.
func (s Settings) share(name string) float64 {
	if p := s.plugin(name); p.Enabled {
		return p.Weight
	}
	return 0
}

func (s Settings) plugin(name string) Plugin {
	for _, p := range s.Plugins {
		if p.Name == name {
			return p
		}
	}
	return Plugin{Name: name}
}
