package e2e

import (
	"errors"
	"fmt"

	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"heteroflow.io/heteroflow/test/cluster"
)

// alone has kube-scheduler go to work without a Lease: on a machine that others
// keep busy it would lose it, and end, in the middle of a round.
func alone(config []byte) ([]byte, error) {
	return cluster.EditSchedulerConfig(config, func(raw map[string]any) error {
		cluster.WithoutLease(raw)
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
	return cluster.EditSchedulerConfig(config, func(raw map[string]any) error {
		delete(raw, "extenders")
		profiles, _ := raw["profiles"].([]any)
		if len(profiles) == 0 {
			return errors.New("profiles: there is none")
		}
		for i, p := range profiles {
			profile, _ := p.(map[string]any)
			if err := cluster.IgnoreResources(profile, ignoredResources(&typed)); err != nil {
				return fmt.Errorf("profiles[%d]: %w", i, err)
			}
		}
		return nil
	})
}

// stock also takes away what the example changes of kube-scheduler's plugins: what
// is left schedules as kube-scheduler does out of the box.
func stock(config []byte) ([]byte, error) {
	return cluster.EditSchedulerConfig(config, func(raw map[string]any) error {
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
