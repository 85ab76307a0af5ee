package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// asked is where a probe looks.
func asked(p *corev1.Probe) corev1.HTTPGetAction {
	if p == nil || p.HTTPGet == nil {
		return corev1.HTTPGetAction{}
	}
	return *p.HTTPGet
}

// Probes ask what is answered. kube-scheduler lives as long as the scheduler
// beside it: alone it would keep its Lease and place nothing.
func TestProbesAskWhatIsAnswered(t *testing.T) {
	_, scheduler, kubeScheduler := deployed(t, rendered(t, "elsewhere", "default"))
	ports := map[string]int32{}
	for _, p := range scheduler.Ports {
		ports[p.Name] = p.ContainerPort
	}
	metrics := intstr.FromString("metrics")
	want := []corev1.HTTPGetAction{
		{Path: "/readyz", Port: metrics}, {Path: "/healthz", Port: metrics},
		{Path: "/healthz", Port: intstr.FromString("kube-scheduler"), Scheme: corev1.URISchemeHTTPS},
		{Path: "/healthz", Port: intstr.FromInt32(ports["metrics"])},
	}
	got := []corev1.HTTPGetAction{
		asked(scheduler.ReadinessProbe), asked(scheduler.LivenessProbe), asked(kubeScheduler.StartupProbe), asked(kubeScheduler.LivenessProbe),
	}
	if diff := cmp.Diff(want, got); diff != "" || ports["metrics"] == 0 {
		t.Errorf("probes (-want +got):\n%s", diff)
	}
}

// Replicas reach each other, name servers and the API server, and nothing else.
func TestNetworkPolicyLetsOut(t *testing.T) {
	m := rendered(t, "elsewhere", "default")
	var policy networking.NetworkPolicy
	one(t, m, "NetworkPolicy", "heteroflow-scheduler").into(t, &policy)
	d, _, _ := deployed(t, m)
	out := map[int32][]networking.NetworkPolicyPeer{}
	for _, rule := range policy.Spec.Egress {
		for _, p := range rule.Ports {
			out[p.Port.IntVal] = rule.To
		}
	}
	for _, port := range []int32{53, 443, 6443} {
		if to, found := out[port]; !found || len(to) > 0 {
			t.Errorf("port %d: reached %t, at %v", port, found, to)
		}
		delete(out, port)
	}
	to := out[9444]
	if len(out) != 1 || len(to) != 1 || to[0].NamespaceSelector != nil || to[0].PodSelector == nil ||
		!cmp.Equal(to[0].PodSelector.MatchLabels, d.Spec.Selector.MatchLabels) {
		t.Errorf("besides, these ports are reached: %v", out)
	}
}

// A rollout and a drain take one replica at a time, and are not held up.
func TestReplicasGoOneByOne(t *testing.T) {
	m := rendered(t, "elsewhere", "default")
	var budget policyv1.PodDisruptionBudget
	one(t, m, "PodDisruptionBudget", "heteroflow-scheduler").into(t, &budget)
	if n := budget.Spec.MaxUnavailable; n == nil || n.IntValue() != 1 || budget.Spec.MinAvailable != nil {
		t.Errorf("a drain may take %v, and has to leave %v", n, budget.Spec.MinAvailable)
	}
	d, _, _ := deployed(t, m)
	rolling := d.Spec.Strategy.RollingUpdate
	if rolling == nil || rolling.MaxUnavailable == nil || rolling.MaxUnavailable.IntValue() != 0 || rolling.MaxSurge == nil || rolling.MaxSurge.IntValue() < 1 {
		t.Errorf("a rollout goes by %+v", rolling)
	}
}

// What cert-manager makes is in the names that it is asked for: replicas know each
// other by the common name, the API server the webhooks by that of their Service.
func TestCertificatesAreInTheRightNames(t *testing.T) {
	m := rendered(t, "elsewhere", "cert-manager")
	spec := func(name string) map[string]any {
		var certificate map[string]any
		one(t, m, "Certificate", name).into(t, &certificate)
		return certificate["spec"].(map[string]any)
	}
	if name := spec("heteroflow-replicas")["commonName"]; name != "heteroflow-scheduler" {
		t.Errorf("replicas are called %v", name)
	}
	if diff := cmp.Diff([]any{"heteroflow-scheduler.elsewhere.svc"}, spec("heteroflow-webhooks")["dnsNames"]); diff != "" {
		t.Errorf("names of the webhooks (-want +got):\n%s", diff)
	}
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		if from := one(t, m, kind, "heteroflow").Metadata.Annotations["cert-manager.io/inject-ca-from"]; from != "elsewhere/heteroflow-webhooks" {
			t.Errorf("%s takes its bundle from %q", kind, from)
		}
	}
}
