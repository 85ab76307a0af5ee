package demand

// fragments is F: what is left of the node, in cards, and is of no use to the next
// request; the mean over what is popular of the mix. To one that does not fit the
// node at all nothing is of use, to another those cards alone that it fits.
func (f *forecast) fragments(s *State) (sum float64) {
	views, idle := f.views.Load().all, s.idle()
	for _, p := range f.popular {
		sum += p.of * float64(idle-usable(views, &f.items[p.shape], s))
	}
	return sum / full
}

// usable is what is left of the cards that the shape fits; nothing if it does not fit
// the node.
func usable(views []*view, it *item, s *State) (left int) {
	switch {
	case len(it.count) == 0, it.cpu > s.cpu:
		return 0
	case len(it.count) > 1:
		if trial := *s; !place(views, it, &trial) {
			return 0
		}
	}
	fits := 0
	for _, r := range s.all() {
		for i := range it.count {
			if r.fits(views[r.kind].terms[it.first+i]) {
				left, fits = left+r.idle(), fits+1
				break
			}
		}
	}
	if len(it.count) == 1 && fits < it.count[0] {
		return 0
	}
	return left
}
