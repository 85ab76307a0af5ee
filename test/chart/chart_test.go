package main

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	registration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// The namespace is the release's: nothing is left in the one that the
// documentation uses, nor without one. Objects of the whole cluster are listed,
// since a second release would fight over them.
func TestObjectsAreInTheirPlace(t *testing.T) {
	for _, set := range all {
		m := rendered(t, "elsewhere", set)
		for name, text := range m {
			if strings.Contains(text, "heteroflow-system") {
				t.Errorf("%s, %s: names heteroflow-system", set, name)
			}
		}
		for _, o := range objects(t, m, "") {
			want := "elsewhere"
			switch {
			case slices.Contains([]string{"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "PriorityClass"}, o.Kind),
				strings.HasPrefix(o.Kind, "ValidatingAdmission"), strings.HasSuffix(o.Kind, "WebhookConfiguration"):
				want = ""
			case o.Metadata.Name == "heteroflow:authentication-reader":
				want = "kube-system"
			}
			if o.Metadata.Namespace != want {
				t.Errorf("%s: %v is in %q, want %q", set, o, o.Metadata.Namespace, want)
			}
			if o.Kind != "CustomResourceDefinition" && o.Kind != "PriorityClass" && o.Metadata.Labels["app.kubernetes.io/part-of"] != "heteroflow" {
				t.Errorf("%s: %v has labels %v", set, o, o.Metadata.Labels)
			}
		}
	}
}

// What is switched off is not there, and what is switched on is.
func TestSwitches(t *testing.T) {
	kinds := func(set string) []string {
		found := map[string]bool{}
		for _, o := range objects(t, rendered(t, "elsewhere", set), "") {
			found[o.Kind] = true
		}
		switchable := []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "PriorityClass",
			"PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor", "Certificate", "Issuer"}
		return slices.DeleteFunc(switchable, func(kind string) bool { return !found[kind] })
	}
	for set, want := range map[string][]string{
		"bare": {"ValidatingAdmissionPolicy"}, // without the fence no replica decides
		"default": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "PriorityClass",
			"PodDisruptionBudget", "NetworkPolicy"},
		"cert-manager": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "PriorityClass",
			"PodDisruptionBudget", "NetworkPolicy", "Certificate", "Issuer"},
		"full": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy",
			"PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor", "Certificate", "Issuer"},
	} {
		if diff := cmp.Diff(want, kinds(set)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", set, diff)
		}
	}
}

