package quality

import (
	"errors"
	"fmt"

	"heteroflow.io/heteroflow/test/cluster"
)

// schedulerConfig is kube-scheduler's, made of the example, which stays as it is but for
// this: all pods are sent to the extender, those without cards too. For that it manages
// no resources; those that kube-scheduler was to ignore for its sake are then ignored by
// name. And it goes to work without a Lease, which it would lose on a busy machine.
func schedulerConfig(example []byte) ([]byte, error) {
	return cluster.EditSchedulerConfig(example, func(raw map[string]any) error {
		cluster.WithoutLease(raw)
		if err := sendAll(raw); err != nil {
			return fmt.Errorf("examples/kube-scheduler.yaml: %w", err)
		}
		return nil
	})
}

func sendAll(raw map[string]any) error {
	extender, profile, err := cluster.OnlyProfile(raw)
	if err != nil {
		return err
	}
	ignored, err := ignoredResources(extender)
	if err != nil {
		return err
	}
	delete(extender, "managedResources")
	return cluster.IgnoreResources(profile, ignored)
}

func ignoredResources(extender map[string]any) (names []string, err error) {
	managed, _ := extender["managedResources"].([]any)
	if len(managed) == 0 {
		return nil, errors.New("extenders[0].managedResources: there are none")
	}
	for i, m := range managed {
		resource, _ := m.(map[string]any)
		name, _ := resource["name"].(string)
		if name == "" || resource["ignoredByScheduler"] != true {
			return nil, fmt.Errorf("extenders[0].managedResources[%d]: want a name that is ignoredByScheduler", i)
		}
		names = append(names, name)
	}
	return names, nil
}
