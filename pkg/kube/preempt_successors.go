package kube

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
)

// owedIndex finds Preemptions by the owners that have yet to make a victim anew.
const owedIndex = "owed"

// owed is a cache.IndexFunc: the UIDs of the owners of victims that have no successor
// yet.
func owed(object any) ([]string, error) {
	p, ok := object.(*v1alpha1.Preemption)
	if !ok {
		return nil, nil
	}
	var owners []string
	for i := range p.Spec.Victims {
		if owner := p.Spec.Victims[i].Owner; owner != nil && unmet(p, i) && !slices.Contains(owners, string(owner.UID)) {
			owners = append(owners, string(owner.UID))
		}
	}
	return owners, nil
}

// unmet reports whether the victim has been asked to go and has no successor.
func unmet(p *v1alpha1.Preemption, victim int) bool {
	state := p.VictimState(victim)
	return (state == v1alpha1.VictimEvicting || state == v1alpha1.VictimGone) && p.Status.Victims[victim].Successor == ""
}

// Succeeds reports whether a new pod of the owner is one that was ended for another,
// and how often its lives were. It goes by what has been seen: of an owner that makes
// several pods while one is owed, all count as it.
func (c *Cluster) Succeeds(owner types.UID) (count int, ok bool) {
	return succeeds(c.kinds.Heteroflow().V1alpha1().Preemptions().Informer().GetIndexer(), owner)
}

func succeeds(in cache.Indexer, owner types.UID) (count int, ok bool) {
	found, err := in.ByIndex(owedIndex, string(owner))
	if err != nil { // an index that does not exist
		return 0, false
	}
	for _, object := range found {
		p, is := object.(*v1alpha1.Preemption)
		if !is {
			continue
		}
		for i := range p.Spec.Victims {
			if v := &p.Spec.Victims[i]; v.Owner != nil && v.Owner.UID == owner && unmet(p, i) {
				count, ok = max(count, int(v.Count), 1), true
			}
		}
	}
	return count, ok
}