// kube-scheduler gets the file that users read, but for what is the place's.
func TestKubeSchedulerConfigurationIsTheExample(t *testing.T) {
	example := read(t, "../../examples/kube-scheduler.yaml")
	if diff := cmp.Diff(example, read(t, folder+"/files/kube-scheduler.yaml")); diff != "" {
		t.Fatalf("the chart's copy is out of date, run `make generate` (-want +got):\n%s", diff)
	}
	var config corev1.ConfigMap
	one(t, rendered(t, "elsewhere", "default"), "ConfigMap", "heteroflow-scheduler").into(t, &config)
	var want, got map[string]any
	for text, into := range map[string]*map[string]any{example: &want, config.Data["kube-scheduler.yaml"]: &got} {
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	delete(want["clientConnection"].(map[string]any), "kubeconfig")
	want["leaderElection"].(map[string]any)["resourceNamespace"] = "elsewhere"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestSchedulerPolicyIsGivenAsAFile(t *testing.T) {
	var config corev1.ConfigMap
	m := rendered(t, "elsewhere", "full")
	one(t, m, "ConfigMap", "heteroflow-scheduler").into(t, &config)
	const want = "apiVersion: heteroflow.io/v1alpha1\nkind: SchedulerPolicy\nmetadata: {name: default}\nspec:\n  memoryReserve:\n    fixedMiB: 0\n    percent: 7"
	if diff := cmp.Diff(want, strings.TrimSpace(config.Data["policy.yaml"])); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	d, scheduler, _ := deployed(t, m)
	if !slices.Contains(scheduler.Args, "--policy=/etc/heteroflow/policy.yaml") {
		t.Errorf("flags are %v", scheduler.Args)
	}
	other, _, _ := deployed(t, rendered(t, "elsewhere", "cert-manager"))
	const sum = "heteroflow.io/config"
	if sums := d.Spec.Template.Annotations[sum]; sums == "" || sums == other.Spec.Template.Annotations[sum] {
		t.Error("pods are not replaced when the configuration changes")
	}
}

// Nothing but the container beside it reaches the listener on which pods are bound.
func TestExtenderIsOnLoopback(t *testing.T) {
	for _, set := range all {
		m := rendered(t, "elsewhere", set)
		_, scheduler, _ := deployed(t, m)
		host, port, err := net.SplitHostPort(flagOf(scheduler, "--extender-address"))
		if err != nil || !net.ParseIP(host).IsLoopback() {
			t.Errorf("%s: the extender is at %s:%s (%v)", set, host, port, err)
		}
		for _, o := range objects(t, m, "") {
			if (o.Kind == "Service" || o.Kind == "NetworkPolicy") && strings.Contains(string(o.text), port) {
				t.Errorf("%s: %v names port %s", set, o, port)
			}
		}
		if d, _, _ := deployed(t, m); d.Spec.Template.Spec.HostNetwork {
			t.Errorf("%s: loopback is the node's", set)
		}
	}
}

// flagOf returns the value of a container's flag, "" where it has none.
func flagOf(c corev1.Container, name string) string {
	for _, arg := range c.Args {
		if value, ok := strings.CutPrefix(arg, name+"="); ok {
			return value
		}
	}
	return ""
}

// A Service leads to a port that a container has, of the Deployment's pods.
func TestServicesLeadSomewhere(t *testing.T) {
	for _, set := range all {
		m := rendered(t, "elsewhere", set)
		d, scheduler, kubeScheduler := deployed(t, m)
		ports := map[string]int32{}
		for _, p := range slices.Concat(scheduler.Ports, kubeScheduler.Ports) {
			ports[p.Name] = p.ContainerPort
		}
		for _, o := range objects(t, m, "services.yaml") {
			var s corev1.Service
			o.into(t, &s)
			for _, p := range s.Spec.Ports {
				if ports[p.TargetPort.StrVal] == 0 {
					t.Errorf("%s: %v: no container has port %s", set, o, p.TargetPort.String())
				}
			}
			if diff := cmp.Diff(d.Spec.Selector.MatchLabels, s.Spec.Selector); diff != "" {
				t.Errorf("%s: %v selects other pods (-Deployment +Service):\n%s", set, o, diff)
			}
		}
		for key, value := range d.Spec.Selector.MatchLabels {
			if d.Spec.Template.Labels[key] != value {
				t.Errorf("%s: pods have label %s=%q, the selector %q", set, key, d.Spec.Template.Labels[key], value)
			}
		}
		if _, port, err := net.SplitHostPort(flagOf(scheduler, "--metrics-address")); err != nil || port != strconv.Itoa(int(ports["metrics"])) {
			t.Errorf("%s: metrics are at port %s, the container says %d", set, port, ports["metrics"])
		}
	}
}

// The webhooks call the Service, under the name that the certificate is for.
func TestWebhooksCallTheService(t *testing.T) {
	for _, set := range []string{"default", "cert-manager", "full"} {
		m := rendered(t, "elsewhere", set)
		var service corev1.Service
		one(t, m, "Service", "heteroflow-scheduler").into(t, &service)
		var mutating registration.MutatingWebhookConfiguration
		var validating registration.ValidatingWebhookConfiguration
		one(t, m, "MutatingWebhookConfiguration", "heteroflow").into(t, &mutating)
		one(t, m, "ValidatingWebhookConfiguration", "heteroflow").into(t, &validating)
		for path, call := range map[string]registration.WebhookClientConfig{
			"/webhook/mutate": mutating.Webhooks[0].ClientConfig, "/webhook/validate": validating.Webhooks[0].ClientConfig,
		} {
			port := service.Spec.Ports[0].Port
			want := registration.WebhookClientConfig{Service: &registration.ServiceReference{Namespace: "elsewhere", Name: service.Name, Path: &path, Port: &port}}
			if diff := cmp.Diff(want, call); diff != "" {
				t.Errorf("%s (-want +got):\n%s", set, diff)
			}
		}
		if diff := cmp.Diff(mutating.Webhooks[0].NamespaceSelector, validating.Webhooks[0].NamespaceSelector); diff != "" {
			t.Errorf("%s: the webhooks look at different namespaces:\n%s", set, diff)
		}
		for _, excluded := range []string{"kube-system", "elsewhere"} {
			if !slices.Contains(mutating.Webhooks[0].NamespaceSelector.MatchExpressions[0].Values, excluded) {
				t.Errorf("%s: pods of %s wait for us", set, excluded)
			}
		}
		if len(mutating.Webhooks[0].MatchConditions) != 1 || len(validating.Webhooks[0].MatchConditions) != 2 {
			t.Errorf("%s: all pods are sent", set)
		}
	}
}

// What a container mounts is there, and what the flags read is mounted.
func TestCertificatesArePlaced(t *testing.T) {
	for _, set := range all {
		d, scheduler, _ := deployed(t, rendered(t, "elsewhere", set))
		volumes := map[string]bool{}
		for _, v := range d.Spec.Template.Spec.Volumes {
			volumes[v.Name] = true
		}
		var places []string
		for _, v := range scheduler.VolumeMounts {
			places = append(places, v.MountPath+"/")
			if !volumes[v.Name] {
				t.Errorf("%s: there is no volume %s", set, v.Name)
			}
		}
		for _, arg := range scheduler.Args {
			_, value, _ := strings.Cut(arg, "=")
			if strings.HasPrefix(value, "/") && !slices.ContainsFunc(places, func(at string) bool { return strings.HasPrefix(value, at) }) {
				t.Errorf("%s: nothing is mounted where %s reads", set, arg)
			}
		}
		own, files := flagOf(scheduler, "--certificates-secret") != "", flagOf(scheduler, "--replica-cert-file") != ""
		if want := set == "default" || set == "bare"; own != want || files == want {
			t.Errorf("%s: certificates are made by the scheduler: %t; are read from files: %t", set, own, files)
		}
	}
}

func TestPodsAreHardened(t *testing.T) {
	d, scheduler, kubeScheduler := deployed(t, rendered(t, "elsewhere", "default"))
	pod := d.Spec.Template.Spec
	if s := pod.SecurityContext; !*s.RunAsNonRoot || *s.RunAsUser == 0 || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("security context %v", s)
	}
	for _, c := range []corev1.Container{scheduler, kubeScheduler} {
		if s := c.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("%s: security context %v", c.Name, s)
		}
		if c.LivenessProbe == nil || c.Resources.Requests.Memory().IsZero() {
			t.Errorf("%s has no liveness probe or asks for no memory", c.Name)
		}
	}
	if pod.PriorityClassName != "system-cluster-critical" || *d.Spec.Replicas != 2 || pod.Affinity.PodAntiAffinity == nil {
		t.Errorf("class %q, %d replicas, affinity %v", pod.PriorityClassName, *d.Spec.Replicas, pod.Affinity)
	}
}

