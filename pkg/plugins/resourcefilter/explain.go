package resourcefilter

import (
	"cmp"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// explain says why the request does not fit: it places the asks one by one, and
// reports what the first that finds no place lacks. There is one, as this is
// the search's own first try.
func explain(c *pipeline.Cycle, n *pipeline.Candidate) pipeline.Verdict {
	if len(c.Request.Asks) == 1 {
		var room [16]desk // on the stack, for any usual node: this runs on every node of the cluster
		return lacking(&c.Request.Asks[0], desksOf(n, room[:0]))
	}
	s := newSearch(c, n)
	last := len(s.asks) - 1
	for at := range last {
		alone := &search{desks: s.desks, asks: s.asks[at : at+1], chosen: make([][]int, 1), left: 1}
		if !alone.solve(0) {
			return lacking(s.asks[at], s.desks)
		} // else its use stays on the desks
	}
	return lacking(s.asks[last], s.desks)
}

// lacking explains one ask by the vendor whose cards come closest: those that
// fail at the latest check, and by least.
func lacking(ask *gpu.Ask, desks []desk) pipeline.Verdict {
	best, furthest := pipeline.Verdict{Reason: gpu.InsufficientGPUCount, Want: int64(ask.Count)}, tooFew
	misfit := func(d desk) bool { return !ask.Suits(&d.card.Card) }
	if slices.ContainsFunc(desks, misfit) {
		desks = slices.DeleteFunc(slices.Clone(desks), misfit)
	}
	for i := range desks {
		v := desks[i].card.Vendor
		if slices.ContainsFunc(desks[:i], func(d desk) bool { return d.card.Vendor == v }) {
			continue
		}
		if verdict, at := failing(ask, v, desks); at > furthest || at == furthest && nearer(verdict, best) < 0 {
			best, furthest = verdict, at
		}
	}
	return best
}

// tooFew comes before all other lacks: the vendor has not as many cards.
const tooFew lack = -1

// nearer orders verdicts by how little is missing.
func nearer(a, b pipeline.Verdict) int {
	return cmp.Or(cmp.Compare(a.Want-a.Have, b.Want-b.Have), cmp.Compare(a.Want, b.Want), cmp.Compare(a.Foreign, b.Foreign))
}

// failing finds the check that leaves the ask too few cards of one vendor.
func failing(ask *gpu.Ask, v gpu.Vendor, desks []desk) (pipeline.Verdict, lack) {
	var of int
	var lacks [lackNothing + 1]int // lack -> cards that it keeps the ask off
	for i := range desks {
		if desks[i].card.Vendor == v {
			of++
			lacks[desks[i].check(ask)]++
		}
	}
	count := pipeline.Verdict{Reason: gpu.InsufficientGPUCount, Have: int64(lacks[lackNothing]), Want: int64(ask.Count)}
	if of < ask.Count {
		return count, tooFew
	}
	for l := range lackNothing {
		of -= lacks[l]
		switch {
		case of >= ask.Count:
		case l == lackMode && !ask.Whole:
			return pipeline.Verdict{Reason: gpu.IsolationUnavailable, Have: int64(of), Want: int64(ask.Count)}, l
		case l == lackMode, l == lackFree:
			return count, l
		default:
			return quantity(ask, v, desks, l, ask.Count-of), l
		}
	}
	return count, lackNothing
}

// quantity gives the figures of the last card needed: of those that fail for l,
// the one that comes nearest after as many as are missing.
func quantity(ask *gpu.Ask, v gpu.Vendor, desks []desk, l lack, missing int) pipeline.Verdict {
	figures := make([]pipeline.Verdict, 0, gpu.MostCards)
	for i := range desks {
		if d := &desks[i]; d.card.Vendor == v && d.check(ask) == l {
			figures = append(figures, d.figures(ask, l))
		}
	}
	slices.SortFunc(figures, nearer)
	return figures[missing-1]
}

// figures says what the card has of what it lacks, and what the ask wants of it.
func (d *desk) figures(ask *gpu.Ask, l lack) pipeline.Verdict {
	beside, on := d.beside(ask.Role), ask.On(&d.card.Card)
	switch l {
	case lackTotal:
		return pipeline.Verdict{Reason: gpu.InsufficientGPUMemory, Have: int64(d.card.Memory), Want: int64(ask.Memory)}
	case lackRest:
		return pipeline.Verdict{Reason: gpu.InsufficientGPUMemory, Have: int64(d.card.WholeMemory()), Want: int64(ask.Memory), Foreign: int64(d.card.Foreign())}
	case lackMemory:
		have := max(0, int64(d.card.FreeMemory()-beside.Memory))
		return pipeline.Verdict{Reason: gpu.InsufficientGPUMemory, Have: have, Want: int64(on.Memory), Foreign: int64(d.card.Foreign())}
	case lackCores:
		return pipeline.Verdict{Reason: gpu.InsufficientGPUCores, Have: max(0, int64(d.card.FreeCores()-beside.Cores)), Want: max(1, int64(on.Cores))}
	default:
		return pipeline.Verdict{Reason: gpu.InsufficientGPUSlots, Have: max(0, int64(d.card.FreeSlots()-beside.Slots)), Want: 1}
	}
}
