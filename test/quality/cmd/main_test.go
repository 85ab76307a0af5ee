package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folder makes one with a trace of two nodes and a pod.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"openb_node_list_gpu_node.csv": "sn,cpu_milli,memory_mib,gpu,model\na,8000,9000,2,T4\nb,8000,9000,1,G2\n",
		"openb_pod_list_small.csv":     "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1000,1000,1,500\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestParse(t *testing.T) {
	config, commit, err := parse([]string{"--openb", folder(t), "--trace", "small", "--nodes", "2", "--seed", "7", "--commit", "abc"})
	if err != nil {
		t.Fatal(err)
	}
	if config.Trace.Name != "small" || len(config.Trace.Nodes) != 2 || config.Nodes != 2 || config.Seed != 7 || commit != "abc" {
		t.Errorf("parsed as %+v of %s", config, commit)
	}
}

func TestNoTracesAreNoFailure(t *testing.T) {
	dir := t.TempDir()
	var out strings.Builder
	if err := run(t.Context(), []string{"--openb", dir}, &out); err != nil {
		t.Fatal(err)
	}
	if want := "quality-e2e: no traces in " + dir + " (OPENB_DIR says where): nothing is measured\n"; out.String() != want {
		t.Errorf("said %q, want %q", &out, want)
	}
}

// TestRefusesBeforeAnythingStarts: a control plane takes a while to start.
func TestRefusesBeforeAnythingStarts(t *testing.T) {
	dir := folder(t)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no such trace":  {[]string{"--trace", "other"}, "--trace: openb_pod_list_other.csv"},
		"too many nodes": {[]string{"--trace", "small"}, "nodes: 300 is outside 1..2"},
		"no number":      {[]string{"--seed", "some"}, "-seed"},
		"an argument":    {[]string{"quick"}, `unknown argument "quick"`},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := run(t.Context(), append([]string{"--openb", dir}, tc.args...), &out)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want it to say %q", err, tc.want)
			}
		})
	}
}
