package main

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// where are the scheduler's flag and the file that it names, which is "" where there
// is none; and what pods are replaced by when it changes.
func where(t *testing.T, m Manifests) (flag, file, sum string) {
	t.Helper()
	var config corev1.ConfigMap
	one(t, m, "ConfigMap", "heteroflow-scheduler").into(t, &config)
	d, scheduler, _ := deployed(t, m)
	return flagOf(scheduler, "--topology-file"), config.Data["topology.yaml"], d.Spec.Template.Annotations["heteroflow.io/config"]
}

func TestTopologyIsGivenAsAFile(t *testing.T) {
	flag, file, _ := where(t, rendered(t, "elsewhere", "full"))
	var got map[string][]map[string]string
	if err := yaml.UnmarshalStrict([]byte(file), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string][]map[string]string{"nodes": {
		{"name": "gpu-1", "rack": "12"}, // a text, whatever it looks like
		{"name": "gpu-2", "region": "west", "zone": "west-1", "rack": "r12", "switch": "leaf-3"},
	}}
	if diff := cmp.Diff(want, got); diff != "" || flag != "/etc/heteroflow/topology.yaml" {
		t.Errorf("flag %q, file (-want +got):\n%s", flag, diff)
	}
	if flag, file, _ := where(t, rendered(t, "elsewhere", "default")); flag != "" || file != "" {
		t.Errorf("without a topology there is the flag %q and the file %q", flag, file)
	}
}

// The scheduler reads the file again when it changes, so that no pod is replaced for
// it; they are for what else is in the same ConfigMap.
func TestTopologyChangesWithoutARestart(t *testing.T) {
	with := func(rack string, period int) (file, sum string) {
		values := fmt.Sprintf("topology: {nodes: [{name: a, rack: %s}]}\ntelemetry: {config: {prometheus: {url: 'https://p'}, period: %ds}}", rack, period)
		m, err := Render(t.Context(), folder, "elsewhere", []byte(values))
		if err != nil {
			t.Fatal(err)
		}
		_, file, sum = where(t, m)
		return file, sum
	}
	file, sum := with("r1", 15)
	moved, same := with("r2", 15)
	_, other := with("r1", 20)
	if file == moved || sum != same || sum == other || sum == "" {
		t.Errorf("a node that has moved: %q for %q, pods by %s and %s; with another period by %s", moved, file, same, sum, other)
	}
}
