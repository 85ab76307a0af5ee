package e2e

import (
	"errors"
	"fmt"

	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"
)

// resourcesFit is the plugin that counts what pods ask for.
const resourcesFit = "NodeResourcesFit"

// alone has kube-scheduler go to work without a Lease: on a machine that others
// keep busy it would lose it, and end, in the middle of a round.
func alone(config []byte) ([]byte, error) {
	return edit(config, func(raw map[string]any) error {
		raw["leaderElection"] = map[string]any{"leaderElect": false}
		return nil
	})
}

// withoutExtenders takes the extenders out of a configuration of kube-scheduler.
// It goes on not to count the resources that they had it ignore.
func withoutExtenders(config []byte) ([]byte, error) {
	var typed configv1.KubeSchedulerConfiguration
	if err := yaml.UnmarshalStrict(config, &typed); err != nil {
		return nil, err
	}
	return edit(config, func(raw map[string]any) error {
		delete(raw, "extenders")
		profiles, _ := raw["profiles"].([]any)
		if len(profiles) == 0 {
			return errors.New("profiles: there is none")
		}
		for i, p := range profiles {
			profile, _ := p.(map[string]any)
			if err := ignore(profile, ignoredResources(&typed)); err != nil {
				return fmt.Errorf("profiles[%d]: %w", i, err)
			}
		}
		return nil
	})
}

// stock also takes away what the example changes of kube-scheduler's plugins: what
// is left schedules as kube-scheduler does out of the box.
func stock(config []byte) ([]byte, error) {
	return edit(config, func(raw map[string]any) error {
		profiles, _ := raw["profiles"].([]any)
		for _, p := range profiles {
			if profile, _ := p.(map[string]any); profile != nil {
				delete(profile, "plugins")
				delete(profile, "pluginConfig")
			}
		}
		return nil
	})
}

// edit changes a configuration as it is written: its typed form would spell out
// fields that the example leaves to their defaults.
func edit(config []byte, change func(raw map[string]any) error) ([]byte, error) {
	raw := map[string]any{}
	if err := yaml.Unmarshal(config, &raw); err != nil {
		return nil, err
	}
	if err := change(raw); err != nil {
		return nil, err
	}
	return yaml.Marshal(raw)
}

// ignoredResources are those that kube-scheduler neither counts nor looks for.
func ignoredResources(config *configv1.KubeSchedulerConfiguration) []string {
	var names []string
	for i := range config.Extenders {
		for _, r := range config.Extenders[i].ManagedResources {
			if r.IgnoredByScheduler {
				names = append(names, r.Name)
			}
		}
	}
	return names
}

// ignore has a profile ignore resources as kube-scheduler itself does it for
// those of its extenders: through the arguments of NodeResourcesFit.
func ignore(profile map[string]any, names []string) error {
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
