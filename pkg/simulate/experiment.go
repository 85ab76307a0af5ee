package simulate

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Result is what came of a trace under one policy, by seed.
type Result struct {
	Trace, Policy string
	Runs          []Run // in the order of the seeds
}

// Experiment replays the trace with each policy and each seed.
func Experiment(ctx context.Context, t *Trace, policies []Policy, seeds []int64) ([]Result, error) {
	arrivals := make([]Arrivals, len(seeds))
	for k, seed := range seeds {
		arrivals[k] = Arrive(t, seed)
	}
	runs, err := all(ctx, t, policies, seeds, func(p Policy, k int) (Run, error) { return Replay(t, arrivals[k], p) })
	results := make([]Result, len(policies))
	for i, p := range policies {
		results[i] = Result{t.Name, p.Name, runs[i]}
	}
	return results, err
}

// all runs each policy with each seed, as many at a time as there are processors to
// use, and returns what came of it by policy and seed.
func all[R any](ctx context.Context, t *Trace, policies []Policy, seeds []int64, run func(p Policy, seed int) (R, error)) ([][]R, error) {
	results := make([][]R, len(policies))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range policies {
		results[i] = make([]R, len(seeds))
	}
	for k, seed := range seeds {
		for i, p := range policies {
			g.Go(func() (err error) {
				if err := ctx.Err(); err != nil {
					return err
				}
				if results[i][k], err = run(p, k); err != nil {
					return fmt.Errorf("trace %s, policy %s, seed %d: %w", t.Name, p.Name, seed, err)
				}
				return nil
			})
		}
	}
	return results, g.Wait()
}

// At returns what was held when that much had arrived, in percent, of each run in
// which anything arrived then.
func (r *Result) At(arrived int) []float64 {
	return r.each(func(run *Run) float64 { return run.Allocated[arrived] })
}

// First8 returns what had arrived when a pod with 8 cards first found no room, in
// percent, of each run in which one did.
func (r *Result) First8() []float64 { return r.each(func(run *Run) float64 { return run.First8 }) }

// First is that of any pod with cards.
func (r *Result) First() []float64 { return r.each(func(run *Run) float64 { return run.First }) }

// Failed returns how many pods of that kind found no room, by run.
func (r *Result) Failed(kind string) []float64 {
	return r.each(func(run *Run) float64 {
		return float64(run.failed(func(s Shape) bool { return s.Kind() == kind }))
	})
}

// each returns the figures of the runs that have one.
func (r *Result) each(figure func(*Run) float64) (figures []float64) {
	for i := range r.Runs {
		figures = append(figures, figure(&r.Runs[i]))
	}
	return slices.DeleteFunc(figures, math.IsNaN)
}

// Decisions counts the pods that arrived in all runs.
func Decisions(results []Result) (n int) {
	for i := range results {
		for k := range results[i].Runs {
			run := &results[i].Runs[k]
			n += run.Placed + run.failed(func(Shape) bool { return true })
		}
	}
	return n
}
