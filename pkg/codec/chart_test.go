package codec

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// chart is the folder of the chart's plain files, which its templates pass on.
const chart = "../../charts/heteroflow/files/"

// Pods that the API server does not send are pods let through unchecked: every
// name that a request can be made by has to match.
func TestChartSendsEveryPodOfOurs(t *testing.T) {
	expression := cel(t, "pods-of-ours.cel")
	_, rest, _ := strings.Cut(expression, "name.matches(r'")
	pattern, _, ok := strings.Cut(rest, "')")
	if !ok {
		t.Fatalf("no pattern in %s", expression)
	}
	names := regexp.MustCompile(pattern)
	for _, resource := range ManagedResources() {
		for _, prefix := range []string{"", "limits.", "requests."} {
			if !names.MatchString(prefix + string(resource)) {
				t.Errorf("a pod that asks for %s%s is not sent", prefix, resource)
			}
		}
	}
	for _, p := range plains {
		if !names.MatchString(p.name) {
			t.Errorf("a pod that asks for %s is not sent", p.name)
		}
	}
	for _, other := range []string{"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/nvidia.com/gpu", "xnvidia.com/gpu", "nvidia.com.example.com/gpu"} {
		if names.MatchString(other) {
			t.Errorf("a pod that asks for %s is sent", other)
		}
	}
	if !strings.Contains(expression, "[object, oldObject]).exists(pod,") {
		t.Error("an update that takes the last key off is not sent")
	}
	for _, keys := range []string{"key.startsWith('" + own + "')", `key.matches(r'{{ include "heteroflow.owned" . }}')`} {
		if !strings.Contains(expression, keys) {
			t.Errorf("a pod is not sent for %s", keys)
		}
	}
}

func TestChartSendsNoUpdateOfAPodThatEnds(t *testing.T) {
	if !strings.Contains(cel(t, "changes-keys.cel"), "oldObject.metadata.?deletionTimestamp.orValue(null) == null") {
		t.Error("updates of a pod that is being deleted are sent")
	}
}

// cel returns an expression without its comments.
func cel(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(chart + name)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^//.*$`).ReplaceAllString(string(text), "")
}

// The classes are those that admission gives to pods.
func TestPriorityClassesGolden(t *testing.T) {
	golden(t, chart+"priorityclasses.yaml", priorityClasses())
}

func priorityClasses() string {
	var b strings.Builder
	b.WriteString("# Made by `go test ./pkg/codec -run Golden -update`. Do not edit.\n")
	for n := range mostPriority + 1 {
		fmt.Fprintf(&b, "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata:\n  name: %s\n", PriorityClass(n))
		fmt.Fprintf(&b, "value: %d\nglobalDefault: false\ndescription: Of pods with the annotation %s %d.\n", n, AnnotationPriority, n)
	}
	return b.String()
}
