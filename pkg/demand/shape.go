package demand

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// shape is what a request asks of a node as far as packing goes. Requests of one
// shape are the same to us.
type shape struct {
	cpu       gpu.MilliCPU
	asks      []gpu.Ask // without what tells containers apart; the hardest first
	vendor    gpu.Vendor
	models    []string // in small letters and in order, as notModels
	notModels []string
}

func shapeOf(r *gpu.Request) shape {
	s := shape{cpu: r.CPU, vendor: r.Vendor, models: lower(r.Models), notModels: lower(r.NotModels)}
	for i := range r.Asks {
		// An init container goes where the others are.
		if a := r.Asks[i]; a.Role != gpu.Init || onlyInit(r) {
			a.Container, a.Number, a.Role = "", 0, gpu.App
			s.asks = append(s.asks, a)
		}
	}
	slices.SortFunc(s.asks, harder)
	if onlyInit(r) { // one after the other
		s.asks = s.asks[:min(1, len(s.asks))]
	}
	return s
}

func onlyInit(r *gpu.Request) bool {
	return !slices.ContainsFunc(r.Asks, func(a gpu.Ask) bool { return a.Role != gpu.Init })
}

// harder is the order of pipeline.HardestFirst, and a certain one among what is
// equally hard.
func harder(a, b gpu.Ask) int {
	whole := func(a gpu.Ask) int {
		if a.Whole {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(whole(a), whole(b)),
		cmp.Compare(b.Count, a.Count),
		cmp.Compare(b.Memory, a.Memory),
		cmp.Compare(b.MemoryPercent, a.MemoryPercent),
		cmp.Compare(b.Cores, a.Cores),
		cmp.Compare(a.Vendor, b.Vendor),
		cmp.Compare(a.Model, b.Model),
		cmp.Compare(a.Plugin, b.Plugin),
	)
}

func lower(names []string) (small []string) {
	for _, n := range names {
		small = append(small, strings.ToLower(n))
	}
	slices.Sort(small)
	return slices.Compact(small)
}

// key tells shapes apart.
func (s *shape) key() string { return fmt.Sprintf("%#v", *s) }

// allows reports whether the pod's own words on vendor and model let it have the
// card, as the plugins gpu-filter and affinity read them.
func (s *shape) allows(c *gpu.Card) bool {
	model := strings.ToLower(c.Model)
	named := func(part string) bool { return strings.Contains(model, part) }
	return (s.vendor == "" || s.vendor == c.Vendor) &&
		(len(s.models) == 0 || slices.ContainsFunc(s.models, named)) && !slices.ContainsFunc(s.notModels, named)
}

// term is what one device of an ask takes of a card of some kind, in thousandths of
// what that has.
type term struct {
	memory, cores uint16
	least         uint16 // of compute must be left: a slice that reserves none needs some
}

const (
	full  = 1000 // thousandths: a card on which nobody is
	never = full + 1
)

// on returns what a device of the ask takes of the card; what never fits where it
// cannot be there.
func (s *shape) on(a *gpu.Ask, c *gpu.Card) term {
	switch {
	case !s.allows(c), !a.Suits(c):
		return term{memory: never}
	case a.Whole:
		if !c.TakesWhole() || c.Memory < a.Memory {
			return term{memory: never}
		}
		return term{full, full, full}
	case !c.TakesSlices(), c.Usable <= 0, c.UsableCores <= 0:
		return term{memory: never}
	}
	u := a.On(c)
	t := term{memory: max(1, thousandths(u.Memory, c.Usable)), cores: thousandths(u.Cores, c.UsableCores)}
	if t.size() > full {
		return term{memory: never}
	}
	t.least = max(1, t.cores)
	return t
}

// thousandths is part/of, rounded down, at most never. What fits in MiB and percent
// then fits in thousandths too, if what is left is rounded down likewise.
func thousandths[N ~int64](part, of N) uint16 {
	if part > of {
		return never
	}
	return uint16(part * full / of)
}

// size is how much of a card the term is.
func (t term) size() int { return int(max(t.memory, t.cores)) }
