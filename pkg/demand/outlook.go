package demand

import (
	"sync"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// mostWanted bounds the requests that are remembered.
const mostWanted = 256

// Outlook is what is expected: a mix of requests, the kinds of cards for them, and what
// places run out. It does not change; what it remembers of what it was asked does not
// show.
type Outlook struct {
	*forecast
	scarce []scarcity

	asking sync.Mutex
	wanted map[*gpu.Request]*Wanted // guarded by asking
	shapes map[string]*Wanted       // guarded by asking; by the shape's key
}

func (f *forecast) outlook(scarce []scarcity) *Outlook {
	return &Outlook{forecast: f, scarce: scarce, wanted: map[*gpu.Request]*Wanted{}, shapes: map[string]*Wanted{}}
}

// Of returns the request as the outlook sees it. Requests never change, so it is
// remembered by which it is.
func (o *Outlook) Of(r *gpu.Request) *Wanted {
	o.asking.Lock()
	defer o.asking.Unlock()
	if w := o.wanted[r]; w != nil {
		return w
	}
	s := shapeOf(r)
	key := s.key()
	w := o.shapes[key]
	if w == nil {
		w = o.want(s)
	}
	if len(o.wanted) >= mostWanted {
		clear(o.wanted)
		clear(o.shapes)
	}
	o.wanted[r], o.shapes[key] = w, w
	return w
}

func (o *Outlook) want(s shape) *Wanted {
	w := &Wanted{shape: s, o: o}
	views := o.views.Load().all
	allowed := make([]bool, len(o.prices.cards))
	for k, v := range views {
		terms := make([]term, len(s.asks))
		for i := range s.asks {
			terms[i] = s.on(&s.asks[i], &v.card)
			if k < len(allowed) && terms[i].memory != never {
				allowed[k] = true
			}
		}
		w.terms = append(w.terms, terms)
	}
	w.prices = o.prices.of(allowed)
	return w
}
