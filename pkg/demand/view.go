package demand

import (
	"maps"
	"slices"
	"sync/atomic"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// view is what the mix makes of one kind of card. It never changes.
type view struct {
	kind  Kind
	card  gpu.Card
	f     *forecast
	terms []term // of each ask of the mix
	needs []need // of each shape of the mix
	cut   *cut
}

// views are those of all kinds known. They never change, but for last.
type views struct {
	all    []*view
	places map[Kind]uint16 // in all
	last   atomic.Uint32   // the place asked for last: a node's cards are mostly of one kind
}

// known is what slices of these sizes make of a card.
type known struct {
	wanted map[int]float64
	cut    *cut
}

// Room returns what is left of a card: memory and compute that slices may take, or
// all of it where the card is free. A card that takes nobody in has neither. It is
// false for a kind of card too many.
func (f *forecast) Room(c *gpu.Card, free bool, memory gpu.MiB, cores gpu.Cores) (Room, bool) {
	k, ok := f.kind(KindOf(c))
	switch {
	case !ok:
		return Room{}, false
	case free && (c.TakesWhole() || c.TakesSlices()):
		return Room{k, full, full}, true
	case !c.TakesSlices(), c.Usable <= 0, c.UsableCores <= 0:
		return Room{kind: k}, true
	}
	return Room{k, min(full-1, thousandths(memory, c.Usable)), min(full, thousandths(cores, c.UsableCores))}, true
}

// kind returns the place of the kind in the views, which it enters if need be.
func (f *forecast) kind(k Kind) (uint16, bool) {
	known := f.views.Load()
	if last := known.last.Load(); int(last) < len(known.all) && known.all[last].kind == k {
		return uint16(last), true
	}
	if at, ok := known.places[k]; ok {
		known.last.Store(uint32(at))
		return at, true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.add(k)
}

// add enters a kind, unless there are too many. The caller holds mu, or is alone.
func (f *forecast) add(k Kind) (uint16, bool) {
	known := f.views.Load()
	if at, ok := known.places[k]; ok || len(known.all) >= mostKinds {
		return at, ok
	}
	at := uint16(len(known.all))
	more := &views{all: append(slices.Clone(known.all), f.view(k)), places: map[Kind]uint16{k: at}}
	maps.Copy(more.places, known.places)
	f.views.Store(more)
	return at, true
}

func (f *forecast) view(k Kind) *view {
	v := &view{kind: k, card: k.card(), f: f, terms: make([]term, 0, f.asks)}
	slicesOf := map[int]float64{}
	for _, w := range f.mix {
		n := need{cpu: w.cpu}
		for i := range w.asks {
			a := &w.asks[i]
			t := w.on(a, &v.card)
			v.terms = append(v.terms, t)
			n.memory, n.cores = max(n.memory, t.memory), max(n.cores, t.least)
			if !a.Whole && t.memory != never {
				slicesOf[t.size()] += w.weight * float64(a.Count)
			}
		}
		v.needs = append(v.needs, n)
	}
	v.cut = f.cutFor(slicesOf)
	return v
}

// cutFor makes the cut for slices that are wanted so; kinds of cards that are wanted
// alike share one.
func (f *forecast) cutFor(wanted map[int]float64) *cut {
	for _, c := range f.cuts {
		if maps.Equal(c.wanted, wanted) {
			return c.cut
		}
	}
	c := newCut(wanted)
	f.cuts = append(f.cuts, known{wanted, c})
	return c
}

// takes reports whether any ask of that shape of the mix may have such a card.
func (v *view) takes(shape int) bool {
	it := &v.f.items[shape]
	for i := range it.count {
		if v.terms[it.first+i].memory != never {
			return true
		}
	}
	return false
}

// cards is how many cards of the kind the shape takes, those of its asks that may
// have one.
func (v *view) cards(shape int) (n float64) {
	it := &v.f.items[shape]
	for i, count := range it.count {
		if t := v.terms[it.first+i]; t.memory != never {
			n += float64(t.size()) / full * float64(count)
		}
	}
	return n
}
