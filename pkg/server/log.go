package server

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// Verbosity: one line per decision, per node, per card.
const (
	perDecision = 2
	perNode     = 4
	perCard     = 5
)

func logPassed(ctx context.Context, pod *corev1.Pod) {
	klog.FromContext(ctx).V(perNode).Info("pod asks for no card", "pod", klog.KObj(pod), "podUID", pod.UID)
}

func logInvalid(ctx context.Context, pod *corev1.Pod, cause error) {
	klog.FromContext(ctx).V(perDecision).Info("filtered", "pod", klog.KObj(pod), "podUID", pod.UID,
		"feasible", 0, "reason", gpu.InvalidRequest, "cause", cause)
}

func (s *Server) logFiltered(ctx context.Context, r *gpu.Request, asked []gpu.NodeID, f *engine.Filtered) {
	logger := klog.FromContext(ctx)
	if !logger.V(perDecision).Enabled() {
		return
	}
	logger = klog.LoggerWithValues(logger, "pod", klog.KRef(r.Namespace, r.Name), "podUID", r.Pod)
	if len(f.Refused) == 0 {
		logger.V(perDecision).Info("filtered", "feasible", f.Fit, "named", len(f.Feasible), "refused", 0)
	} else {
		logger.V(perDecision).Info("filtered", "feasible", f.Fit, "named", len(f.Feasible), "refused", len(f.Refused), "reason", f.Reason)
	}
	if logger.V(perNode).Enabled() {
		s.logNodes(logger, asked, f)
	}
}

// logNodes says what came of each node, in the order asked.
func (s *Server) logNodes(logger klog.Logger, asked []gpu.NodeID, f *engine.Filtered) {
	line := logger.V(perNode)
	named, refused := f.Feasible, f.Refused
	for _, id := range asked {
		switch {
		case len(named) > 0 && named[0] == id:
			named = named[1:]
			line.Info("node fits", "node", id)
		case len(refused) > 0 && refused[0].Node == id:
			v := refused[0].Verdict
			refused = refused[1:]
			line.Info("node refused", "node", id, "reason", v.Reason, "have", v.Have, "want", v.Want)
		default:
			line.Info("node fits, others are better", "node", id)
		}
		s.logCards(logger, id)
	}
}

// logCards says how the node's cards stand now, which may be a moment after the
// decision.
func (s *Server) logCards(logger klog.Logger, id gpu.NodeID) {
	if logger = logger.V(perCard); !logger.Enabled() {
		return
	}
	n, ok := s.cfg.Ledger().Node(id)
	if !ok {
		return
	}
	for i := range n.Cards {
		c := &n.Cards[i]
		logger.Info("card", "node", id, "card", c.ID, "vendor", c.Vendor, "model", c.Model,
			"healthy", c.Healthy, "cordoned", c.Cordoned, "closed", c.Closed, "holders", len(c.Holders),
			"freeMiB", c.FreeMemory(), "freeCores", c.FreeCores(), "freeSlots", c.FreeSlots())
	}
}

func logScored(ctx context.Context, r *gpu.Request, scored []engine.Scored) {
	logger := klog.FromContext(ctx)
	if !logger.V(perDecision).Enabled() {
		return
	}
	logger = klog.LoggerWithValues(logger, "pod", klog.KRef(r.Namespace, r.Name), "podUID", r.Pod)
	logger.V(perDecision).Info("scored", "nodes", len(scored))
	if !logger.V(perNode).Enabled() {
		return
	}
	for i := range scored {
		logger.V(perNode).Info("node scored", "node", scored[i].Node, "total", scored[i].Total, "answer", scored[i].Score, "parts", scored[i].Parts)
	}
}

func logBound(ctx context.Context, t engine.Target, b *engine.Bound, err error) {
	logger := klog.FromContext(ctx).V(perDecision)
	if !logger.Enabled() {
		return
	}
	logger = klog.LoggerWithValues(logger, "pod", klog.KRef(t.Namespace, t.Name), "podUID", t.Pod, "node", t.Node)
	switch {
	case err != nil:
		logger.Info("not bound", "cause", err)
	case b.Already:
		logger.Info("bound already")
	default:
		logger.Info("bound", "cards", cardsOf(&b.Placement))
	}
}

// cardsOf names each card once, in order.
func cardsOf(p *gpu.Placement) []gpu.CardID {
	uses := p.Uses()
	ids := make([]gpu.CardID, len(uses))
	for i := range uses {
		ids[i] = uses[i].Card
	}
	return ids
}
