package simulate

import (
	"cmp"
	"errors"
	"math"
	"os"
	"testing"
)

// Where the published trace is, its published policies reach what was published: two
// seeds of ten, so that three standard deviations of their mean are allowed. All of it
// is `make quality`.
func TestPublishedFigures(t *testing.T) {
	folder := cmp.Or(os.Getenv("OPENB_DIR"), "../../../shared/openb")
	if testing.Short() {
		t.Skip("takes seconds")
	}
	trace, err := Read(os.DirFS(folder), "default")
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("no published trace in %s (OPENB_DIR says where): figures are checked on generated ones alone", folder)
	}
	if err != nil {
		t.Fatal(err)
	}
	policies, err := Policies([]string{"fgd", "bestfit"})
	if err != nil {
		t.Fatal(err)
	}
	seeds := []int64{42, 43}
	results, err := Experiment(t.Context(), trace, policies, seeds)
	if err != nil {
		t.Fatal(err)
	}
	for i := range results {
		const deviation = 0.15 // of either policy over the ten seeds, as measured here
		r := &results[i]
		want, _ := Published(r.Trace, r.Policy)
		slack := 3 * deviation / math.Sqrt(float64(len(seeds)))
		if got := average(r.At(100)); math.Abs(got-want) > slack {
			t.Errorf("%s reaches %.2f %%, published is %.2f, and %.2f allowed", r.Policy, got, want, slack)
		}
		for _, first := range r.First() {
			if r.Policy == "fgd" && first < 85 {
				t.Errorf("fgd refuses a pod when %.2f %% have arrived: published is none before 85", first)
			}
		}
	}
}
