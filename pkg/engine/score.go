package engine

import (
	"cmp"
	"math"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Scored is a node with its score.
type Scored struct {
	Node  gpu.NodeID
	Total float64 // 0..100
	// Parts are what the total is made of, for the nodes of the best rank.
	Parts []pipeline.Part
	// Score is the answer to kube-scheduler, which multiplies it by ten times
	// the extender's weight and adds it to its own plugins' scores.
	Score int64
}

// rankStep times ten is more than all scores together that our kube-scheduler
// profile leaves switched on can differ by (900), so the better rank wins.
const rankStep = 100

// Score rates the nodes, in the order asked, and expects the pod on the best of
// them. It changes nothing that is held.
//
// The answer is the node's rank times rankStep: kube-scheduler breaks ties at
// random, so two nodes never get the same, equal totals going by name. Where it
// has soft preferences of its own for the pod it is a tenth of the total, which
// lets those weigh in. Nodes that there is no time for, see patience, have 0.
func (e *Engine) Score(r *gpu.Request, nodes []gpu.NodeID) []Scored {
	e.hints.drop(r.Pod)
	state, _ := e.view(r)
	e.meet(r, state) // who asks for no card has been through no filter of ours
	now := e.cfg.Now()
	plan, _ := e.hints.plan(state, now)
	judge, done := e.verdicts.judge(r, e.terms(state), plan, now)
	defer done()
	judge.late = e.patient()
	out := make([]Scored, len(nodes))
	soft := r.SoftPreferences
	for k, id := range nodes {
		out[k].Node = id
		if i, ok := plan.Place(id); ok {
			out[k].Total = max(0, judge.total(i))
			soft = soft || plan.At(i).PreferNoSchedule
		}
	}
	best := ranked(out)
	for rank, k := range best {
		if soft {
			out[k].Score = int64(math.Round(out[k].Total / 10))
		} else {
			out[k].Score = int64(len(out)-rank) * rankStep
		}
	}
	if len(best) > 0 {
		e.expect(r, judge, out[best[0]].Node)
	}
	judge.explainBest(out, best)
	e.decisions.scored(r.Pod, out, best)
	return out
}

// explainBest says what the scores of the best nodes are made of.
func (j *judge) explainBest(out []Scored, best []int) {
	for _, k := range best[:min(bestShown, len(best))] {
		if i, ok := j.snapshot.Place(out[k].Node); ok {
			_, out[k].Parts = j.pipe.Rate(j.cycle, j.node(i))
		}
	}
}

// ranked returns the places in s, the best first.
func ranked(s []Scored) []int {
	places := make([]int, len(s))
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(i, j int) int {
		return cmp.Or(cmp.Compare(s[j].Total, s[i].Total), cmp.Compare(s[i].Node, s[j].Node))
	})
	return places
}
