package ledger

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Snapshot is the cluster at one moment. It never changes and costs nothing to
// pass around. The zero Snapshot has no nodes.
type Snapshot struct {
	nodes   []*Node            // ordered by name; never edited
	index   map[gpu.NodeID]int // node -> its place in nodes; never edited
	instead map[int]*Node      // place in nodes -> what stands there since With or Without; never edited
	rules   Rules              // those in force; nil in the zero Snapshot
	spent   spent              // shared, and so never edited
	members members
	claims  *claims

	services []*Service // ordered by group; never edited
	keeps    bool       // something is kept on some node
}

// arrange returns the snapshot of these nodes.
func arrange(nodes map[gpu.NodeID]*Node) Snapshot {
	s := Snapshot{nodes: make([]*Node, 0, len(nodes)), index: make(map[gpu.NodeID]int, len(nodes))}
	for i, id := range slices.Sorted(maps.Keys(nodes)) {
		s.nodes = append(s.nodes, nodes[id])
		s.index[id] = i
	}
	return s
}

// Len returns how many nodes there are.
func (s Snapshot) Len() int { return len(s.nodes) }

// Node returns the node of that name, false when there is none.
func (s Snapshot) Node(id gpu.NodeID) (*Node, bool) {
	i, ok := s.index[id]
	if !ok {
		return nil, false
	}
	return s.At(i), true
}

// Place returns where the node of that name comes in the order of Nodes, false
// when there is none.
func (s Snapshot) Place(id gpu.NodeID) (int, bool) {
	i, ok := s.index[id]
	return i, ok
}

// At returns the node at that place.
func (s Snapshot) At(i int) *Node {
	if len(s.instead) > 0 {
		if n, ok := s.instead[i]; ok {
			return n
		}
	}
	return s.nodes[i]
}

// Nodes yields every node in name order, so two runs over equal snapshots decide
// alike.
func (s Snapshot) Nodes() iter.Seq2[gpu.NodeID, *Node] {
	return func(yield func(gpu.NodeID, *Node) bool) {
		for i, n := range s.nodes {
			if !yield(n.ID, s.At(i)) {
				return
			}
		}
	}
}

// Since returns the nodes that are not as they were in old, in name order. What
// stands for nodes by With or Without, in either, is not looked at.
func (s Snapshot) Since(old Snapshot) []*Node {
	if s.Same(old) {
		return nil
	}
	var changed []*Node
	for i, n := range s.nodes {
		if i < len(old.nodes) && old.nodes[i] == n {
			continue // as nearly always: the same nodes in the same places
		}
		if at, known := old.index[n.ID]; !known || old.nodes[at] != n {
			changed = append(changed, n)
		}
	}
	return changed
}

// Same reports whether the nodes are known, without a look at them, to be as they were
// in old: it is so of two snapshots between which nothing has happened to any. What
// stands for nodes by With or Without, in either, is not looked at.
func (s Snapshot) Same(old Snapshot) bool {
	return len(s.nodes) == len(old.nodes) && (len(s.nodes) == 0 || &s.nodes[0] == &old.nodes[0])
}

// With returns the cluster as it would be after Reserve(p), or the error that
// Reserve would give. It looks at p.Node alone, so a plan costs what it changes:
// it does not see that the pod holds something on another node.
func (s Snapshot) With(p gpu.Placement) (Snapshot, error) {
	next, err := s.with(p)
	if err != nil {
		return s, fmt.Errorf("plan pod %s on %s: %w", p.Pod, p.Node, err)
	}
	return next, nil
}

func (s Snapshot) with(p gpu.Placement) (Snapshot, error) {
	n, ok := s.Node(p.Node)
	if !ok {
		return s, ErrUnknownNode
	}
	p.Tenant, _ = s.rules.Owner(p.Namespace)
	old := n.Hold(p.Pod)
	if old == nil {
		h := newHold(p, none.after(reserve))
		if err := s.admit(h); err != nil {
			return s, err
		}
		return s.entered(n, nil, h), nil
	}
	if !isClaim(old) {
		return s, old.again(&p)
	}
	h, err := s.redeem(old, p)
	if err != nil {
		return s, err
	}
	return s.entered(n, old, h), nil
}

// admit says why h cannot be entered; nil when it can. Its pod holds nothing on the node.
func (s Snapshot) admit(h *Hold) error {
	n, ok := s.Node(h.Node)
	if !ok {
		return ErrUnknownNode
	}
	if err := affords(h, s.rules, s.Spent); err != nil {
		return err
	}
	return n.admit(h)
}

// redeem returns the hold of p that stands on the claim old, on the same node, or why
// there is none: the claim is not in its own way.
func (s Snapshot) redeem(old *Hold, p gpu.Placement) (*Hold, error) {
	h := newHold(p, old.after(reserve)).on(old.claim)
	if err := s.Without(old.Node, old.Pod).admit(h); err != nil {
		return nil, err
	}
	return h, nil
}

// entered returns the snapshot with h on the node, in the place of old, if there is one.
func (s Snapshot) entered(n *Node, old, h *Hold) Snapshot {
	holds := with(n.Holds, h)
	s.spent = s.spent.with(old, h, s.rules)
	s.claims = s.claims.replace(old, h, n.Hold, s.rules)
	s.members = s.members.enter(h)
	if old != nil && old.Group != h.Group {
		s.members = s.members.leave(old, holds)
	}
	return s.replace(build(n.Facts, holds, n.Fences, n.Boundary, n))
}

// Without returns the cluster as it would be if these pods had ended on node.
// Pods that hold nothing there change nothing.
func (s Snapshot) Without(node gpu.NodeID, pods ...gpu.PodID) Snapshot {
	n, ok := s.Node(node)
	if !ok {
		return s
	}
	goes := func(h *Hold) bool { return slices.Contains(pods, h.Pod) }
	rest := without(n.Holds, goes)
	if len(rest) == len(n.Holds) {
		return s
	}
	for _, h := range n.Holds {
		if goes(h) {
			s.spent = s.spent.without(h, s.rules)
			s.members = s.members.leave(h, rest)
			s.claims = s.claims.replace(h, nil, n.Hold, s.rules)
		}
	}
	return s.replace(build(n.Facts, rest, n.Fences, n.Boundary, n))
}

// replace returns the snapshot with n standing for the node of its name.
func (s Snapshot) replace(n *Node) Snapshot {
	instead := make(map[int]*Node, len(s.instead)+1)
	maps.Copy(instead, s.instead)
	instead[s.index[n.ID]] = n
	s.instead = instead
	return s
}
