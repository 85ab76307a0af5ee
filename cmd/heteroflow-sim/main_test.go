package main

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func none(string) string { return "" }

// folder makes one with a trace of two nodes and three pods.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"openb_node_list_gpu_node.csv": "sn,cpu_milli,memory_mib,gpu,model\na,8000,9000,2,T4\nb,8000,9000,1,G2\n",
		"openb_pod_list_small.csv":     "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1000,1000,1,500\nq,1000,1000,2,1000\nr,1000,1000,0,0\n",
		"openb_pod_list_torn.csv":      "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1000,1000,one,500\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRun(t *testing.T) {
	dir := folder(t)
	file := filepath.Join(t.TempDir(), "mine.yaml")
	const manifest = "apiVersion: heteroflow.io/v1alpha1\nkind: SchedulerPolicy\nmetadata: {name: default}\nspec: {plugins: [{name: binpack, enabled: true}]}\n"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	drawing := filepath.Join(t.TempDir(), "all.svg")
	env := map[string]string{"OPENB_DIR": dir, "TRACES": "small", "SEEDS": "42-44,50", "POLICIES": "fgd"}
	getenv := func(name string) string { return env[name] }
	var out, complaints bytes.Buffer
	if status := run(t.Context(), []string{"-policy", file, "-plot", drawing}, getenv, &out, &complaints); status != exitDone {
		t.Fatalf("status %d: %s", status, &complaints)
	}
	for _, want := range []string{
		"openb small policy=mine seeds=4 alloc95=", "openb small policy=fgd seeds=4 alloc95=",
		"| GPU held, %, when 100 % had arrived | mine | fgd |", " decisions took ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, &out)
		}
	}
	svg, err := os.ReadFile(drawing)
	if err != nil || xml.Unmarshal(svg, new(struct{ XMLName xml.Name })) != nil {
		t.Errorf("the drawing is none: %v", err)
	}
}

func TestNoTracesAreNoFailure(t *testing.T) {
	var out, complaints bytes.Buffer
	dir := t.TempDir()
	status := run(t.Context(), []string{"-openb", dir}, none, &out, &complaints)
	want := "openb: no traces in " + dir + " (OPENB_DIR says where): nothing is measured\n"
	if status != exitDone || out.String() != want || complaints.Len() > 0 {
		t.Errorf("status %d, %q, %q", status, &out, &complaints)
	}
}

func TestComplaints(t *testing.T) {
	dir := folder(t)
	tests := map[string]struct {
		args   []string
		status int
		want   string
	}{
		"a trace that is not there": {[]string{"-traces", "other"}, exitMisused, `-traces: there is no trace "other"; there are small, torn`},
		"a policy that is not":      {[]string{"-policies", "x"}, exitMisused, `-policies: there is no policy "x"`},
		"a policy file that is not": {[]string{"-policy", "/no/such"}, exitMisused, "-policy: open /no/such"},
		"a seed that is none":       {[]string{"-seeds", "4-"}, exitMisused, `-seeds: "4-" is no number`},
		"a range backwards":         {[]string{"-seeds", "5-4"}, exitMisused, `-seeds: "5-4" is no number, and no range`},
		"a range without end":       {[]string{"-seeds", "1-2000000"}, exitMisused, "-seeds: "},
		"no seeds":                  {[]string{"-seeds", ","}, exitMisused, "-seeds: there are none"},
		"an argument":               {[]string{"default"}, exitMisused, `"default": there are only flags`},
		"a flag that is none":       {[]string{"-x"}, exitMisused, "flag provided but not defined"},
		"a trace that is torn":      {[]string{"-traces", "torn"}, exitFailed, `openb_pod_list_torn.csv: line 2: column num_gpu: "one" is no whole number`},
		"a drawing that cannot be":  {[]string{"-traces", "small", "-policies", "fgd", "-seeds", "1", "-plot", "/no/such/dir.svg"}, exitFailed, "-plot: open /no/such/dir.svg"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out, complaints bytes.Buffer
			status := run(t.Context(), append([]string{"-openb", dir}, tc.args...), none, &out, &complaints)
			if status != tc.status || !strings.HasPrefix(complaints.String(), "heteroflow-sim: "+tc.want) || strings.Count(complaints.String(), "\n") != 1 {
				t.Errorf("status %d: %q, want %d: %q", status, &complaints, tc.status, tc.want)
			}
		})
	}
}

func TestSeeds(t *testing.T) {
	got, err := parseSeeds("42-44, 7")
	if diff := cmp.Diff([]int64{42, 43, 44, 7}, got); diff != "" || err != nil {
		t.Errorf("seeds = %v, %v", got, err)
	}
}

func TestHelp(t *testing.T) {
	var out, complaints bytes.Buffer
	if status := run(t.Context(), []string{"-h"}, none, &out, &complaints); status != exitDone || !strings.Contains(out.String(), "-policies") {
		t.Errorf("status %d: %s", status, &out)
	}
}
