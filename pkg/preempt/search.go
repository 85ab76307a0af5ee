package preempt

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// search looks for who has to go from one node.
type search struct {
	*sketch
	trial Trial
	base  ledger.Snapshot // those gone who are ending there
}

// without is the cluster when these entries have gone, on whatever nodes they are.
func without(in ledger.Snapshot, node gpu.NodeID, entries []entry, gone []bool) ledger.Snapshot {
	var here []gpu.PodID
	for i := range entries {
		if gone != nil && !gone[i] {
			continue
		}
		for _, p := range entries[i].pods {
			if p.Node == node {
				here = append(here, p.ID)
			} else {
				in = in.Without(p.Node, p.ID) // what it spends of a quota is spent everywhere
			}
		}
	}
	return in.Without(node, here...)
}

// fits reports whether the request fits the node of that state.
func fits(t Trial, in ledger.Snapshot, node gpu.NodeID, r *gpu.Request) bool {
	n, ok := in.Node(node)
	return ok && Roomy(n, r) && t.Fits(in, node)
}

func (s *search) fits(gone []bool) bool {
	return s.may(gone) && fits(s.trial, without(s.base, s.n.ID, s.entries, gone), s.n.ID, s.need.r)
}

// solve returns the entries that are to go, in order: of the shortest prefix that
// suffices those who are needed; none if there is no way.
//
// Who is needed at the least is found without a Trial, and one Trial tells that no
// more are: then every larger set would do as well, so that this is what a Trial at
// each step would come to. It is asked at each step where that is not so.
func (s *search) solve() []entry {
	gone := s.prefix(s.may)
	if gone == nil {
		return nil
	}
	s.spare(gone, s.may)
	if !s.fits(gone) {
		if gone = s.prefix(s.hopefully()); gone == nil {
			return nil
		}
		s.spare(gone, s.fits)
	}
	var left []entry
	for i, e := range s.entries {
		if gone[i] {
			left = append(left, e)
		}
	}
	return left
}

// hopefully is fits, but no after the first no where all going would not do.
func (s *search) hopefully() func(gone []bool) bool {
	asked, hope := false, false
	return func(gone []bool) bool {
		switch {
		case asked && !hope || !s.may(gone):
			return false
		case s.fits(gone):
			return true
		case !asked:
			asked, hope = true, s.fits(slices.Repeat([]bool{true}, len(gone)))
		}
		return false
	}
}

// prefix returns the shortest prefix that does; nil if there is none.
func (s *search) prefix(does func(gone []bool) bool) []bool {
	gone := make([]bool, len(s.entries))
	for i := range gone {
		if gone[i] = true; does(gone) {
			return gone
		}
	}
	return nil
}

// spare takes out those who need not go, the last ones first, until each is needed. It
// goes round again, as who was needed while others went might not be without them.
func (s *search) spare(gone []bool, does func(gone []bool) bool) {
	for again := true; again; {
		again = false
		for i := len(gone) - 1; i >= 0; i-- {
			if !gone[i] {
				continue
			}
			gone[i] = false
			if does(gone) {
				again = true
			} else {
				gone[i] = true
			}
		}
	}
}

// cost is what it takes that these go.
func cost(of []entry) (b bound) {
	for _, e := range of {
		b.victims += len(e.pods)
		b.sum += e.sum
	}
	return b
}
