package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The Service leads to where the program listens unless told otherwise, and not
// to where pods can be bound.
func TestServiceHasTheDefaultAddresses(t *testing.T) {
	text, err := os.ReadFile("../../examples/service.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var service corev1.Service
	if err := yaml.UnmarshalStrict(text, &service); err != nil {
		t.Fatal(err)
	}
	cfg, err := parse(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range service.Spec.Ports {
		got[p.Name] = ":" + p.TargetPort.String()
		if p.TargetPort.IntVal != p.Port {
			t.Errorf("port %d leads to %s", p.Port, p.TargetPort.String())
		}
	}
	want := map[string]string{"webhooks": cfg.admissionAddress, "metrics": cfg.metricsAddress}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	admission, err := os.ReadFile("../../examples/admission.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if call := "{namespace: " + service.Namespace + ", name: " + service.Name + ", port: 9443,"; strings.Count(string(admission), call) != 2 {
		t.Errorf("examples/admission.yaml does not call the Service: %s", call)
	}
}
