package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	registration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

// Pods that ask for cards wait while no replica answers, unless the values say
// otherwise; the policies, which need no replica, always refuse when in doubt.
func TestWhatHappensInAnOutage(t *testing.T) {
	for set, want := range map[string]registration.FailurePolicyType{"default": registration.Fail, "cert-manager": registration.Fail, "full": registration.Ignore} {
		m := rendered(t, "elsewhere", set)
		var mutating registration.MutatingWebhookConfiguration
		var validating registration.ValidatingWebhookConfiguration
		one(t, m, "MutatingWebhookConfiguration", "heteroflow").into(t, &mutating)
		one(t, m, "ValidatingWebhookConfiguration", "heteroflow").into(t, &validating)
		for _, w := range mutating.Webhooks {
			if w.FailurePolicy == nil || *w.FailurePolicy != want {
				t.Errorf("%s: %s has failure policy %v, want %s", set, w.Name, w.FailurePolicy, want)
			}
		}
		for _, w := range validating.Webhooks {
			if w.FailurePolicy == nil || *w.FailurePolicy != want {
				t.Errorf("%s: %s has failure policy %v, want %s", set, w.Name, w.FailurePolicy, want)
			}
		}
	}
	for _, set := range all {
		found := 0
		for _, o := range objects(t, rendered(t, "elsewhere", set), "") {
			if o.Kind != "ValidatingAdmissionPolicy" {
				continue
			}
			found++
			var p registration.ValidatingAdmissionPolicy
			o.into(t, &p)
			if p.Spec.FailurePolicy == nil || *p.Spec.FailurePolicy != registration.Fail {
				t.Errorf("%s: %v has failure policy %v", set, o, p.Spec.FailurePolicy)
			}
		}
		if found == 0 {
			t.Errorf("%s: there is no policy", set)
		}
	}
}

// monitor is as much of a ServiceMonitor as is read here.
type monitor struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   any    `json:"metadata"`
	Spec       struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		Endpoints []struct {
			Port     string `json:"port"`
			Interval string `json:"interval"`
			Scheme   string `json:"scheme"`
			Path     string `json:"path"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// Prometheus finds one Service, and on it a port by its name, not by a number.
func TestServiceMonitorFindsTheFigures(t *testing.T) {
	m := rendered(t, "elsewhere", "full")
	var s monitor
	one(t, m, "ServiceMonitor", "heteroflow-scheduler").into(t, &s)
	var found []string
	for _, o := range objects(t, m, "services.yaml") {
		var service corev1.Service
		o.into(t, &service)
		if !matches(s.Spec.Selector.MatchLabels, service.Labels) {
			continue
		}
		for _, e := range s.Spec.Endpoints {
			for _, p := range service.Spec.Ports {
				if p.Name == e.Port {
					found = append(found, service.Name+" "+e.Port+" "+p.TargetPort.String()+" "+e.Interval)
				}
			}
			if e.Scheme != "" || e.Path != "" {
				t.Errorf("endpoint %+v: figures are at /metrics, without TLS", e)
			}
		}
	}
	if diff := cmp.Diff([]string{"heteroflow-scheduler-metrics metrics metrics 15s"}, found); diff != "" {
		t.Errorf("Service, port, port of the container, interval (-want +got):\n%s", diff)
	}
}

func matches(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

// Environment that is given comes after ours, to the scheduler alone.
func TestExtraEnvironment(t *testing.T) {
	names := func(c corev1.Container) (all []string) {
		for _, e := range c.Env {
			all = append(all, e.Name)
		}
		return all
	}
	for set, want := range map[string][]string{"default": {"NAMESPACE", "POD_IP"}, "full": {"NAMESPACE", "POD_IP", "GOMEMLIMIT", "GOMAXPROCS"}} {
		_, scheduler, kubeScheduler := deployed(t, rendered(t, "elsewhere", set))
		if diff := cmp.Diff(want, names(scheduler)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", set, diff)
		}
		if len(kubeScheduler.Env) > 0 {
			t.Errorf("%s: kube-scheduler has %v", set, names(kubeScheduler))
		}
	}
}
