package simulate

import (
	"cmp"
	"slices"
)

// Part returns the trace with so many of its nodes, of each kind as many as is its
// share, and with the same pods: Arrive has as many of those come as is right for the
// nodes. Which nodes of a kind are taken does not matter, as they differ in their names
// alone: the first ones are.
func (t *Trace) Part(nodes int) *Trace {
	taken := t.shares(nodes)
	part := &Trace{Name: t.Name, Pods: t.Pods}
	for _, n := range t.Nodes {
		if k := kindOf(n); taken[k] > 0 {
			taken[k]--
			part.Nodes = append(part.Nodes, n)
		}
	}
	return part
}

// kindOf is the node without its name.
func kindOf(n Node) Node {
	n.Name = ""
	return n
}

// shares says how many nodes of each kind make so many: the whole part of its share,
// and one more of those of which the most is left over, the kinds that come first in the
// file before others.
func (t *Trace) shares(nodes int) map[Node]int {
	var kinds []Node // in the order of the file
	counts := map[Node]int{}
	for _, n := range t.Nodes {
		k := kindOf(n)
		if counts[k] == 0 {
			kinds = append(kinds, k)
		}
		counts[k]++
	}
	all, left, taken := max(1, len(t.Nodes)), nodes, map[Node]int{}
	for _, k := range kinds {
		taken[k] = counts[k] * nodes / all
		left -= taken[k]
	}
	over := func(k Node) int { return counts[k] * nodes % all }
	slices.SortStableFunc(kinds, func(a, b Node) int { return cmp.Compare(over(b), over(a)) })
	for _, k := range kinds[:min(max(0, left), len(kinds))] {
		taken[k]++
	}
	return taken
}
