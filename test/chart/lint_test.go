package main

import (
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"sigs.k8s.io/yaml"
)

func TestLint(t *testing.T) {
	for _, set := range all {
		t.Run(set, func(t *testing.T) {
			given := map[string]any{}
			if err := yaml.Unmarshal(values(t, set), &given); err != nil {
				t.Fatal(err)
			}
			version, err := kubernetes()
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range lint.RunAll(folder, given, "elsewhere", lint.WithKubeVersion(&version)).Messages {
				if m.Severity > support.InfoSev { // there is no icon
					t.Error(m)
				}
			}
		})
	}
}
