package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the table of docs/install.md anew")

// A wrong value is refused with the field's name, before anything is applied.
func TestSchemaRefuses(t *testing.T) {
	tests := map[string]struct{ values, want string }{
		"unknown value":           {"replica: 3", "'replica'"},
		"unknown part":            {"image: {tagg: v1}", "'tagg'"},
		"no replicas":             {"replicas: 0", "/replicas"},
		"half a replica":          {"replicas: 1.5", "/replicas"},
		"no repository":           {"image: {repository: ''}", "/image/repository"},
		"short digest":            {"image: {digest: 'sha256:12'}", "/image/digest"},
		"tag of another product":  {"kubeScheduler: {image: {tag: latest}}", "/kubeScheduler/image/tag"},
		"pull at times":           {"image: {pullPolicy: Sometimes}", "/image/pullPolicy"},
		"talkative":               {"verbosity: 11", "/verbosity"},
		"flags as text":           {"extraArgs: --v=2", "/extraArgs"},
		"environment as a map":    {"extraEnv: {GOGC: '50'}", "/extraEnv"},
		"a value of no text":      {"extraEnv: [{name: GOGC, value: 50}]", "/extraEnv/0/value"},
		"a name of our own":       {"extraEnv: [{name: NAMESPACE, value: other}]", "/extraEnv/0/name"},
		"bind past kube's time":   {"bindTimeoutSeconds: 30", "/bindTimeoutSeconds"},
		"no time to read back":    {"bindTimeoutSeconds: 5", "/bindTimeoutSeconds"},
		"duration without a unit": {"leaderElection: {leaseDuration: '15'}", "/leaderElection/leaseDuration"},
		"part of a second":        {"leaderElection: {leaseDuration: 1500ms}", "/leaderElection/leaseDuration"},
		"negative duration":       {"leaderElection: {fenceDelay: -1s}", "/leaderElection/fenceDelay"},
		"failure policy":          {"admission: {failurePolicy: fail}", "/admission/failurePolicy"},
		"mode":                    {"certificates: {mode: cert-manager}", "/certificates/mode"},
		"issuer without kind":     {"certificates: {issuer: {name: a}}", "/certificates/issuer"},
		"plugin without keys":     {"hamiPlugins: [{serviceAccount: a/b}]", "/hamiPlugins/0"},
		"plugin with our keys":    {"hamiPlugins: [{serviceAccount: a/b, keys: [heteroflow.io/allocation]}]", "/hamiPlugins/0/keys/0"},
		"account with no place":   {"hamiPlugins: [{serviceAccount: b, keys: [hami.io/x]}]", "/hamiPlugins/0/serviceAccount"},
		"port":                    {"networkPolicy: {apiServerPorts: [0]}", "/networkPolicy/apiServerPorts/0"},
		"half on":                 {"policies: {enabled: 'true'}", "/policies/enabled"},
		"a limit of nothing":      {"resources: {limit: {cpu: 1}}", "'limit'"},
		"topology of no nodes":    {"topology: {node: []}", "/topology"},
		"a node without a name":   {"topology: {nodes: [{rack: r1, zone: z1}]}", "/topology/nodes/0"},
		"a node that is nowhere":  {"topology: {nodes: [{name: a}]}", "/topology/nodes/0"},
		"a rack by its number":    {"topology: {nodes: [{name: a, rack: 12}]}", "/topology/nodes/0/rack"},
		"a part that nobody has":  {"topology: {nodes: [{name: a, rack: r1, row: r2}]}", "'row'"},
		"telemetry from nowhere":  {"telemetry: {config: {period: 30s}}", "/telemetry/config"},
		"Prometheus without URL":  {"telemetry: {config: {prometheus: {caFile: /ca.crt}}}", "/telemetry/config/prometheus"},
		"a Secret elsewhere":      {"telemetry: {secret: other/token}", "/telemetry/secret"},
		"no port of Prometheus":   {"networkPolicy: {telemetryPorts: []}", "/networkPolicy/telemetryPorts"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := Render(t.Context(), folder, "elsewhere", []byte(tc.values)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %s", err, tc.want)
			}
		})
	}
}

// schema is as much of a JSON schema as is used.
type schema struct {
	Description          string
	Properties           map[string]schema
	AdditionalProperties any
}

func readSchema(t *testing.T) schema {
	t.Helper()
	var s schema
	if err := json.Unmarshal([]byte(read(t, folder+"/values.schema.json")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func defaults(t *testing.T) map[string]any {
	t.Helper()
	var given map[string]any
	if err := yaml.Unmarshal([]byte(read(t, folder+"/values.yaml")), &given); err != nil {
		t.Fatal(err)
	}
	return given
}

// The schema knows the values of values.yaml, all of them and no other, and says
// what each is.
func TestSchemaKnowsEveryValue(t *testing.T) {
	compare(t, "", readSchema(t), defaults(t))
}

func compare(t *testing.T, at string, s schema, given map[string]any) {
	t.Helper()
	if s.AdditionalProperties != false {
		t.Errorf("%s: the schema takes values that nobody reads", at)
	}
	known := maps.Clone(s.Properties)
	delete(known, "global") // Helm gives it to every chart
	if diff := cmp.Diff(slices.Sorted(maps.Keys(known)), slices.Sorted(maps.Keys(given))); diff != "" {
		t.Errorf("%s (-schema +values.yaml):\n%s", at, diff)
	}
	for name, part := range known {
		if part.Description == "" {
			t.Errorf("%s.%s: the schema does not say what it is", at, name)
		}
		if inner, ok := given[name].(map[string]any); ok && structured(part, inner) {
			compare(t, at+"."+name, part, inner)
		}
	}
}

// structured reports whether the parts of a value are values themselves, each
// with a row. What Kubernetes defines, and what is empty, stands as a whole.
func structured(s schema, given map[string]any) bool {
	_, amounts := s.Properties["requests"]
	return len(given) > 0 && !amounts
}

// docs/install.md lists every value with its default.
func TestDocumentsValues(t *testing.T) {
	const path, begin, end = "../../docs/install.md", "<!-- values: made by `make generate` -->\n", "<!-- end of values -->"
	document := read(t, path)
	before, rest, found := strings.Cut(document, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the values", path)
	}
	rows := table("", readSchema(t), defaults(t))
	want := before + begin + "| value | default | meaning |\n|---|---|---|\n" + strings.Join(rows, "") + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, document); diff != "" {
		t.Errorf("%s is out of date, run `make generate` (-want +got):\n%s", path, diff)
	}
}

func table(at string, s schema, given map[string]any) (rows []string) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		part := s.Properties[name]
		if inner, ok := given[name].(map[string]any); ok && structured(part, inner) {
			rows = append(rows, table(at+name+".", part, inner)...)
			continue
		}
		value, err := json.Marshal(given[name])
		if err != nil {
			panic(err) // it came from YAML
		}
		rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s |\n", at+name, value, part.Description))
	}
	return rows
}
