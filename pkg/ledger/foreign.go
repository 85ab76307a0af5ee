package ledger

import "heteroflow.io/heteroflow/pkg/gpu"

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
		h.addUnlisted(cards, unlisted)
	}
	settle := func(vendor gpu.Vendor) {
		closeClaimed(cards, vendor, claims[vendor])
		closeFree(cards, vendor, unlisted[vendor])
	}
	for _, vendor := range gpu.Vendors() {
		settle(vendor)
	}
	settle("") // after the picky ones, as it takes what they leave
}

// addUnlisted counts, by vendor, the cards of the hold that are not among cards.
// A card that changes its name, or a count that shrinks, does not end what runs
// on it: as many others may be the ones in use.
func (h *Hold) addUnlisted(cards []Card, count map[gpu.Vendor]int) {
	for i := range h.uses {
		if id := h.uses[i].Card; !listed(cards, id) {
			count[h.vendor(id)]++
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

// vendor returns whose make the card is, by the hold's own record.
func (h *Hold) vendor(id gpu.CardID) gpu.Vendor {
	for i := range h.Grants {
		for _, s := range h.Grants[i].Shares {
			if s.Card == id {
				return s.Vendor
			}
		}
	}
	return ""
}

// closeClaimed closes the last n free cards of a vendor ("" for any). When fewer
// are free, a foreign pod shares a card with one of ours, whichever it is: then
// all of the vendor's cards are closed, because room that may be in use is not
// free.
func closeClaimed(cards []Card, vendor gpu.Vendor, n int) {
	if closeFree(cards, vendor, n) == 0 {
		return
	}
	for i := range cards {
		if c := &cards[i]; vendor == "" || c.Vendor == vendor {
			c.Closed = true
		}
	}
}

// closeFree closes the last n free cards of a vendor, as far as there are any,
// and returns how many there were too few of. Which ones the pods are really on
// cannot be known; the last are those that placing in order reaches last.
func closeFree(cards []Card, vendor gpu.Vendor, n int) (short int) {
	for i := len(cards) - 1; i >= 0 && n > 0; i-- {
		if c := &cards[i]; (vendor == "" || c.Vendor == vendor) && c.Free() {
			c.Closed = true
			n--
		}
	}
	return n
}
