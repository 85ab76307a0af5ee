package simulate

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// SteadyResult is what came of a trace over time under one policy, by seed.
type SteadyResult struct {
	Trace, Policy string
	Stay          Stay
	Runs          []Steady // in the order of the seeds
}

// OverTime has pods of the trace come and go with each policy and each seed.
func OverTime(ctx context.Context, t *Trace, policies []Policy, seeds []int64, stay Stay) ([]SteadyResult, error) {
	runs, err := all(ctx, t, policies, seeds, func(p Policy, k int) (Steady, error) { return Sojourn(t, seeds[k], p, stay) })
	results := make([]SteadyResult, len(policies))
	for i, p := range policies {
		results[i] = SteadyResult{t.Name, p.Name, stay, runs[i]}
	}
	return results, err
}

// withCards are the kinds of pods with cards.
func withCards() []string {
	return slices.DeleteFunc(Kinds(), func(kind string) bool { return kind == KindCPU })
}

// each returns the figures of the runs that have one.
func (r *SteadyResult) each(figure func(*Steady) float64) (figures []float64) {
	for i := range r.Runs {
		figures = append(figures, figure(&r.Runs[i]))
	}
	return slices.DeleteFunc(figures, math.IsNaN)
}

// failed returns how many pods of these kinds were withdrawn, in percent.
func (r *SteadyResult) failed(kinds ...string) []float64 {
	return r.each(func(s *Steady) float64 {
		w := s.of(kinds...)
		return 100 * float64(w.Withdrawn) / float64(w.Came)
	})
}

// waited returns how long pods of these kinds waited on average, in percent of a
// lifetime.
func (r *SteadyResult) waited(kinds ...string) []float64 {
	return r.each(func(s *Steady) float64 {
		w := s.of(kinds...)
		return 100 * w.Waited / float64(w.Came)
	})
}

func (r *SteadyResult) held() []float64 { return r.each(func(s *Steady) float64 { return s.Held }) }

// SteadyLines writes one line for each result, for machines.
func SteadyLines(w io.Writer, results []SteadyResult) error {
	var b strings.Builder
	for i := range results {
		r, cards := &results[i], withCards()
		fmt.Fprintf(&b, "openb-time %s policy=%s seeds=%d load=%g held=%s failed=%s wait=%s failed8=%s wait8=%s\n",
			r.Trace, r.Policy, len(r.Runs), r.Stay.Load, mean(r.held()),
			mean(r.failed(cards...)), mean(r.waited(cards...)), mean(r.failed(Kind8)), mean(r.waited(Kind8)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// SteadyReport writes a table of who was withdrawn and one of how long pods waited,
// with standard deviations.
func SteadyReport(w io.Writer, results []SteadyResult) error {
	var b strings.Builder
	for _, f := range []struct {
		title string
		of    func(*SteadyResult, ...string) []float64
	}{
		{"withdrawn, %", (*SteadyResult).failed},
		{"waited, % of a lifetime", (*SteadyResult).waited},
	} {
		row(&b, []string{f.title, "policy", "GPU held, %", "with GPUs", "part of one", "1", "2", "4", "8"})
		row(&b, slices.Repeat([]string{"---"}, 4+len(withCards())))
		for i := range results {
			r := &results[i]
			cells := []string{r.Trace, r.Policy, mean(r.held()), withSpread(f.of(r, withCards()...))}
			for _, kind := range withCards() {
				cells = append(cells, withSpread(f.of(r, kind)))
			}
			row(&b, cells)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}
