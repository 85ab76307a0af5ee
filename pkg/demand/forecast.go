package demand

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"heteroflow.io/heteroflow/pkg/gpu"
)

const (
	// streams and length say how the future is drawn: as many streams, of as many
	// requests for cards, which is more than a node takes.
	streams = 48
	length  = 32
	// popular is the share of all pods whose shapes F looks at.
	popular = 0.95
	// most bounds those shapes, for one who asks for something else each time.
	most = 160
	// mostKinds bounds the kinds of cards. Of one that is beyond nothing is known.
	mostKinds = 256
)

// forecast is what outlooks on one mix share.
type forecast struct {
	mix      []*weighted
	items    []item // of each shape of the mix
	asks     int    // of all items
	anywhere []need // of each, on cards of several kinds
	streams  []uint16
	popular  []share
	prices   *pricing
	weight   float64      // of all shapes
	mostCPU  gpu.MilliCPU // more than that makes no difference to anyone
	worths   memo

	mu    sync.Mutex
	views atomic.Pointer[views] // replaced under mu
	cuts  []known               // guarded by mu
}

// item is a shape as the streams need it.
type item struct {
	cpu   gpu.MilliCPU
	first int   // place of its asks among those of all
	count []int // of each ask
}

// share is a place in the mix with its share in what is popular of it.
type share struct {
	shape int
	of    float64
}

func newForecast(mix []*weighted, supply Supply) *forecast {
	kinds := byCards(supply)
	mix = possible(mix, kinds)
	f := &forecast{mix: mix}
	for _, w := range mix {
		f.weight += w.weight
		f.anywhere = append(f.anywhere, need{cpu: w.cpu})
		it := item{cpu: w.cpu, first: f.asks}
		for i := range w.asks {
			it.count = append(it.count, w.asks[i].Count)
		}
		f.asks += len(w.asks)
		f.items = append(f.items, it)
	}
	f.draw()
	f.popular = mostPopular(mix)
	f.views.Store(&views{})
	cards := []float64{}
	for _, k := range kinds {
		if _, ok := f.add(k); ok {
			cards = append(cards, float64(supply[k]))
		}
	}
	f.prices = newPricing(mix, f.views.Load().all, cards)
	return f
}

// possible returns what of the mix there are cards for; all of it while there are none.
// Who asks for what is not there, as often as he likes, makes no difference to those who
// can be served.
func possible(mix []*weighted, kinds []Kind) []*weighted {
	if len(kinds) == 0 {
		return mix
	}
	cards := make([]gpu.Card, len(kinds))
	for i := range kinds {
		cards[i] = kinds[i].card()
	}
	return slices.DeleteFunc(slices.Clone(mix), func(w *weighted) bool {
		return slices.ContainsFunc(w.asks, func(a gpu.Ask) bool {
			return !slices.ContainsFunc(cards, func(c gpu.Card) bool { return w.on(&a, &c).memory != never })
		})
	})
}

// byCards returns the kinds there are cards of, the most common first.
func byCards(s Supply) []Kind {
	kinds := slices.Collect(maps.Keys(s))
	kinds = slices.DeleteFunc(kinds, func(k Kind) bool { return s[k] <= 0 })
	slices.SortFunc(kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(s[b], s[a]), a.compare(b))
	})
	return kinds
}

// draw draws the streams. The numbers are the same ones each time: outlooks on the
// same mix are the same, and those on like mixes alike.
func (f *forecast) draw() {
	var sums []float64
	var of []uint16
	total := 0.0
	for i, w := range f.mix {
		if len(w.asks) > 0 {
			total += w.weight
			sums, of = append(sums, total), append(of, uint16(i))
		}
	}
	if len(of) == 0 {
		return
	}
	random := rand.New(rand.NewPCG(48, 32))
	for range streams * length {
		at, _ := slices.BinarySearch(sums, random.Float64()*total)
		f.streams = append(f.streams, of[min(at, len(of)-1)])
	}
	for from := 0; from < len(f.streams); from += length {
		cpu := gpu.MilliCPU(0)
		for _, d := range f.streams[from : from+length] {
			cpu += f.items[d].cpu
		}
		f.mostCPU = max(f.mostCPU, cpu)
	}
}

// mostPopular returns the shapes that come to as large a share of all, with their shares
// among themselves.
func mostPopular(mix []*weighted) (top []share) {
	total, covered := 0.0, 0.0
	for _, w := range mix {
		total += w.weight
	}
	for i, w := range mix {
		if covered >= popular*total || i == most {
			break
		}
		covered += w.weight
		top = append(top, share{i, w.weight})
	}
	for i := range top {
		top[i].of /= covered
	}
	return top
}
