package policy

import "slices"

// The presets are settings with a purpose. A policy may begin with one of them in place
// of the defaults.
const (
	// Packing puts pods where they spoil least for those to come, so that as much of the
	// cluster as possible is in use. What pods ask for themselves, such as a zone, still
	// counts; where it is cool and how cards are joined does not draw them anywhere else.
	Packing = "packing"
	// Heterogeneous weighs how well a pod fits, how cool the node is and how near the
	// rest of its group, and nothing else.
	Heterogeneous = "heterogeneous"
)

// Presets lists their names.
func Presets() []string { return []string{Packing, Heterogeneous} }

// Preset returns the settings of that name, those of Default for ""; false if there are
// none.
func Preset(name string) (s Settings, known bool) {
	s = Default()
	switch name {
	case "":
		return s, true
	case Packing:
		// With weight 0 thermal still keeps pods off hot nodes, and nvlink joins the cards
		// of a container.
		s.Plugins = instead(s.Plugins,
			Plugin{Name: "spread"},
			Plugin{Name: "nvlink", Enabled: true}, Plugin{Name: "thermal", Enabled: true})
	case Heterogeneous:
		s.Plugins = instead(s.Plugins,
			Plugin{Name: "spread"}, Plugin{Name: "topology"}, Plugin{Name: "rdma"},
			Plugin{Name: "nvlink", Enabled: true},
			Plugin{Name: "fragment", Enabled: true, Weight: 0.4, Args: []byte(`{"mode":"bestfit"}`)},
			Plugin{Name: "thermal", Enabled: true, Weight: 0.35},
			Plugin{Name: "network", Enabled: true, Weight: 0.25})
	default:
		return Settings{}, false
	}
	return s, true
}

// instead returns the plugins with these in place of those of their names.
func instead(plugins []Plugin, others ...Plugin) []Plugin {
	for _, o := range others {
		plugins[slices.IndexFunc(plugins, func(p Plugin) bool { return p.Name == o.Name })] = o
	}
	return plugins
}
