package demand

// pricing is who wants cards of which kind. Kinds are by their place in the outlook's
// views, those of the supply alone.
type pricing struct {
	cards  []float64   // of each kind
	allows [][]bool    // of each shape: the kinds it can have
	wants  [][]float64 // of each shape: cards of each kind at full load
	mean   float64     // cards that a pod takes
}

// newPricing splits what each shape wants by the supply among the kinds it can have.
// All together want as many cards as there are: that is what full load is.
func newPricing(mix []*weighted, views []*view, cards []float64) *pricing {
	p := &pricing{cards: cards}
	total, pods := 0.0, 0.0
	for i, w := range mix {
		allows, wants := make([]bool, len(views)), make([]float64, len(views))
		from := 0.0
		for k, v := range views {
			if allows[k] = v.takes(i); allows[k] {
				from += cards[k]
			}
		}
		for k, v := range views {
			if allows[k] {
				wants[k] = w.weight * v.cards(i) * cards[k] / from
				total += wants[k]
			}
		}
		pods += w.weight
		p.allows, p.wants = append(p.allows, allows), append(p.wants, wants)
	}
	if total == 0 {
		return p // without cards, or wishes for them
	}
	p.mean = total / pods
	for _, wants := range p.wants {
		for k := range wants {
			wants[k] *= sum(cards) / total
		}
	}
	return p
}

func sum(of []float64) (s float64) {
	for _, v := range of {
		s += v
	}
	return s
}

// of returns what a card of each kind costs those who can have these kinds: the share
// of the cards of that kind for which there are others, who cannot have all that
// they can.
func (p *pricing) of(allowed []bool) []float64 {
	prices := make([]float64, len(p.cards))
	for i, wants := range p.wants {
		if within(allowed, p.allows[i]) {
			continue
		}
		for k, w := range wants {
			prices[k] += w
		}
	}
	for k := range prices {
		prices[k] = min(1, prices[k]/p.cards[k])
	}
	return prices
}

func within(a, b []bool) bool {
	for k := range a {
		if a[k] && !b[k] {
			return false
		}
	}
	return true
}
