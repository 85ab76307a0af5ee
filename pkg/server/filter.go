package server

import (
	"context"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	extender "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/metrics"
)

func (s *Server) filter(w http.ResponseWriter, r *http.Request, t turn) {
	pod, nodes, err := question(w, r)
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, s.filtered(r.Context(), pod, &nodes, t))
}

// filtered finds the answer. Error is for faults alone, as kube-scheduler then
// tries again for ever: a request that can never be met is refused instead, on
// every node and beyond what evicting pods could change.
func (s *Server) filtered(ctx context.Context, pod *corev1.Pod, nodes *candidates, t turn) extender.ExtenderFilterResult {
	request, err := s.cfg.Decode(pod)
	switch {
	case err != nil:
		return s.invalid(ctx, pod, nodes, err)
	case !request.AsksForCards():
		s.cfg.Metrics.Filtered(metrics.Passed)
		logPassed(ctx, pod)
		return nodes.answer(len(nodes.ids), all)
	case t.not != "":
		return extender.ExtenderFilterResult{Error: t.not}
	case len(nodes.ids) == 0:
		return nodes.answer(len(nodes.ids), all)
	}
	f := s.cfg.Engine.Filter(&request, nodes.ids)
	s.tellFiltered(ctx, &request, nodes, &f)
	return filterAnswer(nodes, &f)
}

// filterAnswer leaves out of the answer what is neither feasible nor refused.
func filterAnswer(nodes *candidates, f *engine.Filtered) extender.ExtenderFilterResult {
	feasible := make(map[gpu.NodeID]bool, len(f.Feasible))
	for _, id := range f.Feasible {
		feasible[id] = true
	}
	answer := nodes.answer(len(f.Feasible), func(id gpu.NodeID) bool { return feasible[id] })
	answer.FailedNodes = make(extender.FailedNodesMap, len(f.Refused))
	for i := range f.Refused {
		answer.FailedNodes[string(f.Refused[i].Node)] = string(f.Reason)
	}
	return answer
}

// tellFiltered logs, counts and reports a decision.
func (s *Server) tellFiltered(ctx context.Context, r *gpu.Request, nodes *candidates, f *engine.Filtered) {
	s.logFiltered(ctx, r, nodes.ids, f)
	s.countRefused(f.Refused)
	if len(f.Feasible) > 0 {
		s.cfg.Metrics.Filtered(metrics.Feasible)
		return
	}
	s.cfg.Metrics.Filtered(metrics.Refused)
	s.cfg.Reporter.Refused(r, f.Reason, f.Summary.Codes(), f.Summary.String())
}

// countRefused counts nodes by their reason, of which there are few.
func (s *Server) countRefused(refused []engine.Refused) {
	byReason := map[gpu.Reason]int{}
	for start := 0; start < len(refused); {
		end := start + 1 // of a run of one reason
		for end < len(refused) && refused[end].Verdict.Reason == refused[start].Verdict.Reason {
			end++
		}
		byReason[refused[start].Verdict.Reason] += end - start
		start = end
	}
	for reason, n := range byReason {
		s.cfg.Metrics.NodesRefused(reason, n)
	}
}

// invalid refuses a request that cannot be understood. What is wrong with it
// goes into the event; the answer has the code alone.
func (s *Server) invalid(ctx context.Context, pod *corev1.Pod, nodes *candidates, cause error) extender.ExtenderFilterResult {
	s.cfg.Metrics.Filtered(metrics.Invalid)
	s.cfg.Metrics.NodesRefused(gpu.InvalidRequest, len(nodes.ids))
	logInvalid(ctx, pod, cause)
	r := gpu.Request{Pod: gpu.PodID(pod.UID), Namespace: pod.Namespace, Name: pod.Name}
	text := strings.ReplaceAll(cause.Error(), "\n", "; ") // several faults are a line each
	s.cfg.Reporter.Refused(&r, gpu.InvalidRequest, string(gpu.InvalidRequest)+" "+text, text)
	answer := nodes.answer(0, none)
	answer.FailedAndUnresolvableNodes = failed(nodes.ids, gpu.InvalidRequest)
	return answer
}
