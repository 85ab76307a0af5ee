package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// The rights in the example are those that the program uses, and no more: each
// further one is one more that a break-in would have.
func TestRightsAreTheFewest(t *testing.T) {
	text, err := os.ReadFile("../../examples/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{} // "group/resource" -> verbs
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal(document, &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind != "ClusterRole" {
			continue // kube-scheduler's own
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					got[group+"/"+resource] = append(got[group+"/"+resource], rule.Verbs...)
				}
			}
		}
	}
	want := map[string][]string{
		"/nodes":        {"get", "list", "watch"},
		"/pods":         {"get", "list", "watch"},
		"/pods/binding": {"create"},
		"/pods/status":  {"patch"},
		"/events":       {"create", "patch"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resource -> verbs (-want +got):\n%s", diff)
	}
}
