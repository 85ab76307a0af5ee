package scenario

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func outcome(setup string, seed uint64, whole, pairs int, node float64) Outcome {
	return Outcome{
		Setup: setup, Seed: seed, Node: node, Card: node + 1, Held: 0.5,
		Kinds: map[string]Count{"single": {whole, 10}, "several": {0, 0}, "group": {10, 10}, "slice": {1, 4}},
		Pairs: Count{pairs, 100},
	}
}

func TestPrint(t *testing.T) {
	r := Report{[]Outcome{
		outcome("stock", 1, 2, 40, 80), outcome("default", 1, 8, 90, 70),
		outcome("stock", 2, 4, 50, 83), outcome("default", 2, 10, 80, 71),
		outcome("stock", 3, 0, 10, 81.04), outcome("default", 3, 9, 85, 90),
	}}
	var b strings.Builder
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	last := []string{
		"scenario stock whole=60.0 hottest=81.0 samerack=40.0 runs=3",
		"scenario default whole=95.0 hottest=71.0 samerack=85.0 runs=3",
	}
	if diff := cmp.Diff(last, lines[len(lines)-2:]); diff != "" {
		t.Errorf("last lines (-want +got):\n%s", diff)
	}
	if got := strings.Join(strings.Fields(lines[1]), " "); got != "whole cards in time, % 60.0 (60.0 70.0 50.0) 95.0 (90.0 100.0 95.0)" {
		t.Errorf("first figure: %s", got)
	}
	if got := strings.Join(strings.Fields(lines[0]), " "); got != "stock default" {
		t.Errorf("heading: %s", got)
	}
}

func TestMedian(t *testing.T) {
	for _, tc := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := median(tc.of); got != tc.want {
			t.Errorf("median of %v is %v, want %v", tc.of, got, tc.want)
		}
	}
}

func TestFaults(t *testing.T) {
	bad := Outcome{Setup: "stock", Seed: 4, Wrong: []string{"1", "2", "3", "4", "5", "6"}}
	r := Report{[]Outcome{outcome("default", 4, 1, 1, 1), bad}}
	if got := r.Faults(); len(got) != 5 || got[0] != "stock, seed 4: 1" {
		t.Errorf("faults %q, want the first five of stock", got)
	}
	if got := (&Report{r.Outcomes[:1]}).Faults(); len(got) != 0 {
		t.Errorf("faults %q, want none", got)
	}
}

func TestNothingOfNothing(t *testing.T) {
	if got := (Count{}).Percent(); got != 0 {
		t.Errorf("percent of nothing: %v", got)
	}
}
