package preempt

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// sketch is a node by who would have to go for what.
type sketch struct {
	need    *need
	n       *ledger.Node
	entries []entry
	cards   [][]part
	frees   []free // of each entry
}

// part is what one pod has of a card.
type part struct {
	entry int // whose; none, where nobody may end it
	use   gpu.Use
}

const none = -1

// free is what a node has back when an entry has gone.
type free struct {
	cpu    gpu.MilliCPU
	memory gpu.Bytes
	pods   int
}

func newSketch(d *need, n *ledger.Node, entries []entry) *sketch {
	s := &sketch{need: d, n: n, entries: entries, cards: make([][]part, len(n.Cards)), frees: make([]free, len(entries))}
	of := make(map[gpu.PodID]int, len(entries))
	for i, e := range entries {
		for _, p := range e.pods {
			if p.Node != n.ID {
				continue
			}
			of[p.ID] = i
			h := n.Hold(p.ID)
			s.frees[i].cpu += h.CPU
			s.frees[i].memory += h.Memory
			s.frees[i].pods++
		}
	}
	parts := 0
	for i := range n.Cards {
		parts += len(n.Cards[i].Holders)
	}
	all := make([]part, 0, parts)
	for i := range n.Cards {
		from := len(all)
		for _, h := range n.Cards[i].Holders {
			e, ours := of[h.Pod]
			if !ours {
				e = none
			}
			all = append(all, part{e, h.Use})
		}
		s.cards[i] = all[from:len(all):len(all)]
	}
	return s
}

// may reports whether the node may do when these entries have gone; where it says no
// it does not.
func (s *sketch) may(gone []bool) bool {
	n, r := s.n, s.need.r
	var back free
	for i, is := range gone {
		if is {
			f := &s.frees[i]
			back.cpu, back.memory, back.pods = back.cpu+f.cpu, back.memory+f.memory, back.pods+f.pods
		}
	}
	if r.CPU > 0 && n.CPU != 0 && n.UsedCPU-back.cpu+r.CPU > n.CPU ||
		r.Memory > 0 && n.Memory != 0 && n.UsedMemory-back.memory+r.Memory > n.Memory ||
		n.Pods != 0 && len(n.Holds)-back.pods >= n.Pods {
		return false
	}
	return s.need.cards(n.Cards, func(i int) (used gpu.Use) {
		for _, p := range s.cards[i] {
			if p.entry == none || !gone[p.entry] {
				used = used.Plus(p.use)
			}
		}
		return used
	})
}

// bound is less than or as much as any plan on a node costs.
type bound struct {
	victims int
	sum     int64 // of priorities
}

// before reports whether b is the better one.
func (b bound) before(o bound) bool {
	return b.victims < o.victims || b.victims == o.victims && b.sum < o.sum
}

// least returns how many have to go from the node at least, with the priorities that
// they have at least; false if not even all of them would do.
func (s *sketch) least() (bound, bool) {
	all := make([]bool, len(s.entries))
	for i := range all {
		all[i] = true
	}
	if len(all) == 0 || !s.may(all) {
		return bound{}, false
	}
	b := bound{victims: max(1, s.forCards(), s.forRoom())}
	var low []int64
	for _, e := range s.entries {
		for _, p := range e.pods {
			if p.Node == s.n.ID {
				low = append(low, int64(p.Priority))
			}
		}
	}
	slices.Sort(low)
	for _, p := range low[:min(b.victims, len(low))] {
		b.sum += p
	}
	return b, true
}

// forCards is how many have to go so that there are enough cards that nobody is on: as
// many as are on those with the fewest, where one pod may be on several.
func (s *sketch) forCards() int {
	var on []int                                  // how many are on each card
	most, cards := 1, make([]int, len(s.entries)) // cards that an entry is on
	for i, parts := range s.cards {
		fixed := slices.ContainsFunc(parts, func(p part) bool { return p.entry == none })
		if !fixed && s.need.apart > 0 && s.need.wanted(&s.n.Cards[i].Card) {
			on = append(on, len(parts))
		}
		for _, p := range parts {
			if p.entry != none {
				cards[p.entry]++
				most = max(most, cards[p.entry])
			}
		}
	}
	slices.Sort(on)
	sum := 0
	for _, k := range on[:min(s.need.apart, len(on))] {
		sum += k
	}
	return over(int64(sum), int64(most))
}

// forRoom is how many have to go so that there is room for the pod beside its cards.
func (s *sketch) forRoom() int {
	n, r := s.n, s.need.r
	cpu, memory := int64(1), int64(1) // what one pod frees at most
	for _, f := range s.frees {
		cpu, memory = max(cpu, int64(f.cpu)), max(memory, int64(f.memory))
	}
	least := 0
	if n.Pods != 0 {
		least = len(n.Holds) - n.Pods + 1
	}
	if r.CPU > 0 && n.CPU != 0 {
		least = max(least, over(int64(n.UsedCPU+r.CPU-n.CPU), cpu))
	}
	if r.Memory > 0 && n.Memory != 0 {
		least = max(least, over(int64(n.UsedMemory+r.Memory-n.Memory), memory))
	}
	return least
}

// over is a/b, rounded up; 0 for a below it.
func over(a, b int64) int { return int((max(0, a) + b - 1) / b) }
