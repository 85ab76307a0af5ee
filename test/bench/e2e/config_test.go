package e2e

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"
)

func example(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("../../../examples/kube-scheduler.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func strictly(t *testing.T, config []byte) (c configv1.KubeSchedulerConfiguration) {
	t.Helper()
	if err := yaml.UnmarshalStrict(config, &c); err != nil {
		t.Fatalf("%v in\n%s", err, config)
	}
	return c
}

// TestWithoutExtenders: what is compared with ours differs from it in nothing but
// the extender.
func TestWithoutExtenders(t *testing.T) {
	derived, err := withoutExtenders(example(t))
	if err != nil {
		t.Fatal(err)
	}
	want, got := strictly(t, example(t)), strictly(t, derived)
	if len(got.Extenders) != 0 {
		t.Errorf("%d extenders are left", len(got.Extenders))
	}
	last := len(got.Profiles[0].PluginConfig) - 1
	added := got.Profiles[0].PluginConfig[last]
	got.Profiles[0].PluginConfig, want.Extenders = got.Profiles[0].PluginConfig[:last], nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the rest (-example +derived):\n%s", diff)
	}

	var args configv1.NodeResourcesFitArgs
	if err := yaml.UnmarshalStrict(added.Args.Raw, &args); err != nil {
		t.Fatalf("arguments %s: %v", added.Args.Raw, err)
	}
	ignored := map[string]bool{}
	for _, name := range args.IgnoredResources {
		ignored[name] = true
	}
	managed := map[string]bool{}
	for _, r := range strictly(t, example(t)).Extenders[0].ManagedResources {
		managed[r.Name] = true
	}
	if diff := cmp.Diff(managed, ignored); diff != "" || added.Name != "NodeResourcesFit" {
		t.Errorf("%s ignores (-managed +ignored):\n%s", added.Name, diff)
	}
}

// TestStock: kube-scheduler out of the box differs in its plugins alone.
func TestStock(t *testing.T) {
	derived, err := stock(example(t))
	if err != nil {
		t.Fatal(err)
	}
	want, got := strictly(t, example(t)), strictly(t, derived)
	if p := &got.Profiles[0]; p.Plugins != nil || p.PluginConfig != nil {
		t.Errorf("plugins %v, arguments %v", p.Plugins, p.PluginConfig)
	}
	want.Profiles[0].Plugins, want.Profiles[0].PluginConfig = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the rest (-example +derived):\n%s", diff)
	}
}

func TestAlone(t *testing.T) {
	derived, err := alone(example(t))
	if err != nil {
		t.Fatal(err)
	}
	want, got := strictly(t, example(t)), strictly(t, derived)
	if e := got.LeaderElection.LeaderElect; e == nil || *e {
		t.Error("leader election is not off")
	}
	want.LeaderElection = got.LeaderElection
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the rest (-example +derived):\n%s", diff)
	}
	if got, err := alone([]byte("[")); err == nil {
		t.Errorf("alone = %s, want an error", got)
	}
}

func TestWithoutExtendersTakesOnlyWhatIsIgnored(t *testing.T) {
	derived, err := withoutExtenders([]byte(`
profiles: [{schedulerName: a}, {schedulerName: b, pluginConfig: [{name: Other, args: {x: 1}}]}]
extenders:
- managedResources: [{name: e.io/a, ignoredByScheduler: true}, {name: e.io/counted}]
- managedResources: [{name: e.io/b, ignoredByScheduler: true}]
`))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"profiles":[
		{"schedulerName":"a","pluginConfig":[{"name":"NodeResourcesFit","args":{"ignoredResources":["e.io/a","e.io/b"]}}]},
		{"schedulerName":"b","pluginConfig":[{"name":"Other","args":{"x":1}},{"name":"NodeResourcesFit","args":{"ignoredResources":["e.io/a","e.io/b"]}}]}]}`
	var got, wanted any
	if err := yaml.Unmarshal(derived, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestWithoutExtendersRefuses(t *testing.T) {
	tests := map[string]string{
		"no YAML":              "profiles: [",
		"an unknown field":     "profiles: [{schedulerName: a}]\nextenders: [{scoreVerb: s}]",
		"no profile":           "extenders: []",
		"an empty profile":     "profiles: [null]",
		"the arguments in use": "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {}}]}]",
	}
	for name, config := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := withoutExtenders([]byte(config)); err == nil {
				t.Errorf("withoutExtenders = %s, want an error", got)
			}
		})
	}
}
