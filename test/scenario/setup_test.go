package scenario

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	component "k8s.io/component-base/config/v1alpha1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"heteroflow.io/heteroflow/pkg/codec"
)

// TestPoliciesAreRead: as the extender reads them, which would not start otherwise.
func TestPoliciesAreRead(t *testing.T) {
	for _, s := range Setups() {
		if s.policy == "" {
			continue
		}
		if _, err := codec.Policy([]byte(s.policy)); err != nil {
			t.Errorf("%s: %v in\n%s", s.Name, err, s.policy)
		}
	}
}

func TestSchedulerConfig(t *testing.T) {
	example, err := os.ReadFile("../../examples/kube-scheduler.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read := func(b []byte) (c configv1.KubeSchedulerConfiguration) {
		t.Helper()
		if err := yaml.UnmarshalStrict(b, &c); err != nil {
			t.Fatalf("%v in\n%s", err, b)
		}
		c.LeaderElection = component.LeaderElectionConfiguration{} // that differs in all of them
		return c
	}
	for _, s := range Setups() {
		b, err := s.schedulerConfig(example)
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		want := read(example)
		if s.stock { // nothing but who rates nodes differs
			want.Extenders[0].PrioritizeVerb = ""
			want.Profiles[0].PluginConfig = nil
			want.Profiles[0].Plugins.Score = configv1.PluginSet{}
		}
		if every := int32(100); s.all {
			want.PercentageOfNodesToScore = &every
		}
		if diff := cmp.Diff(want, read(b)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.Name, diff)
		}
	}
	if _, err := Setups()[0].schedulerConfig([]byte("extenders: [{}]\nprofiles: [{}]")); err == nil {
		t.Error("a configuration in which nothing is to be taken out is taken as one in which something was")
	}
}

func TestChoose(t *testing.T) {
	chosen, err := Choose([]string{"default", "stock"})
	if err != nil || len(chosen) != 2 || chosen[0].Name != "stock" || chosen[1].Name != "default" {
		t.Errorf("Choose = %+v, %v", chosen, err)
	}
	for _, names := range [][]string{{"stock", "stock"}, {"none"}, {""}} {
		if chosen, err := Choose(names); err == nil {
			t.Errorf("Choose(%q) = %+v", names, chosen)
		}
	}
}
