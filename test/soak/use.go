package soak

import (
	"heteroflow.io/heteroflow/pkg/gpu"
)

// use is what a pod has of a card: a pod runs its init containers first, one by
// one, and then the others.
type use struct {
	memory, cores, slots int64
	whole                bool
}

func (u *use) add(v use) {
	u.memory, u.cores, u.slots, u.whole = u.memory+v.memory, u.cores+v.cores, u.slots+v.slots, u.whole || v.whole
}

// resources are those by which the soak's pods ask, the neutral form included.
var resources = []string{"", "nvidia.com/gpu"} // read only

const anyResource = "*"

// usesOf is what a placement takes of each card, of what was asked for by way of
// the resource.
func usesOf(p *gpu.Placement, resource string) map[gpu.CardID]use {
	type phases struct{ first, later, beside use }
	cards := map[gpu.CardID]phases{}
	for _, g := range p.Grants {
		if resource != anyResource && g.Resource != resource {
			continue
		}
		for _, s := range g.Shares {
			at, u := cards[s.Card], use{int64(s.Memory), int64(s.Cores), 1, s.Exclusive}
			switch g.Role {
			case gpu.Init:
				at.first = use{max(at.first.memory, u.memory), max(at.first.cores, u.cores), 1, at.first.whole || u.whole}
			case gpu.App:
				at.later.add(u)
			case gpu.Sidecar:
				at.beside.add(u)
			}
			cards[s.Card] = at
		}
	}
	all := map[gpu.CardID]use{}
	for id, at := range cards {
		u := use{max(at.first.memory, at.later.memory), max(at.first.cores, at.later.cores), max(at.first.slots, at.later.slots), at.first.whole || at.later.whole}
		u.add(at.beside)
		all[id] = u
	}
	return all
}

// takes is how much of what the limit counts the pod takes.
func (b *body) takes(l *gpu.Limit, cards map[gpu.CardID]*gpu.Card) (sum int64) {
	for resource, uses := range b.by {
		if l.Resource != "" && resource != "" && l.Resource != resource {
			continue
		}
		for id, u := range uses {
			if l.Vendor == "" || cards[id].Vendor == l.Vendor {
				sum += u.measured(l.Measure)
			}
		}
	}
	for _, f := range b.p.Foreign {
		if l.Vendor == "" || f.Vendor == l.Vendor {
			n := int64(f.Cards)
			sum += map[gpu.Measure]int64{gpu.Devices: n, gpu.WholeCards: n, gpu.Compute: 100 * n}[l.Measure]
		}
	}
	return sum
}

func (u use) measured(m gpu.Measure) int64 {
	switch m {
	case gpu.Devices:
		return u.slots
	case gpu.WholeCards:
		if u.whole {
			return 1
		}
		return 0
	case gpu.Memory:
		return u.memory
	case gpu.Compute:
		return u.cores
	}
	return 0
}
