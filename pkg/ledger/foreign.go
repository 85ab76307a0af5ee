package ledger

import (
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// closeForeign takes cards off for those whose cards cannot be named: pods that
// we did not place, and pods of ours on cards that the node no longer lists. The
// claims of all of them add up: no two of them can be on the same card.
func closeForeign(cards []Card, holds []*Hold) {
	claims, unlisted := map[gpu.Vendor]int{}, map[gpu.Vendor]int{}
	for _, h := range holds {
		for _, f := range h.Foreign {
			n := f.Cards
			if n < 0 || n > len(cards) { // gpu.AllCards, or as good as
				n = len(cards) + 1
			}
			claims[f.Vendor] += n
		}
		if !isClaim(h) { // nobody of it runs on a card that has gone
			h.addUnlisted(cards, unlisted)
		}
	}
	for _, vendor := range gpu.Vendors() {
		if claims[vendor] == 0 && unlisted[vendor] == 0 {
			continue
		}
		for _, g := range groups(cards, vendor) {
			closeClaimed(cards, g, claims[vendor])
			closeFree(cards, g, unlisted[vendor])
		}
	}
	// After the picky ones, as it takes what they leave.
	closeClaimed(cards, anyCard, claims[""])
	closeFree(cards, anyCard, unlisted[""])
}

// group tells cards that can be taken for one another by who claims one.
type group func(*Card) bool

func anyCard(*Card) bool { return true }

// groups returns the cards of a vendor, those of each device plugin for
// themselves. A claim names the vendor alone, and is settled in each of them:
// what one plugin has given out leaves no room with the other.
func groups(cards []Card, vendor gpu.Vendor) (all []group) {
	var plugins []string
	for i := range cards {
		if p := cards[i].Plugin; cards[i].Vendor == vendor && !slices.Contains(plugins, p) {
			plugins = append(plugins, p)
			all = append(all, func(c *Card) bool { return c.Vendor == vendor && c.Plugin == p })
		}
	}
	return all
}

// addUnlisted counts, by vendor, the cards of the hold that are not among cards.
// A card that changes its name, or a count that shrinks, does not end what runs
// on it: as many others may be the ones in use.
func (h *Hold) addUnlisted(cards []Card, count map[gpu.Vendor]int) {
	for i := range h.uses {
		if id := h.uses[i].Card; !listed(cards, id) {
			count[h.Vendor(id)]++
		}
	}
}

func listed(cards []Card, id gpu.CardID) bool {
	for i := range cards {
		if cards[i].ID == id {
			return true
		}
	}
	return false
}

// closeClaimed closes the last n free cards of a group. When fewer are free, a
// foreign pod shares a card with one of ours, whichever it is: then all of the
// group are closed, because room that may be in use is not free.
func closeClaimed(cards []Card, in group, n int) {
	if closeFree(cards, in, n) == 0 {
		return
	}
	for i := range cards {
		if c := &cards[i]; in(c) {
			c.Closed = true
		}
	}
}

// closeFree closes the last n free cards of a group, as far as there are any,
// and returns how many there were too few of. Which ones the pods are really on
// cannot be known; the last are those that placing in order reaches last. A claimed
// card is as free as any: nobody is there yet, and a claim must not open another.
func closeFree(cards []Card, in group, n int) (short int) {
	for i := len(cards) - 1; i >= 0 && n > 0; i-- {
		if c := &cards[i]; in(c) && c.empty() {
			c.Closed = true
			n--
		}
	}
	return n
}
