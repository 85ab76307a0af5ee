package engine

import (
	"cmp"
	"slices"
)

// shortlist returns the best of the nodes at these places, in the same order: as
// many as the policy says. Nodes that are left out have nothing against them;
// handing their names back and forth costs kube-scheduler more than the choice
// is worth.
//
// Where kube-scheduler has soft preferences of its own, for the pod or against a
// node, all are returned: its choice is not ours to narrow.
func (j *judge) shortlist(fit []int) []int {
	most := j.pipe.Shortlist()
	if most == 0 || len(fit) <= most || j.soft(fit) {
		return fit
	}
	best := make([]ranking, 0, most+1) // the best first
	for _, i := range fit {
		r := ranking{i, j.total(i)}
		if len(best) == most && r.compare(best[most-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, r, ranking.compare)
		best = slices.Insert(best, at, r)
		best = best[:min(len(best), most)]
	}
	last := best[len(best)-1]
	return slices.DeleteFunc(fit, func(i int) bool { return ranking{i, j.total(i)}.compare(last) > 0 })
}

// soft reports whether kube-scheduler has preferences of its own to weigh.
func (j *judge) soft(fit []int) bool {
	return j.cycle.Request.SoftPreferences ||
		slices.ContainsFunc(fit, func(i int) bool { return j.snapshot.At(i).PreferNoSchedule })
}

// ranking is a node by its place, with its score.
type ranking struct {
	place int
	total float64
}

// compare puts the better one first: the higher score, then the name, whose order
// is that of the places.
func (r ranking) compare(o ranking) int {
	return cmp.Or(cmp.Compare(o.total, r.total), cmp.Compare(r.place, o.place))
}
