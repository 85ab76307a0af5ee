package metrics

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// update writes the documents anew: go test ./pkg/metrics -update
var update = flag.Bool("update", false, "write the generated documents")

// The documents under docs/ are made from the tables in the code, so that they
// cannot say anything else.
func TestDocuments(t *testing.T) {
	documents := map[string]string{
		"../../docs/metrics.md": metricsDocument(),
		"../../docs/reasons.md": reasonsDocument(),
	}
	for path, want := range documents {
		t.Run(path, func(t *testing.T) { golden(t, path, want) })
	}
}

func golden(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("out of date, run `go test ./pkg/metrics -update` (-want +got):\n%s", diff)
	}
}

const generated = "<!-- Made by `go test ./pkg/metrics -update`. Do not edit. -->\n\n"

func metricsDocument() string {
	var b strings.Builder
	b.WriteString("# Metrics\n\n" + generated)
	b.WriteString("Served at `/metrics` of the metrics address (`--metrics-address`, `:9395`), together with those of the Go runtime and of the process.\n\n")
	b.WriteString("| metric | kind | labels | what |\n|---|---|---|---|\n")
	for _, f := range Families() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, f.Kind, labelsText(f.Labels), f.Help)
	}
	return b.String()
}

func labelsText(labels []Label) string {
	texts := make([]string, len(labels))
	for i, l := range labels {
		switch {
		case l.About != "":
			texts[i] = fmt.Sprintf("`%s`: %s", l.Name, l.About)
		default:
			texts[i] = fmt.Sprintf("`%s`: %s", l.Name, strings.Join(l.Values, ", "))
		}
	}
	return strings.Join(texts, "; ")
}

func reasonsDocument() string {
	var b strings.Builder
	b.WriteString("# Reasons\n\n" + generated)
	b.WriteString("Why a node, or every node, refused a pod. The codes stand in the pod's condition, in its events, in metrics and in the API; they are never renamed. " +
		"The pod's condition carries one code alone; the figures are in its event.\n\n")
	b.WriteString("| code | what is the case | what to do | figures in | does it help that other pods end? |\n|---|---|---|---|---|\n")
	for _, r := range gpu.Reasons() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.Reason, r.Sentence, r.Hint, r.Unit, helps(r))
	}
	return b.String()
}

func helps(r gpu.ReasonInfo) string {
	if r.Final {
		return "no"
	}
	return "yes, waiting can help"
}
