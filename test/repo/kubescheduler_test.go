package repo

import (
	"testing"

	v1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"
)

// With any PostFilter plugin left kube-scheduler keeps a nomination that has come
// to nothing, and others off what it would take.
func TestSchedulerConfigurationHasNoPostFilter(t *testing.T) {
	var cfg v1.KubeSchedulerConfiguration
	if err := yaml.UnmarshalStrict([]byte(read(t, "examples/kube-scheduler.yaml")), &cfg); err != nil {
		t.Fatal(err)
	}
	if len(cfg.Profiles) == 0 {
		t.Fatal("there is no profile")
	}
	for _, p := range cfg.Profiles {
		if p.Plugins == nil || len(p.Plugins.PostFilter.Enabled) > 0 || len(p.Plugins.PostFilter.Disabled) != 1 || p.Plugins.PostFilter.Disabled[0].Name != "*" {
			t.Errorf("profile %s: postFilter must disable \"*\" and enable nothing", *p.SchedulerName)
		}
	}
}
