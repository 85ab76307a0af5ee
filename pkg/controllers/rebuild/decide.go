package rebuild

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// settles is for how long a new pod is waited for: after that its group goes on
	// without it.
	settles = 5 * time.Minute
	// leaves is how long a pod that was evicted counts as on its way: its owner makes
	// another meanwhile. On a dead node it itself may stay for ever.
	leaves = 30 * time.Second
	// fewNodes are so few that more than half of them are lost easily.
	fewNodes = 2
)

// plan is who is to be looked at anew, in order, and evicted if nothing is otherwise.
type plan struct {
	turns  []turn
	halted []halt
}

// turn is a pod's.
type turn struct {
	pod  *corev1.Pod
	of   *group
	loss loss
	left *int // how many of the group may be evicted yet
}

// halt is a group of which nobody is evicted from nodes that are not ready.
type halt struct {
	of              *group
	notReady, nodes int
	whose           string
}

// decide says who is to go: who was not looked at before first, then those whose nodes
// are lost for longest.
func decide(s *seen, rules Rules) (p plan) {
	for _, g := range s.groups {
		h, halts := s.halts(g)
		left, held := rules.AtOnce-s.underWay(g), false
		for _, pod := range g.members {
			l, overdue := s.overdue(pod, rules.Grace)
			switch {
			case !overdue:
			case halts && !l.gone:
				held = true
			case left > 0 && !s.now.Before(s.rests[pod.UID]):
				p.turns = append(p.turns, turn{pod, g, l, &left})
			}
		}
		if held {
			p.halted = append(p.halted, h)
		}
	}
	slices.SortFunc(p.turns, func(a, b turn) int {
		return cmp.Or(s.tried[a.pod.UID].Compare(s.tried[b.pod.UID]), a.loss.since.Compare(b.loss.since),
			cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	return p
}

// overdue reports whether the pod's node is lost for longer than the grace, and it has
// not been asked to go.
func (s *seen) overdue(pod *corev1.Pod, grace time.Duration) (loss, bool) {
	l, lost := s.lost[pod.Spec.NodeName]
	return l, lost && pod.DeletionTimestamp == nil && s.now.Sub(l.since) >= grace
}

// underWay counts the members that have gone a moment ago, and those that are to come:
// mostly the same, so that the greater number counts.
func (s *seen) underWay(g *group) int {
	going, coming := 0, 0
	for _, e := range s.evicted {
		if e.of == g.UID && within(s.now.Sub(e.at), leaves) {
			going++
		}
	}
	for _, pod := range g.members {
		switch _, lost := s.lost[pod.Spec.NodeName]; {
		case pod.Spec.NodeName == "":
			if pod.DeletionTimestamp == nil && within(s.now.Sub(pod.CreationTimestamp.Time), settles) {
				coming++
			}
		case lost && pod.DeletionTimestamp != nil && within(s.now.Sub(asked(pod)), leaves):
			if _, ours := s.evicted[pod.UID]; !ours {
				going++
			}
		}
	}
	return max(going, coming)
}

// within reports whether so long ago is less than that. Clocks differ: what lies ahead
// by less is of a moment ago too, and what lies ahead by more says nothing.
func within(ago, less time.Duration) bool { return ago < less && ago > -less }

// asked is when the pod was asked to go: the API server notes when its grace ends.
func asked(pod *corev1.Pod) time.Time {
	grace := time.Duration(0)
	if s := pod.DeletionGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	return pod.DeletionTimestamp.Add(-grace)
}

// halts reports whether so many nodes are not ready at once that none of the group is
// evicted from one.
func (s *seen) halts(g *group) (halt, bool) {
	if s.notReady == s.nodes || s.nodes > fewNodes && 2*s.notReady > s.nodes {
		return halt{g, s.notReady, s.nodes, "of the cluster"}, true
	}
	there, notReady := map[string]struct{}{}, 0
	for _, pod := range g.members {
		name := pod.Spec.NodeName
		l, lost := s.lost[name]
		if _, counted := there[name]; counted || name == "" || l.gone || pod.DeletionTimestamp != nil {
			continue
		}
		there[name] = struct{}{}
		if lost {
			notReady++
		}
	}
	return halt{g, notReady, len(there), "on which its pods are"}, len(there) > fewNodes && 2*notReady > len(there)
}
