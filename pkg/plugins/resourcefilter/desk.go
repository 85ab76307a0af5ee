package resourcefilter

import (
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/topology"
)

// desk is one open card with what this pod has tentatively put on it.
type desk struct {
	card    *ledger.Card
	place   int          // in Node.Cards
	app     gpu.Use      // together
	init    gpu.Use      // the largest, as they run one after the other
	sidecar gpu.Use      // together, beside everything else
	domain  topology.Set // see Candidate.Domain
}

func deskOf(n *pipeline.Candidate, place int) desk {
	return desk{card: &n.Node.Cards[place], place: place, domain: n.Domain(place)}
}

// with reports whether the container may have both cards.
func (d *desk) with(e *desk, ask *gpu.Ask) bool {
	return d.card.Vendor == e.card.Vendor && (d.domain == e.domain || ask.Count == 1)
}

func (d *desk) used() bool { return d.app.Slots > 0 || d.init.Slots > 0 || d.sidecar.Slots > 0 }

// put adds one container's use.
func (d *desk) put(role gpu.Role, u gpu.Use) {
	switch role {
	case gpu.App:
		d.app = d.app.Plus(u)
	case gpu.Init:
		d.init = d.init.Max(u)
	case gpu.Sidecar:
		d.sidecar = d.sidecar.Plus(u)
	}
}

// beside is what the pod has on the card while a container of this role runs.
func (d *desk) beside(role gpu.Role) gpu.Use {
	switch role {
	case gpu.Init:
		return d.sidecar
	case gpu.App:
		return d.app.Plus(d.sidecar)
	default:
		return d.app.Max(d.init).Plus(d.sidecar)
	}
}

// lack is what a card has too little of, in the order in which it is checked.
type lack int

const (
	lackMode   lack = iota // of the wrong kind for this ask
	lackTotal              // smaller than a whole card must be
	lackFree               // not free as a whole
	lackRest               // free, but for memory that somebody uses who is not in the books
	lackMemory             // the rest are a slice's
	lackCores
	lackSlots
	lackNothing
)

// check says what keeps ask off the card, given what the pod has put there.
//
// What runs at another time need not be looked at: it was checked when it was
// put there, and what the pod holds is the larger of the two.
func (d *desk) check(ask *gpu.Ask) lack {
	beside := d.beside(ask.Role)
	if ask.Whole {
		return d.checkWhole(ask, beside)
	}
	use := beside.Plus(ask.On(&d.card.Card))
	switch {
	case !d.card.TakesSlices():
		return lackMode
	case beside.Exclusive, use.Memory > d.card.FreeMemory():
		return lackMemory
	// A slice that reserves no compute still needs some to be left.
	case max(1, use.Cores) > d.card.FreeCores():
		return lackCores
	case use.Slots > d.card.FreeSlots():
		return lackSlots
	}
	return lackNothing
}

func (d *desk) checkWhole(ask *gpu.Ask, beside gpu.Use) lack {
	switch {
	case !d.card.TakesWhole():
		return lackMode
	case d.card.Memory < ask.Memory:
		return lackTotal
	case !d.card.Free(), beside.Slots > 0:
		return lackFree
	case d.card.WholeMemory() < ask.Memory:
		return lackRest
	}
	return lackNothing
}

// alike reports whether it makes no difference for room which of two cards of one
// vendor an ask gets that fits on both: the rest of the pod, which may ask for a
// model, then fits beside either or neither.
func (d *desk) alike(e *desk) bool {
	a, b := d.card, e.card
	return d.domain == e.domain && d.app == e.app && d.init == e.init && d.sidecar == e.sidecar && a.Model == b.Model &&
		a.TakesSlices() == b.TakesSlices() && a.Memory == b.Memory && a.Usable == b.Usable && a.Free() == b.Free() && a.WholeMemory() == b.WholeMemory() &&
		a.FreeMemory() == b.FreeMemory() && a.FreeCores() == b.FreeCores() && a.FreeSlots() == b.FreeSlots()
}
