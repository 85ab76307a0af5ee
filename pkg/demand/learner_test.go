package demand

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
)

func weights(l *Learner) map[string]float64 {
	all := map[string]float64{}
	for key, w := range l.seen {
		all[key] = w.weight
	}
	return all
}

func of(r *gpu.Request) string { s := shapeOf(r); return s.key() }

// Each pod counts one, whatever it is called.
func TestNoteCounts(t *testing.T) {
	l := learned()
	for i, name := range []string{"a", "b", "c", "d"} {
		r := request(1000, slice(100))
		r.Name = name
		if i == 3 {
			r.CPU = 2000
		}
		l.Note(r)
	}
	want := map[string]float64{of(request(1000, slice(100))): 3, of(request(2000, slice(100))): 1}
	if diff := cmp.Diff(want, weights(l)); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
}

// However many different pods come, no more shapes are remembered than may be, and
// those that come often are among them.
func TestLearnerIsBounded(t *testing.T) {
	l := New()
	often := request(7, whole(1))
	for i := range 5 * mostShapes {
		l.Note(request(gpu.MilliCPU(1000 + i)))
		if i%10 == 0 {
			l.Note(often)
		}
		if len(l.seen) > mostShapes {
			t.Fatalf("%d shapes after %d pods, want at most %d", len(l.seen), i, mostShapes)
		}
	}
	if w := l.seen[of(often)]; w == nil || w.weight < mostShapes/2 {
		t.Errorf("what comes often is forgotten: %+v", w)
	}
}

// What has not come for long counts half after as many pods, and then is forgotten,
// what was expected before anything was seen as well.
func TestLearnerForgets(t *testing.T) {
	l := New()
	old, now := request(1, whole(1)), request(2, whole(1))
	for range halfLife / 2 {
		l.Note(old)
	}
	for range halfLife / 2 {
		l.Note(now)
	}
	if got := l.seen[of(old)].weight; got != halfLife/4 {
		t.Errorf("weight %v, want half of %d", got, halfLife/2)
	}
	for range 14 * halfLife {
		l.Note(now)
	}
	if len(l.seen) != 1 || l.seen[of(now)] == nil {
		t.Errorf("%d shapes are remembered, want the one of late", len(l.seen))
	}
	if got := l.seen[of(now)].weight; got > 2*halfLife {
		t.Errorf("weight %v grows without bounds", got)
	}
}

// The order in which pods come makes no difference.
func TestOrderMakesNoDifference(t *testing.T) {
	var pods []*gpu.Request
	for _, w := range usual() {
		for range 1 + int(w.weight) {
			pods = append(pods, w.r)
		}
	}
	a, b := New(), New()
	for _, r := range pods {
		a.Note(r)
	}
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	for _, r := range pods {
		b.Note(r)
	}
	card := model("A")
	supply := func() Supply { return Supply{KindOf(&card): 8} }
	one, other := a.Outlook(supply), b.Outlook(supply)
	if diff := cmp.Diff(one.streams, other.streams); diff != "" {
		t.Errorf("streams (-one +other):\n%s", diff)
	}
	for range 100 {
		s := anyState(random)
		if x, y := one.lost(*s), other.lost(*s); x != y {
			t.Fatalf("%v is lost of %+v by one, %v by the other", x, s, y)
		}
	}
}

// The outlook stays until enough is new: half as much again, and later a quarter of
// what it takes to forget half. No decision waits for another one.
func TestOutlookStays(t *testing.T) {
	l := New()
	asked := 0
	supply := func() Supply { asked++; return nil }
	outlook := func() *Outlook {
		before := l.Outlook(supply)
		if o := l.Look(counting{supply: supply}); o != before {
			if l.Outlook(supply) != o {
				t.Fatal("the outlook that is made is not in force")
			}
			return o
		}
		return before
	}
	var made []int
	last := outlook()
	for n := 1; n <= 3*halfLife; n++ {
		l.Note(request(gpu.MilliCPU(n%7), whole(1)))
		if o := outlook(); o != last {
			made, last = append(made, n), o
		}
	}
	if asked != len(made)+1 {
		t.Errorf("the supply was asked for %d times, for %d outlooks", asked, len(made)+1)
	}
	for i, n := range made {
		before := 0
		if i > 0 {
			before = made[i-1]
		}
		if want := before + min(halfLife/4, max(1, before/2)); n != want {
			t.Errorf("outlook %d at %d pods, want %d after that at %d", i, n, want, before)
		}
	}
	if len(made) > 30 {
		t.Errorf("%d outlooks for %d pods", len(made), 3*halfLife)
	}
}

// While few have come each makes a difference at once; later no decision waits for it.
func TestFewMakeADifferenceAtOnce(t *testing.T) {
	l := New()
	supply := func() Supply { return nil }
	last := l.Outlook(supply)
	for n := 1; n <= 10*few; n++ {
		l.Note(request(gpu.MilliCPU(n), whole(1)))
		o := l.Outlook(supply)
		if n <= 3 && o == last || n > few && o != last {
			t.Errorf("pod %d: another outlook: %v", n, o != last)
		}
		last = o
	}
	if l.Look(counting{supply: supply}) == last {
		t.Error("who looks sees nothing new")
	}
}

// counting is no nodes, with a supply.
type counting struct {
	Nodes
	supply func() Supply
}

func (counting) Len() int         { return 0 }
func (c counting) Supply() Supply { return c.supply() }

// Before anything was seen whole cards and parts of them are expected, so that what
// breaks up a node costs something.
func TestPrior(t *testing.T) {
	card := model("A")
	o := New().Outlook(func() Supply { return Supply{KindOf(&card): 8} })
	w := o.Of(request(1000, slice(300)))
	begun, _ := w.Cost(state(96000, 1000, 1000, 1000, 400))
	fresh, _ := w.Cost(state(96000, 1000, 1000, 1000, 1000))
	if !begun.Less(fresh) {
		t.Errorf("a slice costs %v beside one, %v on a free node", begun.Cards(), fresh.Cards())
	}
}

// All at once: pods are noted, outlooks made, surveyed and used.
func TestConcurrently(t *testing.T) {
	l := New()
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			c := &cluster{card: model("A")}
			for range 5 {
				c.add(32000, 1000, 1000, 500, 0)
			}
			other := model("B")
			random := rand.New(rand.NewPCG(uint64(k), 0))
			for i := range 300 {
				w := usual()[random.IntN(len(usual()))]
				l.Note(w.r)
				o := l.Outlook(c.Supply)
				if i%3 == 0 {
					o = l.Look(c)
				}
				if r, ok := o.Room(&other, false, gpu.MiB(i), 50); !ok || int(r.memory) != min(i, full-1) {
					t.Errorf("room %+v, %v for %d MiB", r, ok, i)
				}
				cost, ok := o.Of(w.r).Cost(state(96000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000))
				if !ok || math.IsNaN(cost.Cards()) {
					t.Errorf("%+v costs %v, %v", w.r, cost.Cards(), ok)
				}
			}
		})
	}
	all.Wait()
	if l.noted != 4*300 {
		t.Errorf("%d pods noted, want %d", l.noted, 4*300)
	}
}
