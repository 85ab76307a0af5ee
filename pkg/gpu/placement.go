package gpu

import (
	"cmp"
	"slices"
)

// Share is one container's part of one card.
type Share struct {
	Card      CardID
	Vendor    Vendor
	Index     int
	Memory    MiB
	Cores     Cores
	Exclusive bool
	Isolation Isolation
}

// Grant is what one container gets.
type Grant struct {
	Container string
	Number    int
	Role      Role
	Resource  string // by whose count the container asked, as Ask.Plugin has it
	Shares    []Share
}

// AllCards in Foreign.Cards stands for every card that the pod might touch.
const AllCards = -1

// Foreign is a claim on cards that we did not choose and cannot name: a pod
// bound by somebody else, or one whose allocation cannot be read. As many free
// cards are closed to others; all cards of the vendor, when fewer are free.
type Foreign struct {
	Vendor Vendor // "" for any
	Cards  int    // whole cards, or AllCards
}

// Placement is a pod on a node with the cards it gets. It never changes once
// made. A pod without cards is placed too: its CPU and memory count.
type Placement struct {
	Pod       PodID
	Namespace string
	Name      string
	Node      NodeID
	Tenant    TenantID // what the ledger holds says it itself, by the namespace
	Group     GroupID  // with whom it works
	CPU       MilliCPU
	Memory    Bytes
	Grants    []Grant
	Foreign   []Foreign
}

// Vendor returns whose make the card is, by the placement's own record; "" for one
// that it does not name.
func (p *Placement) Vendor(id CardID) Vendor {
	for i := range p.Grants {
		for j := range p.Grants[i].Shares {
			if s := &p.Grants[i].Shares[j]; s.Card == id {
				return s.Vendor
			}
		}
	}
	return ""
}

// CardUse is what a pod holds of one card.
type CardUse struct {
	Card CardID
	Use  Use
}

// Uses returns what the pod holds on each card, ordered by card: the larger of
// its app containers' sum and its largest init container, plus its sidecars
// (the rule Kubernetes has for a pod's resources).
func (p *Placement) Uses() []CardUse {
	type parts struct{ app, init, sidecar Use }
	byCard := map[CardID]*parts{}
	for _, g := range p.Grants {
		for _, s := range g.Shares {
			at := byCard[s.Card]
			if at == nil {
				at = &parts{}
				byCard[s.Card] = at
			}
			u := Use{Memory: s.Memory, Cores: s.Cores, Slots: 1, Exclusive: s.Exclusive}
			switch g.Role {
			case App:
				at.app = at.app.Plus(u)
			case Init:
				at.init = at.init.Max(u)
			case Sidecar:
				at.sidecar = at.sidecar.Plus(u)
			}
		}
	}
	uses := make([]CardUse, 0, len(byCard))
	for id, at := range byCard {
		uses = append(uses, CardUse{id, at.app.Max(at.init).Plus(at.sidecar)})
	}
	slices.SortFunc(uses, func(a, b CardUse) int { return cmp.Compare(a.Card, b.Card) })
	return uses
}
