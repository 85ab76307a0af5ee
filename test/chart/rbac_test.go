package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// What the scheduler may do is written down once more, so that a right is not
// added in passing. That none is missing is seen where it runs with these alone.
func TestRightsAreTheFewest(t *testing.T) {
	secrets := map[string][]string{
		"ns: /secrets": {"create"},
		"ns: /secrets=heteroflow-scheduler-certs":                                 {"get", "update"},
		"admissionregistration.k8s.io/mutatingwebhookconfigurations=heteroflow":   {"get", "patch"},
		"admissionregistration.k8s.io/validatingwebhookconfigurations=heteroflow": {"get", "patch"},
	}
	scales := map[string][]string{ // where a service may be put to sleep
		"apps/deployments/scale": {"get", "update"}, "apps/replicasets/scale": {"get", "update"}, "apps/statefulsets/scale": {"get", "update"},
		"autoscaling/horizontalpodautoscalers": {"list", "patch"},
		"keda.sh/scaledobjects":                {"list", "patch"},
	}
	always := map[string][]string{
		"/nodes":                           {"get", "list", "watch"},
		"/pods":                            {"get", "list", "watch", "patch", "delete", "create"},
		"batch/jobs":                       {"get", "patch"},
		"heteroflow.io/preemptions":        {"get", "list", "watch", "create", "update", "patch", "delete"},
		"heteroflow.io/preemptions/status": {"update", "patch"},
		"heteroflow.io/taskgroups":         {"get", "list", "watch", "patch"},
		"heteroflow.io/taskgroups/status":  {"update"},
		"/pods/binding":                    {"create"},
		"/pods/status":                     {"patch"},
		"/pods/eviction":                   {"create"},
		"/events":                          {"create", "patch"},
		"heteroflow.io/epochs":             {"create"},
		"heteroflow.io/epochs=scheduler":   {"get", "update"},
		"heteroflow.io/tenants":            {"list", "watch"},
		"heteroflow.io/tenants/status":     {"update"},
		"/persistentvolumeclaims":          {"get"},
		"/persistentvolumes":               {"get"},
		"/namespaces":                      {"list", "watch"},
		"/resourcequotas":                  {"list", "watch"},
		"ns: coordination.k8s.io/leases":   {"create"},
		"ns: coordination.k8s.io/leases=heteroflow-scheduler": {"get", "update"},
	}
	for _, set := range all {
		t.Run(set, func(t *testing.T) {
			want := map[string][]string{}
			for key, verbs := range always {
				want[key] = verbs
			}
			if set == "bare" { // where pods without an owner are left alone
				want["/pods"] = []string{"get", "list", "watch", "patch", "delete"}
			}
			if set != "bare" {
				maps.Copy(want, scales)
			}
			for key, verbs := range secrets {
				if own := set == "default" || set == "bare" && strings.HasPrefix(key, "ns: "); own {
					want[key] = verbs
				}
			}
			if diff := cmp.Diff(want, rights(t, objects(t, rendered(t, "elsewhere", set), "rbac.yaml"))); diff != "" {
				t.Errorf("rights (-want +got):\n%s", diff)
			}
		})
	}
}

// rights are the verbs of each "group/resource=name" of all roles.
func rights(t *testing.T, all []object) map[string][]string {
	t.Helper()
	got := map[string][]string{}
	for _, o := range all {
		var role rbacv1.Role // a ClusterRole has the same rules
		switch o.Kind {
		case "ClusterRole":
			var whole rbacv1.ClusterRole
			o.into(t, &whole)
			role.Rules = whole.Rules
		case "Role":
			o.into(t, &role)
		}
		for _, rule := range role.Rules {
			for _, key := range keys(rule) {
				if role.Namespace != "" {
					key = "ns: " + key
				}
				got[key] = slices.Concat(got[key], rule.Verbs)
			}
		}
	}
	return got
}

func keys(rule rbacv1.PolicyRule) (found []string) {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if len(rule.ResourceNames) == 0 {
				found = append(found, group+"/"+resource)
			}
			for _, name := range rule.ResourceNames {
				found = append(found, group+"/"+resource+"="+name)
			}
		}
	}
	return found
}

// Who may edit what is in a namespace may edit its TaskGroups, and nobody but us their
// status, by which cards are kept from others.
func TestUsersRights(t *testing.T) {
	want := map[string][]string{"heteroflow.io/taskgroups": {"create", "update", "patch", "delete", "deletecollection", "get", "list", "watch"}}
	if diff := cmp.Diff(want, rights(t, objects(t, rendered(t, "elsewhere", "default"), "rbac-users.yaml"))); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
}

// Every rule says what it is for.
func TestRightsHaveReasons(t *testing.T) {
	for _, file := range []string{"rbac.yaml", "rbac-kube-scheduler.yaml", "rbac-users.yaml"} {
		lines := strings.Split(read(t, folder+"/templates/"+file), "\n")
		for i, line := range lines {
			if !strings.HasPrefix(line, "- apiGroups:") {
				continue
			}
			creation := strings.Contains(strings.Join(lines[max(i-3, 0):i], "\n"), "verbs: [create]") // the reason is above that
			if !creation && !strings.HasPrefix(lines[i-1], "#") && !strings.HasPrefix(lines[i-1], "rules:") {
				t.Errorf("%s:%d: a rule without a reason", file, i+1)
			}
		}
	}
}

// Both containers are one account, and nobody else is given anything; nor is it
// given a role besides its own and those that kube-scheduler runs with anywhere.
func TestBindingsNameTheAccount(t *testing.T) {
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "heteroflow-scheduler", Namespace: "elsewhere"}}
	var roles []string
	for _, o := range objects(t, rendered(t, "elsewhere", "default"), "") {
		if o.Kind != "RoleBinding" && o.Kind != "ClusterRoleBinding" {
			continue
		}
		var binding rbacv1.RoleBinding // a ClusterRoleBinding has the same fields
		o.into(t, &binding)
		if diff := cmp.Diff(want, binding.Subjects); diff != "" {
			t.Errorf("%v (-want +got):\n%s", o, diff)
		}
		roles = append(roles, o.Kind+" "+binding.RoleRef.Kind+" "+binding.RoleRef.Name)
	}
	slices.Sort(roles)
	if diff := cmp.Diff([]string{
		"ClusterRoleBinding ClusterRole heteroflow-scheduler",
		"ClusterRoleBinding ClusterRole system:kube-scheduler",
		"ClusterRoleBinding ClusterRole system:volume-scheduler",
		"RoleBinding Role extension-apiserver-authentication-reader",
		"RoleBinding Role heteroflow-kube-scheduler",
		"RoleBinding Role heteroflow-scheduler",
	}, roles); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
}

// kube-scheduler has a Lease of its own, and no more that is not the cluster's.
func TestRightsOfKubeScheduler(t *testing.T) {
	want := map[string][]string{
		"ns: coordination.k8s.io/leases":                           {"create"},
		"ns: coordination.k8s.io/leases=heteroflow-kube-scheduler": {"get", "update"},
	}
	if diff := cmp.Diff(want, rights(t, objects(t, rendered(t, "elsewhere", "default"), "rbac-kube-scheduler.yaml"))); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
}
