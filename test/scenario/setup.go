package scenario

import (
	"fmt"
	"slices"
	"strings"

	"heteroflow.io/heteroflow/test/cluster"
)

// Setup is one configuration that is tried.
type Setup struct {
	Name string
	What string // in words
	// policy is the extender's; "" for what it does without one.
	policy string
	// stock leaves the choice among the nodes that fit to kube-scheduler.
	stock bool
	// blind keeps the temperatures from the extender.
	blind bool
	// all has kube-scheduler look at all nodes for each pod: left to itself it takes
	// a sample of those of a cluster of more than 100.
	all bool
}

// Setups are all of them, in the order of a round.
func Setups() []Setup {
	return []Setup{
		{Name: "blind", What: "stock, and the extender knows no temperatures", policy: policy("shortlist: 0"), stock: true, blind: true},
		{Name: "stock", What: "our filter and bind, kube-scheduler's default scores", policy: policy("shortlist: 0"), stock: true},
		{Name: "stock-all", What: "stock, of all nodes", policy: policy("shortlist: 0"), stock: true, all: true},
		{Name: "default", What: "ours, by the default policy"},
		{Name: "heterogeneous", What: "ours, by the preset for fit, heat and racks", policy: policy("preset: heterogeneous")},
		{Name: "tuned", What: "the same, told that warm air comes in, by what is spoiled for pods to come, and all nodes", policy: policy(tuned), all: true},
	}
}

// tuned knows what idle cards are at here: where a node scores all of 100 up to 50
// degrees, one in a hot rack that idles at 44 counts for as cool as any, and is hot
// as soon as it has work. And it goes by what is spoiled for pods to come: by the
// published formula of fit, which the preset has, one node is as good as any other for a
// whole card.
const tuned = `
preset: heterogeneous
plugins:
- {name: thermal, enabled: true, weight: 0.35, args: {fullScoreTemperature: 30}}
- {name: fragment, enabled: true, weight: 0.4, args: {mode: gradient}}
`

func policy(spec string) string {
	indented := strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")
	return "apiVersion: heteroflow.io/v1alpha1\nkind: SchedulerPolicy\nmetadata: {name: default}\nspec:\n  " + indented + "\n"
}

// Choose returns those of these names, in the order of a round.
func Choose(names []string) ([]Setup, error) {
	all := Setups()
	var chosen []Setup
	for _, s := range all {
		if slices.Contains(names, s.Name) {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) != len(names) {
		return nil, fmt.Errorf("configurations: there are blind, stock, stock-all, default, heterogeneous, tuned; asked for %s", strings.Join(names, ", "))
	}
	return chosen, nil
}

// schedulerConfig is kube-scheduler's for the setup, made of the example. In all
// of them it goes to work without a Lease, which it would lose on a busy machine.
func (s Setup) schedulerConfig(example []byte) ([]byte, error) {
	return cluster.EditSchedulerConfig(example, func(raw map[string]any) error {
		cluster.WithoutLease(raw)
		if s.all {
			raw["percentageOfNodesToScore"] = 100
		}
		if !s.stock {
			return nil
		}
		if err := withStockScores(raw); err != nil {
			return fmt.Errorf("examples/kube-scheduler.yaml: %w", err)
		}
		return nil
	})
}

// withStockScores has kube-scheduler rate nodes as it does out of the box, and not
// ask the extender.
func withStockScores(raw map[string]any) error {
	extender, profile, err := cluster.OnlyProfile(raw)
	if err != nil {
		return err
	}
	plugins, _ := profile["plugins"].(map[string]any)
	for _, part := range []struct {
		of  map[string]any
		key string
	}{{extender, "prioritizeVerb"}, {plugins, "score"}, {profile, "pluginConfig"}} {
		if _, found := part.of[part.key]; !found {
			return fmt.Errorf("%s: there is none to take out", part.key)
		}
		delete(part.of, part.key)
	}
	return nil
}
