package server

import (
	"context"
	"errors"
	"net/http"

	extender "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/metrics"
)

func (s *Server) bind(w http.ResponseWriter, r *http.Request, t turn) {
	var args extender.ExtenderBindingArgs
	if err := decode(w, r, &args); err != nil {
		refuse(w, err)
		return
	}
	target, err := targetOf(&args)
	if err != nil {
		refuse(w, err)
		return
	}
	if t.not != "" {
		reply(w, extender.ExtenderBindingResult{Error: t.not})
		return
	}
	// kube-scheduler hangs up when its httpTimeout has passed, which ends the
	// request's context. A bind that ended with it would leave it open whether
	// the pod is bound.
	ctx, stop := context.WithDeadline(context.WithoutCancel(r.Context()), t.until)
	defer stop()
	var answer extender.ExtenderBindingResult
	if err := s.bound(ctx, target); err != nil {
		answer.Error = err.Error()
	}
	reply(w, answer)
}

func targetOf(args *extender.ExtenderBindingArgs) (engine.Target, error) {
	for _, f := range []struct{ name, value string }{
		{"PodName", args.PodName}, {"PodNamespace", args.PodNamespace}, {"PodUID", string(args.PodUID)}, {"Node", args.Node},
	} {
		if f.value == "" {
			return engine.Target{}, bad("%s: is missing or empty", f.name)
		}
	}
	return engine.Target{
		Pod: gpu.PodID(args.PodUID), Namespace: args.PodNamespace, Name: args.PodName, Node: gpu.NodeID(args.Node),
	}, nil
}

// bound has the pod bound, and logs, counts and reports it.
func (s *Server) bound(ctx context.Context, t engine.Target) error {
	outcome := metrics.BindError
	s.cfg.Metrics.BindStarted()
	defer func() { s.cfg.Metrics.Bound(outcome) }() // deferred: a panic must not leave it in flight
	b, err := s.cfg.Engine.Bind(ctx, t)
	outcome = bindOutcome(b, err)
	logBound(ctx, t, &b, err)
	if outcome == metrics.BindBound {
		s.cfg.Reporter.Bound(b)
	}
	return err
}

// bindOutcome sorts bind's answers. A reason of the pipeline is a conflict: the
// same checks let the node pass at filter, so something has changed since.
func bindOutcome(b engine.Bound, err error) metrics.BindOutcome {
	var refusal *engine.Refusal
	switch {
	case err == nil && b.Already:
		return metrics.BindAlready
	case err == nil:
		return metrics.BindBound
	case errors.Is(err, engine.ErrUnknown):
		return metrics.BindUnknown
	case !errors.As(err, &refusal):
		return metrics.BindError
	case errors.Is(err, engine.ErrRefused), refusal.Reason == gpu.InvalidRequest:
		return metrics.BindRefused
	}
	return metrics.BindConflict
}