// A pod that is told to end is still there for webhooks until the API server knows,
// and then has the time that a bind may take and some more.
func TestTimesFit(t *testing.T) {
	const reserve = 15
	for set, bind := range map[string]int64{"default": 20, "full": 12} {
		d, scheduler, _ := deployed(t, rendered(t, "elsewhere", set))
		if got := flagOf(scheduler, "--bind-timeout"); got != fmt.Sprintf("%ds", bind) {
			t.Errorf("%s: a bind takes %s", set, got)
		}
		wait := scheduler.Lifecycle.PreStop.Sleep.Seconds
		if grace := *d.Spec.Template.Spec.TerminationGracePeriodSeconds; wait < 5 || grace < wait+bind+reserve {
			t.Errorf("%s: the end takes %d s, %d of them for the API server", set, grace, wait)
		}
	}
}

// kube-scheduler is the cluster's version, without what a vendor appends, and is
// given only a feature gate that its version knows.
func TestKubeSchedulerVersion(t *testing.T) {
	const gate = "SchedulerPopFromBackoffQ=false"
	for set, want := range map[string]struct{ image, gate string }{
		"default": {"registry.k8s.io/kube-scheduler:v1.37.2", gate},
		"full":    {"registry.example/kube-scheduler:v1.32.5", ""},
	} {
		_, _, k := deployed(t, rendered(t, "elsewhere", set))
		if k.Image != want.image || flagOf(k, "--feature-gates") != want.gate {
			t.Errorf("%s: image %s with %q, want %v", set, k.Image, flagOf(k, "--feature-gates"), want)
		}
	}
	_, s, _ := deployed(t, rendered(t, "elsewhere", "full"))
	if !strings.HasPrefix(s.Image, "registry.example/heteroflow@sha256:") {
		t.Errorf("the digest does not go before the tag: %s", s.Image)
	}
}

