package quality

import (
	"os"
	"slices"
	"strings"
	"testing"

	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"
)

func TestSchedulerConfigSendsAllPods(t *testing.T) {
	example, err := os.ReadFile("../../examples/kube-scheduler.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := schedulerConfig(example)
	if err != nil {
		t.Fatal(err)
	}
	var before, after configv1.KubeSchedulerConfiguration
	for from, into := range map[string]*configv1.KubeSchedulerConfiguration{string(example): &before, string(text): &after} {
		if err := yaml.UnmarshalStrict([]byte(from), into); err != nil {
			t.Fatal(err)
		}
	}
	if e := after.Extenders[0]; len(e.ManagedResources) != 0 || e.BindVerb != "bind" || e.PrioritizeVerb != "score" {
		t.Errorf("extender: %+v", e)
	}
	if after.PercentageOfNodesToScore != nil || after.Profiles[0].PercentageOfNodesToScore != nil {
		t.Error("the sample is not kube-scheduler's own")
	}
	if len(after.Profiles[0].PluginConfig) != len(before.Profiles[0].PluginConfig)+1 {
		t.Errorf("plugins: %+v", after.Profiles[0].PluginConfig)
	}
	var args configv1.NodeResourcesFitArgs
	for _, p := range after.Profiles[0].PluginConfig {
		if p.Name == "NodeResourcesFit" {
			if err := yaml.UnmarshalStrict(p.Args.Raw, &args); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, m := range before.Extenders[0].ManagedResources {
		if !slices.Contains(args.IgnoredResources, m.Name) {
			t.Errorf("%s would be counted", m.Name)
		}
	}
}

func TestSchedulerConfigRefuses(t *testing.T) {
	const one = "profiles: [{schedulerName: s}]\n"
	for name, tc := range map[string]struct{ example, want string }{
		"no extender":         {one, "want one extender"},
		"no profile":          {"extenders: [{}]", "want one extender and one profile"},
		"nothing managed":     {one + "extenders: [{}]", "managedResources: there are none"},
		"something counted":   {one + "extenders: [{managedResources: [{name: a/b, ignoredByScheduler: true}, {name: a/c}]}]", "managedResources[1]"},
		"a nameless resource": {one + "extenders: [{managedResources: [{ignoredByScheduler: true}]}]", "managedResources[0]"},
		"arguments there": {
			"profiles: [{pluginConfig: [{name: NodeResourcesFit}]}]\nextenders: [{managedResources: [{name: a/b, ignoredByScheduler: true}]}]",
			"has arguments of NodeResourcesFit",
		},
		"no YAML": {"a: [", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := schedulerConfig([]byte(tc.example)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want it to say %q", err, tc.want)
			}
		})
	}
}
