package demand

import (
	"math"
	"slices"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// mostLarge bounds the shapes that places are counted for.
const mostLarge = 64

// priceSteps is how finely the odds are told that places run out. Each step is another
// outlook, in which nothing is true any more that was remembered of the one before.
const priceSteps = 8

// waver is by how much of a step odds may leave theirs until they are told anew: what goes
// back and forth between two is no news.
const waver = 0.25

// scarcity is a shape for which places run out.
type scarcity struct {
	shape int     // in the mix
	price float64 // of a place that is lost, in cards
}

// places is how often the node could take the shape, which has one ask. Where it asks
// for no processors these do not matter.
func places(views []*view, it *item, s *State, cpu gpu.MilliCPU) int {
	fits := 0
	for _, r := range s.all() {
		if r.idle() > 0 && r.fits(views[r.kind].terms[it.first]) {
			fits++
		}
	}
	n := fits / it.count[0]
	if it.cpu > 0 {
		n = min(n, int(max(0, cpu)/it.cpu))
	}
	return n
}

// spoiled is the price of the places that are lost between two states, cpu having been
// taken off before as well. Those of two shapes are mostly the same places, so that of
// the dearest counts alone.
func (o *Outlook) spoiled(before, after *State, cpu gpu.MilliCPU) (most float64) {
	views := o.views.Load().all
	for _, c := range o.scarce {
		it := &o.items[c.shape]
		if n := places(views, it, before, before.cpu+cpu); n > 0 {
			most = max(most, c.price*float64(n-places(views, it, after, after.cpu)))
		}
	}
	return most
}

// Nodes are those of the cluster at one moment.
type Nodes interface {
	Len() int
	// Version is another for each state of the node at that place; 0 is none.
	Version(i int) uint64
	// State fills in what is left of the node, which is empty so far.
	State(i int, o *Outlook, s *State)
}

// Cluster is Nodes that know their cards.
type Cluster interface {
	Nodes
	Supply() Supply
}

// survey counts the places for large shapes.
type survey struct {
	of    *forecast  // what was counted for
	large []int      // shapes, by their places in the mix
	nodes []surveyed // by their places
	total []int      // places for each of large
	told  []int      // odds of each of large, in steps, as they were told last
	idle  int        // thousandths of a card
}

type surveyed struct {
	version uint64
	idle    int32
	places  [mostLarge]uint16
}

// count brings the survey up to date.
func (v *survey) count(o *Outlook, nodes Nodes) {
	if v.of != o.forecast {
		v.of, v.large, v.nodes, v.idle = o.forecast, o.large(), nil, 0
		v.total, v.told = make([]int, len(v.large)), make([]int, len(v.large))
	}
	for i := nodes.Len(); i < len(v.nodes); i++ {
		v.enter(i, surveyed{})
	}
	v.nodes = slices.Grow(v.nodes, max(0, nodes.Len()-len(v.nodes)))[:nodes.Len()]
	for i := range v.nodes {
		version := nodes.Version(i)
		if version != 0 && version == v.nodes[i].version {
			continue
		}
		var s State
		nodes.State(i, o, &s)
		views := o.views.Load().all // with the kinds of this node
		n := surveyed{version: version, idle: int32(s.idle())}
		for k, shape := range v.large {
			n.places[k] = uint16(places(views, &o.items[shape], &s, s.cpu))
		}
		v.enter(i, n)
	}
}

// enter replaces what is known of the node at that place.
func (v *survey) enter(i int, n surveyed) {
	was := &v.nodes[i]
	v.idle += int(n.idle - was.idle)
	for k := range v.total {
		v.total[k] += int(n.places[k]) - int(was.places[k])
	}
	*was = n
}

// large returns the shapes for which a place is easily spoiled: those that want several
// cards at once.
func (f *forecast) large() (shapes []int) {
	for i := range f.items {
		if c := f.items[i].count; len(c) == 1 && c[0] > 1 && len(shapes) < mostLarge {
			shapes = append(shapes, i)
		}
	}
	return shapes
}

// scarce returns the shapes for which places may run out, and what a place is worth: the
// cards that are asked for at once, times the odds that as many pods come as there are
// places before the cluster is full.
func (v *survey) scarce() (out []scarcity) {
	if v.of.prices.mean == 0 {
		return nil
	}
	coming := float64(v.idle) / full / v.of.prices.mean // pods until the cluster is full
	for k, shape := range v.large {
		if v.total[k] == 0 {
			continue // there is nothing left to lose
		}
		odds := priceSteps * tail(coming*v.of.rivals(shape, v.large), v.total[k])
		if v.told[k] = retold(v.told[k], odds); v.told[k] > 0 {
			out = append(out, scarcity{shape, float64(v.told[k]*v.of.items[shape].count[0]) / priceSteps})
		}
	}
	return out
}

// retold returns the step that odds are told by, which was told before.
func retold(step int, odds float64) int {
	if at := float64(step); odds < at-waver || odds >= min(at+1+waver, priceSteps) {
		return int(odds)
	}
	return step
}

// rivals is the share of pods that take places for that shape away: those of the
// large shapes that ask for no less.
func (f *forecast) rivals(shape int, large []int) (share float64) {
	mine := &f.items[shape]
	for _, k := range large {
		it := &f.items[k]
		if it.count[0] >= mine.count[0] && it.cpu >= mine.cpu && within(f.prices.allows[k], f.prices.allows[shape]) {
			share += f.mix[k].weight
		}
	}
	return share / f.weight
}

// tail is the probability that a Poisson variable of that mean is n or more.
func tail(mean float64, n int) float64 {
	const many = 100 // from here on a normal variable is as good
	if mean > many {
		return math.Erfc((float64(n)-0.5-mean)/math.Sqrt(2*mean)) / 2
	}
	p, below := math.Exp(-mean), 0.0
	for k := range min(n, 3*many) { // it is never that far beyond
		below += p
		p *= mean / float64(k+1)
	}
	return max(0, 1-below)
}
