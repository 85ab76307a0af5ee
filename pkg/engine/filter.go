package engine

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Refused is a node that does not do, with the reason.
type Refused struct {
	Node    gpu.NodeID
	Verdict pipeline.Verdict
}

// Filtered answers which nodes a request fits.
type Filtered struct {
	// Feasible are the best of the nodes that fit, in the order asked; see
	// judge.shortlist. Fit is how many fit.
	Feasible []gpu.NodeID
	Fit      int
	Refused  []Refused // in the order asked
	// Reason is the one code to give for all refused nodes. A text that
	// differed from node to node would change with kube-scheduler's sample of
	// them; a changed text is an update of the pod, which wakes it at once.
	Reason gpu.Reason
	// Summary covers the whole cluster when no node asked about fits.
	Summary Summary
}

// Filter says which of the nodes the request fits now. It changes nothing that
// is held; a pod that fits none is remembered, see Wake.
//
// Where other pods are expected, see hints, counts as taken, unless that alone
// would leave the request without a node: then who binds first has it.
//
// Who waits for others to make room goes where that is claimed, see ledger.Claim, and
// to no other node: they are ended for that one.
func (e *Engine) Filter(r *gpu.Request, nodes []gpu.NodeID) Filtered {
	e.hints.drop(r.Pod)
	state, claimed := e.view(r)
	e.meet(r, state)
	now := e.cfg.Now()
	plan, differs := e.hints.plan(state, now)
	judge, done := e.verdicts.judge(r, e.terms(state), plan, now)
	defer done()
	judge.late, judge.claimed = e.patient(), claimed
	fit, refused := judge.sort(nodes)
	if len(fit) == 0 && differs {
		judge.look(r, state)
		fit, refused = judge.sort(nodes)
	}
	out := Filtered{Fit: len(fit), Refused: refused}
	if len(fit) > 0 {
		out.Reason = mostFrequent(refused)
	} else {
		out.Reason, out.Summary = judge.explain(refused)
		if out.Summary.Unoffered == 0 {
			out.Summary.Coming, out.Summary.Kept = judge.ahead()
		}
	}
	out.Feasible = judge.names(judge.shortlist(fit))
	if len(out.Feasible) == 1 { // kube-scheduler will not ask for a score
		e.expect(r, judge, out.Feasible[0])
	}
	e.note(r, &out, len(nodes), judge)
	return out
}

// note remembers the decision.
func (e *Engine) note(r *gpu.Request, out *Filtered, asked int, j *judge) {
	e.decisions.filtered(r.Pod, out.Fit, asked)
	switch {
	case out.Fit > 0:
		e.waiting.forget(r.Pod)
	case out.Summary.Unoffered > 0, j.claimed != "": // a node fits now, or may while it waits, so that nothing has been seen
		e.waiting.refused(r, whoseIs(r, j.snapshot), ledger.Snapshot{}, j.dear)
	default:
		e.waiting.refused(r, whoseIs(r, j.snapshot), j.snapshot, j.dear)
	}
}

// expect notes that the pod is about to be bound to the node, of those judged.
func (e *Engine) expect(r *gpu.Request, by *judge, node gpu.NodeID) {
	n, ok := by.snapshot.Node(node)
	if !ok {
		return
	}
	if by.claimed != "" {
		n = n.Unkept()
	}
	s := stand(r, by.snapshot, by.terms, by.now)
	if p, v := s.assign(n); v.OK() {
		e.hints.put(r, p, e.cfg.Now())
	}
}

// sort returns the nodes that fit, and the others. Those that fit are rated at once
// where the best of them are wanted: what a verdict was found by helps there.
func (j *judge) sort(nodes []gpu.NodeID) (fit []ranking, refused []Refused) {
	rate := j.narrows(len(nodes))
	for k, id := range nodes {
		v := pipeline.Verdict{Reason: gpu.NodeNotRegistered}
		i, known := j.snapshot.Place(id)
		if known {
			v = j.of(i)
		}
		if left := len(nodes) - k; v.OK() {
			r := ranking{place: i}
			if rate {
				r.total = j.total(i)
			}
			fit = append(roomy(fit, left), r)
		} else {
			refused = append(roomy(refused, left), Refused{id, v})
		}
	}
	return fit, refused
}

// roomy makes the slice, if there is none yet, large enough for n: there may be
// thousands of nodes of one kind and none of the other.
func roomy[T any](s []T, n int) []T {
	if s == nil {
		s = make([]T, 0, n)
	}
	return s
}

// names returns the nodes of the rankings.
func (j *judge) names(of []ranking) []gpu.NodeID {
	ids := make([]gpu.NodeID, len(of))
	for k := range of {
		ids[k] = j.snapshot.At(of[k].place).ID
	}
	return ids
}

// mostFrequent is the reason to give for these nodes where others fit.
func mostFrequent(refused []Refused) gpu.Reason {
	var t tally
	for i := range refused {
		t.add(refused[i].Node, refused[i].Verdict)
	}
	return t.dominant()
}

// explain finds the reason where none of the nodes asked about fits, all of them
// being refused. It goes by the whole cluster, and by no node that is not in it,
// so that the answer does not depend on the sample that kube-scheduler drew.
func (j *judge) explain(refused []Refused) (gpu.Reason, Summary) {
	var t tally
	for i := range j.snapshot.Len() {
		if v := j.of(i); v.OK() {
			t.unoffered++
		} else {
			t.add(j.snapshot.At(i).ID, v)
		}
	}
	if len(t.counts) == 0 && len(refused) > 0 {
		return gpu.NodeNotRegistered, t.summary() // none of them is known
	}
	return t.dominant(), t.summary()
}
