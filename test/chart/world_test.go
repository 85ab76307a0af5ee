package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// folder is the chart.
const folder = "../../charts/heteroflow"

// all are the sets of values with which the chart is tried: its own, and those
// under testdata.
var all = []string{"default", "bare", "cert-manager", "full"}

// values returns a set of values; that of the chart itself is empty.
func values(t *testing.T, set string) []byte {
	t.Helper()
	if set == "default" {
		return nil
	}
	return []byte(read(t, filepath.Join("testdata", set+".yaml")))
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rendered is what the chart makes of a set of values in a namespace.
func rendered(t *testing.T, namespace, set string) Manifests {
	t.Helper()
	m, err := Render(t.Context(), folder, namespace, values(t, set))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// object is what all objects have.
type object struct {
	Kind     string
	Metadata struct {
		Name, Namespace string
		Labels          map[string]string
		Annotations     map[string]string
	}
	text []byte
}

func (o object) String() string { return o.Kind + " " + o.Metadata.Name }

// into decodes an object; a field that its kind does not have is an error.
func (o object) into(t *testing.T, typed any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(o.text, typed); err != nil {
		t.Fatalf("%v: %v", o, err)
	}
}

// objects returns the objects of a file, or of all files.
func objects(t *testing.T, m Manifests, name string) []object {
	t.Helper()
	var text strings.Builder
	names := []string{name}
	if name == "" {
		names = nil
	}
	if err := m.print(&text, names); err != nil {
		t.Fatal(err)
	}
	var found []object
	for _, document := range strings.Split(text.String(), "\n---\n") {
		o := object{text: []byte(document)}
		if err := yaml.Unmarshal(o.text, &o); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if o.Kind != "" {
			found = append(found, o)
		}
	}
	return found
}

// one returns the only object of that kind and name.
func one(t *testing.T, m Manifests, kind, name string) object {
	t.Helper()
	found := slices.DeleteFunc(objects(t, m, ""), func(o object) bool { return o.Kind != kind || o.Metadata.Name != name })
	if len(found) != 1 {
		t.Fatalf("%d objects are %s %s, want 1", len(found), kind, name)
	}
	return found[0]
}

// deployed returns the Deployment and its two containers.
func deployed(t *testing.T, m Manifests) (d appsv1.Deployment, scheduler, kubeScheduler corev1.Container) {
	t.Helper()
	one(t, m, "Deployment", "heteroflow-scheduler").into(t, &d)
	containers := d.Spec.Template.Spec.Containers
	if len(containers) != 2 || containers[0].Name != "scheduler" || containers[1].Name != "kube-scheduler" {
		t.Fatalf("containers are %v", containers)
	}
	return d, containers[0], containers[1]
}
