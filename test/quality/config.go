package quality

import (
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"
)

// schedulerConfig is kube-scheduler's, made of the example, which stays as it is but for
// this: all pods are sent to the extender, those without cards too. For that it manages
// no resources; those that kube-scheduler was to ignore for its sake are then ignored by
// name. And it goes to work without a Lease, which it would lose on a busy machine.
func schedulerConfig(example []byte) ([]byte, error) {
	config := map[string]any{}
	if err := yaml.Unmarshal(example, &config); err != nil {
		return nil, err
	}
	config["leaderElection"] = map[string]any{"leaderElect": false}
	if err := sendAll(config); err != nil {
		return nil, fmt.Errorf("examples/kube-scheduler.yaml: %w", err)
	}
	return yaml.Marshal(config)
}

func sendAll(config map[string]any) error {
	extenders, _ := config["extenders"].([]any)
	profiles, _ := config["profiles"].([]any)
	if len(extenders) != 1 || len(profiles) != 1 {
		return errors.New("want one extender and one profile")
	}
	extender, _ := extenders[0].(map[string]any)
	profile, _ := profiles[0].(map[string]any)
	ignored, err := ignoredResources(extender)
	if err != nil {
		return err
	}
	plugins, _ := profile["pluginConfig"].([]any)
	for _, p := range plugins {
		if plugin, _ := p.(map[string]any); plugin["name"] == resourcesFit {
			return fmt.Errorf("pluginConfig: has arguments of %s already", resourcesFit)
		}
	}
	delete(extender, "managedResources")
	profile["pluginConfig"] = append(plugins, map[string]any{"name": resourcesFit, "args": map[string]any{"ignoredResources": ignored}})
	return nil
}

// resourcesFit is the plugin that counts what pods ask for.
const resourcesFit = "NodeResourcesFit"

func ignoredResources(extender map[string]any) (names []any, err error) {
	managed, _ := extender["managedResources"].([]any)
	if len(managed) == 0 {
		return nil, errors.New("extenders[0].managedResources: there are none")
	}
	for i, m := range managed {
		resource, _ := m.(map[string]any)
		if resource["name"] == nil || resource["ignoredByScheduler"] != true {
			return nil, fmt.Errorf("extenders[0].managedResources[%d]: want a name that is ignoredByScheduler", i)
		}
		names = append(names, resource["name"])
	}
	return names, nil
}
