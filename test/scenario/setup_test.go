package scenario

import (
	"slices"
	"strings"
	"testing"

	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"heteroflow.io/heteroflow/pkg/codec"
)

func TestSetupsAreValid(t *testing.T) {
	for _, s := range Setups() {
		if s.policy == "" {
			continue
		}
		settings, err := codec.Policy([]byte(s.policy))
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if s.stock && settings.Shortlist != 0 {
			t.Errorf("%s: a shortlist of %d chooses among the nodes that fit", s.Name, settings.Shortlist)
		}
	}
}

func TestChoose(t *testing.T) {
	got, err := Choose([]string{"default", "blind"})
	if err != nil || len(got) != 2 || got[0].Name != "blind" || got[1].Name != "default" {
		t.Errorf("chose %v, %v", got, err)
	}
	for _, names := range [][]string{{"stock", "stok"}, {"stock", "stock"}, {""}} {
		if _, err := Choose(names); err == nil {
			t.Errorf("%v: no complaint", names)
		}
	}
}

const example = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true}
podMaxBackoffSeconds: 10
profiles:
- schedulerName: heteroflow-scheduler
  plugins:
    postFilter: {disabled: [{name: "*"}]}
    score: {disabled: [{name: NodeResourcesFit}]}
  pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List}}]
extenders:
- {urlPrefix: "http://127.0.0.1:1", filterVerb: filter, prioritizeVerb: score, bindVerb: bind}
`

func TestSchedulerConfig(t *testing.T) {
	for _, s := range Setups() {
		text, err := s.schedulerConfig([]byte(example))
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		var config configv1.KubeSchedulerConfiguration
		if err := yaml.UnmarshalStrict(text, &config); err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		e, p := config.Extenders[0], config.Profiles[0]
		if e.FilterVerb != "filter" || e.BindVerb != "bind" || *config.LeaderElection.LeaderElect || *config.PodMaxBackoffSeconds != 10 {
			t.Errorf("%s: extender %+v, election %v", s.Name, e, *config.LeaderElection.LeaderElect)
		}
		if len(p.Plugins.PostFilter.Disabled) != 1 {
			t.Errorf("%s: kube-scheduler preempts", s.Name)
		}
		rated := e.PrioritizeVerb == "score" && slices.Contains(p.Plugins.Score.Disabled, configv1.Plugin{Name: "NodeResourcesFit"})
		if rated == s.stock || s.stock && len(p.Plugins.Score.Disabled)+len(p.PluginConfig) > 0 {
			t.Errorf("%s: rates by %q, without %v, with %v", s.Name, e.PrioritizeVerb, p.Plugins.Score.Disabled, p.PluginConfig)
		}
	}
}

// An example that has changed is not to be taken for another configuration.
func TestSchedulerConfigKnowsTheExample(t *testing.T) {
	stock := Setup{Name: "stock", stock: true}
	for _, part := range []string{"prioritizeVerb: score,", "    score: {disabled: [{name: NodeResourcesFit}]}\n", "  pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List}}]\n"} {
		if _, err := stock.schedulerConfig([]byte(strings.Replace(example, part, "", 1))); err == nil {
			t.Errorf("without %q: no complaint", part)
		}
	}
	if _, err := stock.schedulerConfig([]byte("{")); err == nil {
		t.Error("no YAML: no complaint")
	}
}
