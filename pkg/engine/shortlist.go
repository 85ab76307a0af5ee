package engine

import (
	"cmp"
	"slices"
)

// narrows reports whether a shortlist may be made of so many nodes.
func (j *judge) narrows(nodes int) bool {
	most := j.pipe.Shortlist()
	return most > 0 && nodes > most && !j.cycle.Request.SoftPreferences
}

// shortlist returns the best of these nodes, in the same order: as many as the policy
// says. They have been rated if narrows said so. Nodes that are left out have nothing against them;
// handing their names back and forth costs kube-scheduler more than the choice
// is worth.
//
// Where kube-scheduler has soft preferences of its own, for the pod or against a
// node, all are returned: its choice is not ours to narrow.
func (j *judge) shortlist(fit []ranking) []ranking {
	if !j.narrows(len(fit)) || j.soft(fit) {
		return fit
	}
	most := j.pipe.Shortlist()
	best := make([]ranking, 0, most+1) // the best first
	for _, r := range fit {
		if len(best) == most && r.compare(best[most-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, r, ranking.compare)
		best = slices.Insert(best, at, r)
		best = best[:min(len(best), most)]
	}
	last := best[len(best)-1]
	return slices.DeleteFunc(fit, func(r ranking) bool { return r.compare(last) > 0 })
}

// soft reports whether kube-scheduler has preferences of its own against a node.
func (j *judge) soft(fit []ranking) bool {
	return slices.ContainsFunc(fit, func(r ranking) bool { return j.snapshot.At(r.place).PreferNoSchedule })
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
