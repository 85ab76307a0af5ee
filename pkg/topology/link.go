package topology

import (
	"cmp"
	"strconv"
	"strings"
)

// Kind is what lies between two cards. The zero Kind is not knowing.
type Kind uint8

// The kinds, in the words of the vendors' tools. NVIDIA's legend (nvidia-smi
// topo -m) explains SYS to PIX, and the other vendors' tools print the same.
const (
	Unknown      Kind = iota
	Ethernet          // ETH: over the network (MetaX)
	System            // SYS: PCIe and the link between NUMA nodes
	PCIe              // PCIE: PCIe, and how far is not said (Hygon)
	Node              // NODE: PCIe host bridges of one NUMA node
	HostBridge        // PHB: one PCIe host bridge
	MultiSwitch       // PXB: several PCIe bridges
	SingleSwitch      // PIX: one PCIe bridge
	SameBoard         // PSB: one board

	// Of the NVLink class from here on: these join cards to domains.

	HCCSSwitch // HCCS_SW: HCCS through a switch (Ascend)
	HCCS       // HCCS (Ascend)
	SIO        // SIO: between the dies of one package (Ascend)
	MetaXLink  // MX
	XL         // XL (Kunlunxin)
	MLULink    // MLK (Cambricon)
	XGMI       // XGMI (Hygon)
	MTLink     // MT<n>: n bonded links (Moore Threads)
	NVLink     // NV<n>: n bonded links
)

// words are the kinds as the tools print them; MT and NV carry a number.
var words = [...]string{
	Unknown: "", Ethernet: "ETH", System: "SYS", PCIe: "PCIE", Node: "NODE", HostBridge: "PHB",
	MultiSwitch: "PXB", SingleSwitch: "PIX", SameBoard: "PSB",
	HCCSSwitch: "HCCS_SW", HCCS: "HCCS", SIO: "SIO", MetaXLink: "MX", XL: "XL", MLULink: "MLK", XGMI: "XGMI",
	MTLink: "MT", NVLink: "NV",
}

// mostBonded is the largest number of bonded links that is believed: twice
// NVML's NVLINK_MAX_LINKS of 36, rounded up.
const mostBonded = 99

// Link is what joins two cards. The zero Link is not knowing.
type Link struct {
	Kind Kind
	// Count is how many links are bonded: 1 or more for NVLink and MTLink, 1 for
	// others of their class, 0 for the rest.
	Count uint8
}

// ParseLink reads one cell of a matrix, in any case. What it does not know, "NA"
// and "" among it, is the zero Link.
func ParseLink(cell string) Link {
	word := strings.ToUpper(strings.TrimSpace(cell))
	for _, bonded := range [...]Kind{NVLink, MTLink} {
		if digits, ok := strings.CutPrefix(word, words[bonded]); ok {
			if n, err := strconv.ParseUint(digits, 10, 8); err == nil && n >= 1 && n <= mostBonded {
				return Link{bonded, uint8(n)}
			}
			return Link{}
		}
	}
	for kind := Ethernet; kind < MTLink; kind++ {
		if words[kind] == word {
			return plain(kind)
		}
	}
	if word == "SOC" { // what SYS was called before 2017
		return plain(System)
	}
	return Link{}
}

// plain returns a link of a kind that carries no number.
func plain(kind Kind) Link {
	if kind.Joins() {
		return Link{kind, 1}
	}
	return Link{Kind: kind}
}

// String returns the link as the tools print it, "" when it is not known.
func (l Link) String() string {
	if l.Kind == NVLink || l.Kind == MTLink {
		return words[l.Kind] + strconv.Itoa(int(l.Count))
	}
	return words[l.Kind]
}

// Joins reports whether links of the kind make a domain of the cards.
func (k Kind) Joins() bool { return k >= HCCSSwitch }

// Weight says how good the link is, 0 when it is not known: the scores with
// which HAMi and NVIDIA's go-gpuallocator rate pairs (SYS 10, NODE 20, PHB 30,
// PXB 40, PIX 50, same board 60, each NVLink 100), carried over to the other
// vendors' links. The two dies of one package count as two links.
func (l Link) Weight() int {
	switch l.Kind {
	case Unknown:
		return 0
	case Ethernet:
		return 5
	case System, PCIe: // how far is not said: as far as can be
		return 10
	case Node:
		return 20
	case HostBridge:
		return 30
	case MultiSwitch:
		return 40
	case SingleSwitch:
		return 50
	case SameBoard:
		return 60
	case SIO:
		return 200
	default:
		return 100 * int(l.Count)
	}
}

// linkOfWeight reads a pair's score back, which is the sum over all that joins the
// two: 1240 is twelve NVLinks between cards that are PXB apart.
func linkOfWeight(score int) Link {
	if n := score / 100; n >= 1 && n <= mostBonded {
		return Link{NVLink, uint8(n)}
	}
	for _, kind := range [...]Kind{System, Node, HostBridge, MultiSwitch, SingleSwitch, SameBoard} {
		if l := plain(kind); l.Weight() == score {
			return l
		}
	}
	return Link{}
}

// Distance returns how far apart the link leaves two cards, on the scale of
// NVML's levels of the common ancestor: 0 for one card, 5 linked or on one
// board, PIX 10, PXB 20, PHB 30, NODE 40, SYS 50 and what may be as far. It is
// false when nothing is known.
func (l Link) Distance() (int, bool) {
	switch l.Kind {
	case Unknown:
		return 0, false
	case Ethernet, System, PCIe:
		return 50, true
	case Node:
		return 40, true
	case HostBridge:
		return 30, true
	case MultiSwitch:
		return 20, true
	case SingleSwitch:
		return 10, true
	default:
		return 5, true
	}
}

// Reaches reports whether each of the two cards can read the other's memory
// directly: over a link, or over PCIe within one host bridge. Beyond that, as
// between sockets, drivers refuse it (CNS, "chipset not supported", in
// nvidia-smi topo -p2p). known is false where the link does not tell.
func (l Link) Reaches() (yes, known bool) {
	switch {
	case l.Kind == Unknown || l.Kind == PCIe:
		return false, false
	default:
		return l.Kind >= HostBridge, true
	}
}

// weaker returns the lesser of what is said about one pair: a link is as good as
// both of its ends say it is. Not knowing says nothing. The result does not
// depend on the order of a and b.
func weaker(a, b Link) Link {
	switch {
	case a.Kind == Unknown:
		return b
	case b.Kind == Unknown:
		return a
	}
	if cmp.Or(cmp.Compare(a.Weight(), b.Weight()), cmp.Compare(a.Kind, b.Kind)) <= 0 {
		return a
	}
	return b
}
