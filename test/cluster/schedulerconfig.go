package cluster

import (
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"
)

// EditSchedulerConfig changes a configuration of kube-scheduler as it is written: its
// typed form would spell out fields that the example leaves to their defaults.
func EditSchedulerConfig(config []byte, change func(raw map[string]any) error) ([]byte, error) {
	raw := map[string]any{}
	if err := yaml.Unmarshal(config, &raw); err != nil {
		return nil, err
	}
	if err := change(raw); err != nil {
		return nil, err
	}
	return yaml.Marshal(raw)
}

// WithoutLease has kube-scheduler go to work without one: on a machine that others keep
// busy it would lose it, and end.
func WithoutLease(raw map[string]any) {
	raw["leaderElection"] = map[string]any{"leaderElect": false}
}

// OnlyProfile returns the one extender and the one profile of the configuration.
func OnlyProfile(raw map[string]any) (extender, profile map[string]any, err error) {
	extenders, _ := raw["extenders"].([]any)
	profiles, _ := raw["profiles"].([]any)
	if len(extenders) != 1 || len(profiles) != 1 {
		return nil, nil, errors.New("want one extender and one profile")
	}
	extender, _ = extenders[0].(map[string]any)
	profile, _ = profiles[0].(map[string]any)
	return extender, profile, nil
}

// resourcesFit is the plugin that counts what pods ask for.
const resourcesFit = "NodeResourcesFit"

// IgnoreResources has a profile ignore resources as kube-scheduler itself does it for
// those of its extenders: through the arguments of NodeResourcesFit.
func IgnoreResources(profile map[string]any, names []string) error {
	if profile == nil {
		return errors.New("is empty")
	}
	plugins, _ := profile["pluginConfig"].([]any)
	for _, p := range plugins {
		if plugin, _ := p.(map[string]any); plugin["name"] == resourcesFit {
			return fmt.Errorf("pluginConfig: has arguments of %s already", resourcesFit)
		}
	}
	profile["pluginConfig"] = append(plugins, map[string]any{
		"name": resourcesFit,
		"args": map[string]any{"ignoredResources": names},
	})
	return nil
}
