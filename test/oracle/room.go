package oracle

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Room is World.Room where there is nothing but nodes and pods.
func Room(nodes []corev1.Node, pods []corev1.Pod, pod *corev1.Pod) []string {
	return World{Nodes: nodes, Pods: pods}.Room(pod)
}

// Room returns the names of the nodes on which the pod would fit beside the
// pods that are there, found by trying every choice of cards. Of what else may
// keep a pod away it knows readiness, cordons, taints (all are taken for
// intolerable), processors and main memory. It tells no node for a pod that
// asks for no cards or whose request is invalid.
func (w World) Room(pod *corev1.Pod) []string {
	wanted, err := asks(pod)
	if err != nil || len(wanted) == 0 {
		return nil
	}
	b := newBooks(w)
	if !b.rules.owner(pod.Namespace).active {
		return nil
	}
	b.enterAll(w.Pods)
	var fit []string
	for _, name := range slices.Sorted(maps.Keys(b.nodes)) {
		n := b.nodes[name]
		if open(n.object) && roomy(n.object, w.Pods, pod) && b.rules.mayUse(pod.Namespace, n.object) && newSearch(b, pod, n, wanted).fits(0) {
			fit = append(fit, name)
		}
	}
	return fit
}

// open reports whether the node takes new pods.
func open(node *corev1.Node) bool {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return ready && !node.Spec.Unschedulable && len(node.Spec.Taints) == 0
}

// roomy reports whether the node has processors and main memory for the pod.
func roomy(node *corev1.Node, pods []corev1.Pod, pod *corev1.Pod) bool {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		used := requested(pod, name)
		for i := range pods {
			if pods[i].Spec.NodeName == node.Name && !ended(&pods[i]) {
				used.Add(requested(&pods[i], name))
			}
		}
		if used.Cmp(node.Status.Allocatable[name]) > 0 {
			return false
		}
	}
	return true
}

// requested is what a pod takes of a node, at most: init containers are counted
// as if they ran beside the rest.
func requested(pod *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	var sum resource.Quantity
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			sum.Add(list[i].Resources.Requests[name])
		}
	}
	return sum
}

// search tries to place a pod's containers on one node, card by card.
type search struct {
	books  *books
	pod    *corev1.Pod
	wanted []ask
	cards  []*entry // in a fixed order
	mine   []parts  // of the pod itself, per card
	chosen [][]int  // cards of each ask
}

func newSearch(b *books, pod *corev1.Pod, n *node, wanted []ask) *search {
	s := &search{books: b, pod: pod, wanted: wanted, mine: make([]parts, len(n.cards)), chosen: make([][]int, len(wanted))}
	for _, uuid := range slices.Sorted(maps.Keys(n.cards)) {
		s.cards = append(s.cards, n.cards[uuid])
	}
	return s
}

// fits reports whether the asks from number at on can all be met.
func (s *search) fits(at int) bool {
	if at == len(s.wanted) {
		return s.books.bears(s.bill())
	}
	vendors := map[string]bool{}
	for _, c := range s.cards {
		vendors[c.Vendor] = true
	}
	for v := range vendors {
		if s.choose(at, v, s.wanted[at].count, 0) {
			return true
		}
	}
	return false
}

// choose takes left more cards of a vendor for ask number at, each from a
// higher place than the one before, and then goes on with the next ask.
func (s *search) choose(at int, vendor string, left int64, from int) bool {
	if left == 0 {
		return s.fits(at + 1)
	}
	for i := from; i < len(s.cards); i++ {
		if s.cards[i].Vendor != vendor || !s.may(at, i) {
			continue
		}
		before := s.mine[i]
		s.mine[i].add(s.wanted[at].role, s.wanted[at].on(&s.cards[i].card))
		s.chosen[at] = append(s.chosen[at], i)
		if s.within(i) && s.choose(at, vendor, left-1, i+1) {
			return true
		}
		s.chosen[at] = s.chosen[at][:len(s.chosen[at])-1]
		s.mine[i] = before
	}
	return false
}

// may reports whether a card is of the kind that the ask wants.
func (s *search) may(at, i int) bool {
	a, c := &s.wanted[at], &s.cards[i].card
	kind := a.whole && c.whole() || !a.whole && c.sliced()
	return kind && c.Healthy && suits(s.pod, a, c) == ""
}

// within reports whether a card bears its holders and the pod together.
func (s *search) within(i int) bool {
	together := *s.cards[i]
	together.holders = append(slices.Clone(together.holders), holder{"the pod", s.pod.Namespace, s.mine[i].sum()})
	return len(together.faults())+len(s.books.neighbours(&together)) == 0
}

// bill is what the pod would be charged for what is chosen.
func (s *search) bill() bill {
	taken := make([]map[*card]use, len(s.wanted))
	for at := range s.wanted {
		taken[at] = map[*card]use{}
		for _, i := range s.chosen[at] {
			taken[at][&s.cards[i].card] = s.wanted[at].on(&s.cards[i].card)
		}
	}
	return bill{"the pod", s.pod.Namespace, charges(s.wanted, taken)}
}
