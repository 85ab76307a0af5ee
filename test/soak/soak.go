package soak

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"heteroflow.io/heteroflow/pkg/demand"
	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/policy"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// Plan says how long a run is: until it has done so many operations, or for so
// long; 0 is no end.
type Plan struct {
	Seed     uint64
	Ops      int64
	Duration time.Duration
}

// Result is what came of a run.
type Result struct {
	Ops  int64 // whatever anybody did: asked, bound, deleted, wrote, told
	Pods int64 // that were bound
	// The violations, by kind; see the package.
	Oversold, Neighbours, Overquota, Leaked int64
	Wrong                                   []string // the first few, in detail
	Refused                                 map[gpu.Reason]int64
}

// String is the last line of a run.
func (r Result) String() string {
	return fmt.Sprintf("soak: ops=%d pods=%d oversold=%d neighbours=%d overquota=%d leaked=%d",
		r.Ops, r.Pods, r.Oversold, r.Neighbours, r.Overquota, r.Leaked)
}

// OK reports whether nothing went wrong.
func (r Result) OK() bool { return r.Oversold+r.Neighbours+r.Overquota+r.Leaked == 0 }

// How a run is cut: after each segment all is looked at while nothing moves.
const (
	segment = 5_000 // operations
	workers = 8
)

// run is one run.
type run struct {
	ledger *ledger.Ledger
	engine *engine.Engine
	server *server
	truth  *truth

	ops, made, ahead atomic.Int64 // ahead is by how much the run's time is, see now

	informer sync.Mutex                  // what comes by watches comes one at a time
	boots    int                         // guarded by informer
	up       map[gpu.NodeID]ledger.Facts // guarded by informer

	mu      sync.Mutex
	alive   []gpu.Request        // guarded by mu; pods that were made and not ended
	refused map[gpu.Reason]int64 // guarded by mu
}

// Run does it, and returns what came of it when all is quiet again.
func Run(ctx context.Context, plan Plan) Result {
	if plan.Duration > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, plan.Duration)
		defer stop()
	}
	r := newRun(plan.Seed)
	rnd := rand.New(rand.NewPCG(plan.Seed, 0))
	for n := uint64(0); ctx.Err() == nil && (plan.Ops == 0 || r.ops.Load() < plan.Ops) && !r.failed(); n++ {
		r.segment(ctx, plan.Seed, n)
		r.inspect(rnd)
	}
	r.finish(rnd)
	return r.result()
}

func newRun(seed uint64) *run {
	first := firstEra()
	cards := map[gpu.CardID]*gpu.Card{}
	r := &run{up: map[gpu.NodeID]ledger.Facts{}, refused: map[gpu.Reason]int64{}}
	r.ledger = ledger.New(tenancy.New(first.world))
	for i := range machines {
		f := facts(i, "", 0)
		r.up[f.ID] = f
		r.ledger.SetNode(f)
		for j := range f.Cards {
			cards[f.Cards[j].ID] = &f.Cards[j]
		}
	}
	r.truth = newTruth(cards, first)
	r.server = newServer(r.truth, rand.New(rand.NewPCG(seed, 1)))
	pipe := policy.Default().Pipeline()
	r.engine = engine.New(engine.Config{
		Demand: demand.New(),
		Ledger: r.ledger, Pipeline: func() *pipeline.Pipeline { return pipe }, Pods: r.server, Binder: r.server, Now: r.now,
		Wait: 50 * time.Millisecond, Readback: readback, Retry: 50 * time.Millisecond, Linger: grace,
	})
	return r
}

// How long a bind may take: what hangs is given up soon.
const (
	readback = 60 * time.Millisecond
	bindTime = readback + 10*time.Millisecond
)

// segment lets the workers work, and the engine's own loops.
func (r *run) segment(ctx context.Context, seed, n uint64) {
	until := r.ops.Load() + segment
	loops, stop := context.WithCancel(ctx)
	var looping, working sync.WaitGroup
	looping.Go(func() { _ = r.engine.Run(loops, 20*time.Millisecond) })
	looping.Go(func() { _ = r.engine.Wake(loops, 20*time.Millisecond) })
	for i := range uint64(workers) {
		working.Go(func() {
			for rnd := rand.New(rand.NewPCG(seed, 2+n*workers+i)); ctx.Err() == nil && r.ops.Load() < until && !r.failed(); {
				r.work(rnd)
			}
		})
	}
	working.Wait()
	stop()
	looping.Wait()
}

func (r *run) failed() bool {
	r.truth.mu.Lock()
	defer r.truth.mu.Unlock()
	return len(r.truth.wrong) >= mostTold
}

// result is what has come of it so far.
func (r *run) result() Result {
	t := r.truth
	t.mu.Lock()
	defer t.mu.Unlock()
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	return Result{
		Ops: r.ops.Load(), Pods: r.server.bound, Wrong: slices.Clone(t.wrong), Refused: maps.Clone(r.refused),
		Oversold: t.oversold, Neighbours: t.neighbours, Overquota: t.overquota, Leaked: t.leaked,
	}
}

// Refusals says how often pods were refused, by reason.
func (r Result) Refusals() string {
	text := "refused:"
	for _, reason := range slices.Sorted(maps.Keys(r.Refused)) {
		text += fmt.Sprintf(" %s=%d", reason, r.Refused[reason])
	}
	return text
}
