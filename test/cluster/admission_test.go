package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestLocaliseWebhooks(t *testing.T) {
	const example = `
kind: MutatingWebhookConfiguration
metadata: {name: heteroflow}
webhooks:
- name: a.heteroflow.io
  failurePolicy: Fail
  clientConfig:
    service: {namespace: heteroflow-system, name: heteroflow-scheduler, port: 9443, path: /webhook/mutate}
- name: b.heteroflow.io
  clientConfig:
    service: {namespace: heteroflow-system, name: heteroflow-scheduler, path: /webhook/validate}
`
	const want = `kind: MutatingWebhookConfiguration
metadata:
  name: heteroflow
webhooks:
- clientConfig:
    caBundle: Y2E=
    url: https://127.0.0.1:1234/webhook/mutate
  failurePolicy: Fail
  name: a.heteroflow.io
- clientConfig:
    caBundle: Y2E=
    url: https://127.0.0.1:1234/webhook/validate
  name: b.heteroflow.io
`
	objects, err := decode(strings.NewReader(example))
	if err != nil {
		t.Fatal(err)
	}
	if err := localiseWebhooks(objects[0], "https://127.0.0.1:1234", []byte("ca")); err != nil {
		t.Fatal(err)
	}
	got, err := yaml.Marshal(objects[0].Object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestLocaliseWebhooksRefuses(t *testing.T) {
	tests := map[string]string{
		"no webhooks":     "kind: MutatingWebhookConfiguration",
		"no list":         "webhooks: 5",
		"an empty list":   "webhooks: []",
		"no objects":      "webhooks: [5]",
		"no client":       "webhooks: [{name: a}]",
		"no service":      "webhooks: [{name: a, clientConfig: {caBundle: x}}]",
		"a URL":           "webhooks: [{name: a, clientConfig: {caBundle: x, url: https://there}}]",
		"a caBundle":      "webhooks: [{name: a, clientConfig: {caBundle: x, service: {path: /a}}}]",
		"no path":         "webhooks: [{name: a, clientConfig: {service: {name: s}}}]",
		"a field besides": "webhooks: [{name: a, clientConfig: {service: {path: /a}, url: u}}]",
		"one bad webhook": "webhooks: [{name: a, clientConfig: {service: {path: /a}}}, {name: b}]",
	}
	for name, example := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := decode(strings.NewReader(example))
			if err != nil {
				t.Fatal(err)
			}
			if err := localiseWebhooks(objects[0], "u", nil); err == nil {
				t.Errorf("localiseWebhooks made %v, want an error", objects[0].Object)
			}
		})
	}
}
