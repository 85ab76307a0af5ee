package ledger

import (
	"maps"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// members says which nodes, known or not, have pods of each group: always just what
// the holds say. It never changes: a change copies one part of it, so that it costs
// the same whatever the number of groups a cluster has. The zero value has nobody.
type members struct {
	parts *[parts]map[gpu.GroupID][]gpu.NodeID // group -> its nodes in order; never edited; nil when there are none
}

// parts is how many parts there are: of ten thousand groups a change copies forty.
const parts = 256

// of returns the group's nodes, in order. They are never edited.
func (m members) of(g gpu.GroupID) []gpu.NodeID {
	if m.parts == nil {
		return nil
	}
	return m.parts[partOf(g)][g]
}

// enter returns the members with h among them.
func (m members) enter(h *Hold) members {
	if h.Group == "" {
		return m
	}
	nodes := m.of(h.Group)
	i, there := slices.BinarySearch(nodes, h.Node)
	if there {
		return m
	}
	return m.set(h.Group, slices.Insert(slices.Clone(nodes), i, h.Node))
}

// leave returns the members without h, which was on a node where rest still are.
func (m members) leave(h *Hold, rest []*Hold) members {
	peer := func(o *Hold) bool { return o.Group == h.Group }
	if h.Group == "" || slices.ContainsFunc(rest, peer) {
		return m
	}
	nodes := m.of(h.Group)
	i, there := slices.BinarySearch(nodes, h.Node)
	if !there {
		return m
	}
	return m.set(h.Group, slices.Delete(slices.Clone(nodes), i, i+1))
}

func (m members) set(g gpu.GroupID, nodes []gpu.NodeID) members {
	var next [parts]map[gpu.GroupID][]gpu.NodeID
	if m.parts != nil {
		next = *m.parts
	}
	part := make(map[gpu.GroupID][]gpu.NodeID, len(next[partOf(g)])+1)
	maps.Copy(part, next[partOf(g)])
	if part[g] = nodes; len(nodes) == 0 {
		delete(part, g)
	}
	next[partOf(g)] = part
	return members{&next}
}

// partOf spreads the groups over the parts (FNV-1a).
func partOf(g gpu.GroupID) int {
	sum := uint32(2166136261)
	for i := range len(g) {
		sum = (sum ^ uint32(g[i])) * 16777619
	}
	return int(sum % parts)
}

// Members returns the nodes, known or not, on which pods of the group hold
// something, in order. The list is never edited. "" is no group.
func (s Snapshot) Members(g gpu.GroupID) []gpu.NodeID { return s.members.of(g) }
