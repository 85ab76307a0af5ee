package scenario

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func outcome(setup string, seed uint64, whole int, node float64) Outcome {
	return Outcome{
		Setup: setup, Seed: seed, Node: node, Pairs: Count{whole, 200},
		Kinds: map[string]Count{"single": {whole, 100}, "slice": {1, 4}},
	}
}

func TestReportPrintsMedians(t *testing.T) {
	r := Report{Outcomes: []Outcome{
		outcome("a", 1, 90, 60), outcome("b", 1, 20, 81), outcome("a", 2, 10, 61), outcome("b", 2, 30, 82), outcome("a", 3, 80, 75),
	}}
	var out strings.Builder
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{"scenario a whole=80.0 hottest=61.0 samerack=40.0 runs=3", "scenario b whole=25.0 hottest=81.5 samerack=12.5 runs=2"}
	if diff := cmp.Diff(want, lines[len(lines)-2:]); diff != "" {
		t.Errorf("last lines (-want +got):\n%s", diff)
	}
	if row := strings.Join(strings.Fields(lines[1]), " "); row != "whole cards in time, % 80.0 (90.0 10.0 80.0) 25.0 (20.0 30.0)" {
		t.Errorf("the first row is %q", row)
	}
}

func TestReportFaults(t *testing.T) {
	bad := outcome("a", 3, 1, 1)
	bad.Wrong = []string{"1", "2", "3", "4", "5", "6"}
	r := Report{Outcomes: []Outcome{outcome("a", 1, 1, 1), bad}}
	want := []string{"a, seed 3: 1", "a, seed 3: 2", "a, seed 3: 3", "a, seed 3: 4", "a, seed 3: 5"}
	if diff := cmp.Diff(want, r.Faults()); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}
