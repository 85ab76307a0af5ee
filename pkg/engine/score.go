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
// lets those weigh in.
func (e *Engine) Score(r *gpu.Request, nodes []gpu.NodeID) []Scored {
	e.hints.drop(r.Pod)
	snapshot, _ := e.hints.plan(e.view(r), e.cfg.Now())
	pipe := e.cfg.Pipeline()
	cycle := &pipeline.Cycle{Request: r}
	out := make([]Scored, len(nodes))
	soft := r.SoftPreferences
	for i, id := range nodes {
		out[i].Node = id
		if n, ok := snapshot.Node(id); ok {
			out[i].Total, out[i].Parts = pipe.Rate(cycle, n)
			soft = soft || n.PreferNoSchedule
		}
	}
	best := ranked(out)
	for rank, i := range best {
		if soft {
			out[i].Score = int64(math.Round(out[i].Total / 10))
		} else {
			out[i].Score = int64(len(out)-rank) * rankStep
		}
	}
	if len(best) > 0 {
		e.expect(r, snapshot, out[best[0]].Node)
	}
	e.decisions.scored(r.Pod, out, best)
	return out
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
