package demand

import (
	"cmp"
	"slices"
	"sync"

	"heteroflow.io/heteroflow/pkg/gpu"
)

const (
	// mostShapes bounds what is remembered. Nineteen of twenty pods of a large cluster
	// have one of some 40 to 130 shapes.
	mostShapes = 512
	// halfLife is how many pods it takes until one counts half. Pods of the mix that a
	// cluster of 1,000 nodes holds at a time are about as many.
	halfLife = 4096
	// few pods are no more than this.
	few = 32
	// faded is the weight below which a shape is forgotten.
	faded = 0.2
)

// Learner learns what is asked for.
type Learner struct {
	looking sync.Mutex // held while an outlook is made
	survey  survey     // guarded by looking

	mu      sync.Mutex
	seen    map[string]*weighted // guarded by mu; key of the shape -> how often
	noted   int                  // guarded by mu; pods in all
	due     int                  // guarded by mu; when noted comes to this the outlook is out of date
	outlook *Outlook             // guarded by mu
}

// weighted is a shape and its share in the mix.
type weighted struct {
	shape
	key    string
	weight float64
}

// New returns a learner that has seen nothing. It expects whole cards and halves and
// quarters of them, of any kind; that counts as few pods and is soon outweighed.
func New() *Learner {
	l := &Learner{seen: map[string]*weighted{}}
	for _, p := range []struct {
		ask    gpu.Ask
		weight float64
	}{
		{gpu.Ask{Count: 1, Whole: true}, 4},
		{gpu.Ask{Count: 2, Whole: true}, 1},
		{gpu.Ask{Count: 4, Whole: true}, 1},
		{gpu.Ask{Count: 8, Whole: true}, 1},
		{gpu.Ask{Count: 1, MemoryPercent: 50, ProportionalCores: true}, 2},
		{gpu.Ask{Count: 1, MemoryPercent: 25, ProportionalCores: true}, 1},
	} {
		l.add(shape{asks: []gpu.Ask{p.ask}}, p.weight)
	}
	return l
}

// Note counts a new pod. The caller calls once for each.
func (l *Learner) Note(r *gpu.Request) {
	s := shapeOf(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(s, 1)
	if l.noted++; l.noted%halfLife == 0 {
		l.fade()
	}
}

func (l *Learner) add(s shape, weight float64) {
	key := s.key()
	if l.seen[key] == nil {
		if len(l.seen) >= mostShapes {
			l.evict()
		}
		l.seen[key] = &weighted{shape: s, key: key}
	}
	l.seen[key].weight += weight
}

func (l *Learner) fade() {
	for key, w := range l.seen {
		if w.weight /= 2; w.weight < faded {
			delete(l.seen, key)
		}
	}
}

// evict forgets the shape of the least weight.
func (l *Learner) evict() {
	var least *weighted
	for _, w := range l.seen {
		if least == nil || heavier(w, least) > 0 {
			least = w
		}
	}
	delete(l.seen, least.key)
}

func heavier(a, b *weighted) int {
	return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.key, b.key))
}

// mix returns what was seen, the most popular first.
func (l *Learner) mix() []*weighted {
	mix := make([]*weighted, 0, len(l.seen))
	for _, w := range l.seen {
		c := *w
		mix = append(mix, &c)
	}
	slices.SortFunc(mix, heavier)
	return mix
}

// Outlook returns the outlook in force. It is made here if it is the first or on few pods:
// then each makes a difference. Later that takes up to half a second, for many shapes and
// kinds of cards, which no decision should wait for; see Look. The supply is asked for
// when one is made.
func (l *Learner) Outlook(supply func() Supply) *Outlook {
	o, due := l.current()
	switch {
	case !due:
		return o
	case o == nil:
		l.looking.Lock()
	case l.many() || !l.looking.TryLock():
		return o
	}
	defer l.looking.Unlock()
	if o, due := l.current(); !due { // somebody was faster
		return o
	}
	o = l.picture(supply())
	l.enforce(o)
	return o
}

// Look has the outlook in force go by what there is room for now, and by what is asked
// for once enough has come that is new: half of what there was while that is little,
// later a quarter of the pods it takes to forget half. It is the same one if nothing
// comes of that. Decisions go on with the one before. Of nodes that have not changed
// since the last time nothing is asked.
func (l *Learner) Look(c Cluster) *Outlook {
	l.looking.Lock()
	defer l.looking.Unlock()
	o, due := l.current()
	if due {
		o = l.picture(c.Supply())
	}
	l.survey.count(o, c)
	if scarce := l.survey.scarce(); !slices.Equal(scarce, o.scarce) {
		o = o.outlook(scarce)
	}
	l.enforce(o)
	return o
}

// picture returns an outlook on what has been seen so far.
func (l *Learner) picture(s Supply) *Outlook {
	l.mu.Lock()
	mix := l.mix()
	l.due = l.noted + min(halfLife/4, max(1, l.noted/2))
	l.mu.Unlock()
	return newForecast(mix, s).outlook(nil)
}

// many reports whether more than a few pods have been seen.
func (l *Learner) many() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.noted > few
}

func (l *Learner) enforce(o *Outlook) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outlook = o
}

func (l *Learner) current() (o *Outlook, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outlook, l.noted >= l.due
}
