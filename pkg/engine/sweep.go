package engine

import (
	"context"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Run looks, every so often, after holds that nobody confirms, until ctx ends:
// those of binds whose outcome could not be read back, and whose pods are not
// bound again. It looks them up at the API server and gives back what is not
// bound. A hold is looked up when it has been there for one to two periods; by
// then the informer has long confirmed those of binds that happened.
func (e *Engine) Run(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var before map[gpu.PodID]bool
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			before = e.sweep(ctx, before)
		}
	}
}

// sweep settles the unconfirmed holds that were there before, and returns all
// that are there now.
func (e *Engine) sweep(ctx context.Context, before map[gpu.PodID]bool) map[gpu.PodID]bool {
	now := map[gpu.PodID]bool{}
	answered := true
	for _, h := range e.cfg.Ledger.Unconfirmed() {
		now[h.Pod] = true
		// While the API server does not answer, one question is enough.
		if before[h.Pod] && answered {
			answered = e.resolve(ctx, &h.Placement)
		}
	}
	return now
}

// resolve settles one hold, unless a bind of its pod is in progress. False means
// that the API server did not answer.
func (e *Engine) resolve(ctx context.Context, p *gpu.Placement) (answered bool) {
	leave, free := e.pods.tryEnter(p.Pod)
	if !free {
		return true
	}
	defer leave()
	if h, ok := e.cfg.Ledger.Hold(p.Pod); !ok || h.State != ledger.Held {
		return true
	}
	_, err := e.settle(ctx, Target{Pod: p.Pod, Namespace: p.Namespace, Name: p.Name, Node: p.Node})
	return err == nil
}