// The port of the replicas is open to replicas alone, also in the NetworkPolicy.
func TestNetworkPolicyKeepsReplicasApart(t *testing.T) {
	for _, set := range []string{"default", "full"} {
		m := rendered(t, "elsewhere", set)
		var policy networking.NetworkPolicy
		one(t, m, "NetworkPolicy", "heteroflow-scheduler").into(t, &policy)
		d, scheduler, kubeScheduler := deployed(t, m)
		open := map[int32][]networking.NetworkPolicyPeer{}
		for _, rule := range policy.Spec.Ingress {
			for _, p := range rule.Ports {
				open[p.Port.IntVal] = rule.From
			}
		}
		for _, p := range slices.Concat(scheduler.Ports, kubeScheduler.Ports) {
			peers, found := open[p.ContainerPort]
			if delete(open, p.ContainerPort); !found {
				t.Errorf("%s: nobody reaches port %d", set, p.ContainerPort)
			}
			if p.Name != "replicas" {
				continue
			}
			if len(peers) != 1 || peers[0].PodSelector == nil || peers[0].NamespaceSelector != nil {
				t.Fatalf("%s: replicas are reached by %v", set, peers)
			}
			if diff := cmp.Diff(d.Spec.Selector.MatchLabels, peers[0].PodSelector.MatchLabels); diff != "" {
				t.Errorf("%s: replicas are reached by others (-replicas +peers):\n%s", set, diff)
			}
		}
		if len(open) > 0 {
			t.Errorf("%s: ports without a container are open: %v", set, open)
		}
	}
}

func TestPrintNamesWhatThereIs(t *testing.T) {
	m := Manifests{"a.yaml": "kind: A\n", "b.yaml": "kind: B\n"}
	var text strings.Builder
	if err := m.print(&text, []string{"b.yaml", "a.yaml"}); err != nil || text.String() != "---\n# b.yaml\nkind: B\n---\n# a.yaml\nkind: A\n" {
		t.Errorf("printed %q (%v)", text.String(), err)
	}
	if err := m.print(&text, []string{"c.yaml"}); err == nil || !strings.Contains(err.Error(), "a.yaml, b.yaml") {
		t.Errorf("error %v", err)
	}
}

func TestRunRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"":                           "0 arguments",
		"-only x.yaml " + folder:     "x.yaml",
		"-values /nowhere " + folder: "/nowhere",
		"/nowhere":                   "/nowhere",
	} {
		var out strings.Builder
		if err := run(strings.Fields(args), &out); err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%q: error %v and output %q, want an error with %s", args, err, out.String(), want)
		}
	}
}
