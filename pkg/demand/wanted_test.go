package demand

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// One shape, so that every part of the cost is known: halves, of which a card takes
// two. A half is worth half a card, and so is each half of a card: nothing is ever
// regretted of it.
func TestCostByHand(t *testing.T) {
	a, b := model("A"), model("B")
	half := request(0, slice(500))
	halves := []wish{{half, 1}}
	tests := map[string]struct {
		mix   []wish
		r     *gpu.Request
		state *State
		want  float64
	}{
		"what is expected costs nothing": {halves, half, state(0, 1000, 1000), 0},
		"nor does the rest of a card":    {halves, half, state(0, 500, 1000), 0},
		// V: 400 are stuck. F: likewise, a quarter. Regret: a card was worth 1, 400
		// are worth 0, and a slice of 600 half a card as it takes the place of a half.
		"a size that spoils the card": {halves, request(0, slice(600)), state(0, 1000), 0.4 + 0.25*0.4 + 3*0.5},
		// What was of no use is used: 0.4 and a quarter of that.
		"what is stuck is free": {halves, request(0, slice(400)), state(0, 400), -0.4 - 0.25*0.4},
		"the better card of two": {
			halves, request(0, slice(400)), state(0, 1000, 400), -0.4 - 0.25*0.4,
		},
		// Two cards are of no use without processors, V and F.
		"processors that the cards need": {[]wish{{request(1000, slice(500)), 1}}, request(4000), state(4000, 1000, 1000), 2 + 0.25*2},
		"and those that they do not":     {[]wish{{request(1000, slice(500)), 1}}, request(4000), state(8000, 1000, 1000), 0},
		"no card on a node without":      {halves, request(4000), state(8000), 0},
		// Of a pair one is left, which is no use to a pair.
		"one of a pair":  {[]wish{{request(0, whole(2)), 1}}, request(0, whole(1)), state(0, 1000, 1000), 1 + 0.25},
		"a pair":         {[]wish{{request(0, whole(2)), 1}}, request(0, whole(2)), state(0, 1000, 1000), 0},
		"two containers": {[]wish{{request(0, whole(2)), 1}}, request(0, whole(1), whole(1)), state(0, 1000, 1000), 0},
		// The third is idle either way, but to the next pair of no use.
		"of three a pair": {[]wish{{request(0, whole(2)), 1}}, request(0, whole(2)), state(0, 1000, 1000, 1000), 0.25},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := newForecast(mixOf(tc.mix...), Supply{KindOf(&a): 8, KindOf(&b): 8}).outlook(nil)
			got, ok := o.Of(tc.r).Cost(tc.state)
			if want := math.Round(tc.want/grain) * grain; !ok || math.Abs(got.Cards()-want) > 1e-9 {
				t.Errorf("cost %v, %v; want %v", got.Cards(), ok, want)
			}
		})
	}
}

// What there are no cards for makes no difference to what others cost, however often it
// is asked for, nor does it take places from anyone.
func TestWhatThereIsNotMakesNoDifference(t *testing.T) {
	a := model("A")
	supply := Supply{KindOf(&a): 8}
	mix := []wish{{request(0, whole(2)), 50}, {request(1000, slice(500)), 40}, {request(2000), 10}}
	plain := newForecast(mixOf(mix...), supply)
	for name, r := range map[string]*gpu.Request{
		"a model":                   named(request(0, whole(8)), "X"),
		"a slice that is too large": request(0, gpu.Ask{Count: 8, Memory: 1001}),
		"one container of two":      request(0, whole(8), gpu.Ask{Count: 1, Memory: 1001}),
	} {
		t.Run(name, func(t *testing.T) {
			other := newForecast(mixOf(append(mix, wish{r, 10000})...), supply)
			random := rand.New(rand.NewPCG(1, 1))
			for range 200 {
				s := anyState(random)
				for _, w := range mix {
					x, _ := plain.outlook(nil).Of(w.r).Cost(s)
					y, _ := other.outlook(nil).Of(w.r).Cost(s)
					if x != y {
						t.Fatalf("%+v costs %v on %+v, and %v otherwise", w.r, y.Cards(), s.all(), x.Cards())
					}
				}
			}
			if x, y := plain.rivals(0, plain.large()), other.rivals(0, other.large()); x != y {
				t.Errorf("rivals %v, %v otherwise", y, x)
			}
		})
	}
}

// Who can do with any card pays for those of the kind that others name.
func TestCostOfAKind(t *testing.T) {
	a, b := model("A"), model("B")
	any, onB := request(0, whole(1)), named(request(0, whole(1)), "B")
	o := newForecast(mixOf(wish{any, 1}, wish{onB, 1}), Supply{KindOf(&a): 10, KindOf(&b): 10}).outlook(nil)
	cost := func(r *gpu.Request, c gpu.Card) float64 {
		var s State
		room, _ := o.Room(&c, true, 0, 0)
		s.Add(room)
		got, ok := o.Of(r).Cost(&s)
		if !ok {
			return math.NaN()
		}
		return got.Cards()
	}
	// A card of A is of no use to every other pod, so that taking it spares 0.25 x 0.5.
	if got, want := cost(any, a), math.Round(-0.25*0.5/grain)*grain; math.Abs(got-want) > 1e-9 {
		t.Errorf("A costs %v, want %v", got, want)
	}
	if got, want := cost(any, b), math.Round(1/grain)*grain; math.Abs(got-want) > 1e-9 {
		t.Errorf("B costs %v, want its price, %v", got, want)
	}
	if got := cost(onB, b); got != 0 {
		t.Errorf("B costs %v who names it", got)
	}
	if got := cost(onB, a); !math.IsNaN(got) {
		t.Errorf("A costs %v who names B, and does not fit", got)
	}
}

// Everything that does not fit says so.
func TestCostWhereItDoesNotFit(t *testing.T) {
	o := outlook(usual()...)
	for name, tc := range map[string]struct {
		r     *gpu.Request
		state *State
	}{
		"too few":                   {request(0, whole(3)), state(0, 1000, 1000, 999)},
		"more than any node has":    {request(0, whole(MostCards+1)), state(0, 1000)},
		"too large":                 {request(0, slice(501)), state(0, 500, 500)},
		"beside the pod's own":      {request(0, whole(1), slice(100)), state(0, 1000)},
		"two parts, one card":       {request(0, gpu.Ask{Count: 2, Memory: 300}), state(0, 1000)},
		"a node without cards":      {request(0, whole(1)), state(0)},
		"no room of any kind known": {request(0, whole(1)), &State{n: 1}},
	} {
		if c, ok := o.Of(tc.r).Cost(tc.state); ok {
			t.Errorf("%s: costs %v", name, c.Cards())
		}
	}
}

// The card's own cost is of the first ask that it takes.
func TestCostAt(t *testing.T) {
	o := outlook(usual()...)
	w := o.Of(request(0, slice(300), whole(1)))
	s := state(9000, 1000, 400, 200, 0)
	for i, want := range []int{0, 1, -1, -1, -1} {
		if _, ask := w.CostAt(s, i); ask != want {
			t.Errorf("card %d takes ask %d, want %d", i, ask, want)
		}
	}
	if _, ask := o.Of(request(0)).CostAt(s, 0); ask != -1 {
		t.Errorf("a card takes ask %d of a pod without", ask)
	}
}

// What one device costs on a node is what it costs on its best card.
func TestCostIsThatOfTheBestCard(t *testing.T) {
	o := outlook(usual()...)
	o = o.outlook([]scarcity{{len(o.mix) - 2, 1}})
	random := rand.New(rand.NewPCG(9, 10))
	for range 2000 {
		r, s := usual()[random.IntN(len(usual()))].r, anyState(random)
		if len(r.Asks) == 0 || r.Asks[0].Count > 1 || s.cpu < r.CPU {
			continue
		}
		var best *Cost
		for i := range s.n {
			if c, ask := o.Of(r).CostAt(s, i); ask == 0 && (best == nil || c.Less(*best)) {
				best = &c
			}
		}
		if got, ok := o.Of(r).Cost(s); ok != (best != nil) || ok && got != *best {
			t.Fatalf("%+v on %+v costs %+v, %v; on the best card %+v", r, s.all(), got, ok, best)
		}
	}
}

// States that differ in nothing that matters have one key.
func TestReducedStatesAreAlike(t *testing.T) {
	o := outlook(usual()...)
	random := rand.New(rand.NewPCG(11, 12))
	for range 1000 {
		a := *anyState(random)
		b := a
		b.Add(Room{memory: 900})
		b.Add(Room{})
		random.Shuffle(b.n, func(i, j int) { b.rooms[i], b.rooms[j] = b.rooms[j], b.rooms[i] })
		a.cpu, b.cpu = o.mostCPU, o.mostCPU+gpu.MilliCPU(random.IntN(9))
		a.reduce(o.mostCPU)
		b.reduce(o.mostCPU)
		if string(a.key(nil)) != string(b.key(nil)) {
			t.Fatalf("%+v and %+v", a.all(), b.all())
		}
		if b.cpu--; string(a.key(nil)) == string(b.key(nil)) {
			t.Fatalf("%+v, with less CPU %+v", a.all(), b.all())
		}
	}
}

// Kinds that differ in anything are not the same, and come in one order.
func TestKindsThatDiffer(t *testing.T) {
	a := model("A")
	for name, change := range map[string]func(*gpu.Card){
		"vendor":       func(c *gpu.Card) { c.Vendor = gpu.Ascend },
		"model":        func(c *gpu.Card) { c.Model = "B" },
		"plugin":       func(c *gpu.Card) { c.Plugin = "p" },
		"memory":       func(c *gpu.Card) { c.Memory++ },
		"usable":       func(c *gpu.Card) { c.Usable++ },
		"cores":        func(c *gpu.Card) { c.Cores++ },
		"usable cores": func(c *gpu.Card) { c.UsableCores++ },
		"mode":         func(c *gpu.Card) { c.Mode = gpu.ModeMIG },
		"isolation":    func(c *gpu.Card) { c.Isolation = gpu.IsolationHard },
	} {
		b := a
		change(&b)
		x, y := KindOf(&a), KindOf(&b)
		if x == y || x.compare(y) == 0 || x.compare(y) != -y.compare(x) {
			t.Errorf("%s: equal %v, compared %d and %d", name, x == y, x.compare(y), y.compare(x))
		}
		card := y.card()
		if KindOf(&card) != y {
			t.Errorf("%s: a card of %+v is %+v", name, y, KindOf(&card))
		}
	}
}

// Rank orders as Less does.
func TestRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(of string) Cost {
			return Cost{rapid.IntRange(-900, 900).Draw(t, of+" grains"), rapid.IntRange(0, full).Draw(t, of+" left")}
		}
		a, b := draw("a"), draw("b")
		if a.Less(b) != (a.Rank() < b.Rank()) {
			t.Errorf("%+v less than %+v: %v; by rank %v", a, b, a.Less(b), a.Rank() < b.Rank())
		}
	})
}

// What was remembered is what would be found anew, in whatever order the cards are.
func TestMemoryDoesNotShow(t *testing.T) {
	remembers := outlook(usual()...)
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		r := usual()[random.IntN(len(usual()))].r
		s := anyState(random)
		shuffled := *s
		random.Shuffle(s.n, func(i, j int) { shuffled.rooms[i], shuffled.rooms[j] = shuffled.rooms[j], shuffled.rooms[i] })
		remembers.worths = memo{now: remembers.worths.now}
		got, gotOK := remembers.Of(r).Cost(s)
		again, againOK := remembers.Of(r).Cost(&shuffled)
		remembers.worths.now, remembers.worths.old = nil, remembers.worths.now
		late, _ := remembers.Of(r).Cost(s)
		fresh, freshOK := outlook(usual()...).Of(r).Cost(s)
		if got != fresh || gotOK != freshOK || late != fresh {
			t.Fatalf("%+v on %+v costs %+v, %+v from memory, %+v anew", r, s.all(), got, late, fresh)
		}
		if again.grains != got.grains || againOK != gotOK {
			t.Fatalf("%+v on %+v costs %+v, %+v in another order", r, s.all(), got, again)
		}
	}
}

// The memory is bounded, and what was asked for last is in it.
func TestMemoIsBounded(t *testing.T) {
	var m memo
	for i := range 3 * mostWorths {
		m.put([]byte{byte(i), byte(i >> 8), byte(i >> 16)}, float64(i))
		if n := len(m.now) + len(m.old); n > mostWorths {
			t.Fatalf("%d are remembered", n)
		}
	}
	for _, i := range []int{3*mostWorths - 1, 3*mostWorths - mostWorths/2 - 1} {
		if v, ok := m.get([]byte{byte(i), byte(i >> 8), byte(i >> 16)}); !ok || v != float64(i) {
			t.Errorf("number %d: %v, %v", i, v, ok)
		}
	}
}

// So are the requests.
func TestRequestsAreBounded(t *testing.T) {
	o := outlook(usual()...)
	for i := range 3 * mostWanted {
		o.Of(request(gpu.MilliCPU(i)))
	}
	if len(o.wanted) > mostWanted || len(o.shapes) > mostWanted {
		t.Errorf("%d requests and %d shapes are remembered", len(o.wanted), len(o.shapes))
	}
	r := request(5, whole(1))
	if w := o.Of(r); o.Of(r) != w || o.Of(request(5, whole(1))) != w {
		t.Error("a request is looked at anew")
	}
}

// What stays idle is never more than there is, and of less no more stays idle than of more
// in total: to take something away never adds to it.
func TestIdleIsWithinBounds(t *testing.T) {
	o := outlook(usual()...)
	random := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		s := anyState(random)
		s.reduce(o.mostCPU)
		if s.n == 0 {
			continue
		}
		idle := float64(s.idle()) / full
		if v := o.idle(s); v < 0 || v > idle+1e-9 {
			t.Fatalf("%v of %v stay idle: %+v", v, idle, s.all())
		}
		if f := o.fragments(s); f < -1e-9 || f > idle+1e-9 {
			t.Fatalf("%v of %v are fragments: %+v", f, idle, s.all())
		}
	}
}

// To take a stream is to take each of its requests or none: what is taken is what is
// missing at the end, and no card ends below nothing.
func TestFillTakesWhatFits(t *testing.T) {
	o := outlook(append(usual(), wish{request(500, whole(1), slice(200)), 5}, wish{request(500, gpu.Ask{Count: 3, Memory: 250}), 5})...)
	views := o.views.Load().all
	random := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		s := anyState(random)
		s.reduce(o.mostCPU)
		for d := range o.items {
			if len(o.items[d].count) == 0 {
				continue
			}
			end := *s
			took := place(views, &o.items[d], &end)
			if !took && !cmp.Equal(s.all(), end.all(), cmp.AllowUnexported(Room{})) {
				t.Fatalf("nothing was taken of %+v, which leaves %+v", s.all(), end.all())
			}
			want := 0
			for i, count := range o.items[d].count {
				want += count * int(views[0].terms[o.items[d].first+i].memory)
			}
			got := 0
			for i := range s.n {
				got += int(s.rooms[i].memory) - int(end.rooms[i].memory)
				if end.rooms[i].memory > full || end.rooms[i].cores > full {
					t.Fatalf("less than nothing is left: %+v", end.all())
				}
			}
			if took && got != want {
				t.Fatalf("%d taken of %+v, want %d", got, s.all(), want)
			}
		}
	}
}

// A decision looks at every node, so no node may cost memory once its state is known.
func TestCostDoesNotAllocate(t *testing.T) {
	o := outlook(usual()...)
	o = o.outlook([]scarcity{{0, 1}})
	for _, w := range usual() {
		wanted, s := o.Of(w.r), state(96000, 1000, 1000, 530, 1000, 190, 1000, 1000, 0)
		if n := testing.AllocsPerRun(100, func() {
			o.Of(w.r).Cost(s)
			wanted.CostAt(s, 1)
		}); n > 0 {
			t.Errorf("%+v: %v allocations", w.r, n)
		}
	}
	card := model("A")
	if n := testing.AllocsPerRun(100, func() { o.Room(&card, false, 500, 50) }); n > 0 {
		t.Errorf("a room: %v allocations", n)
	}
}

func TestRoom(t *testing.T) {
	o := outlook(usual()...)
	with := func(change func(*gpu.Card)) gpu.Card { c := model("A"); change(&c); return c }
	for name, tc := range map[string]struct {
		card          gpu.Card
		free          bool
		memory        gpu.MiB
		cores         gpu.Cores
		wantM, wantCo uint16
	}{
		"free":                                 {with(func(*gpu.Card) {}), true, 1000, 100, full, full},
		"in part":                              {with(func(*gpu.Card) {}), false, 470, 30, 470, 300},
		"nothing is taken, but it is not free": {with(func(*gpu.Card) {}), false, 1000, 100, full - 1, full},
		"rounded down":                         {with(func(c *gpu.Card) { c.Usable = 3000 }), false, 2999, 99, 999, 990},
		"one piece, free":                      {with(func(c *gpu.Card) { c.Mode = gpu.ModeWhole }), true, 1000, 100, full, full},
		"one piece, taken":                     {with(func(c *gpu.Card) { c.Mode = gpu.ModeWhole }), false, 500, 50, 0, 0},
		"a partition":                          {with(func(c *gpu.Card) { c.Mode = gpu.ModeMIG }), true, 1000, 100, 0, 0},
		"slices of nothing":                    {with(func(c *gpu.Card) { c.Usable = 0 }), false, 0, 0, 0, 0},
	} {
		r, ok := o.Room(&tc.card, tc.free, tc.memory, tc.cores)
		if !ok || r.memory != tc.wantM || r.cores != tc.wantCo {
			t.Errorf("%s: %+v, %v; want %d, %d", name, r, ok, tc.wantM, tc.wantCo)
		}
	}
}

// There is an end to the kinds of cards.
func TestKindsAreBounded(t *testing.T) {
	o := outlook(usual()...)
	for i := range mostKinds + 10 {
		c := model("A")
		c.Memory += gpu.MiB(i)
		if _, ok := o.Room(&c, true, 0, 0); ok != (i < mostKinds) {
			t.Fatalf("kind %d is known: %v", i, ok)
		}
	}
	if n := len(o.views.Load().all); n != mostKinds {
		t.Errorf("%d kinds, want %d", n, mostKinds)
	}
}

// However many cards and containers there are, what a place costs takes a bounded number
// of looks at states, and each device that fits somewhere finds a place.
func TestCostIsBounded(t *testing.T) {
	tests := map[string]struct {
		cards int
		asks  []gpu.Ask
		looks int
	}{
		"a device on eight cards":         {8, []gpu.Ask{slice(10)}, 1 + 8},
		"eight devices on eight cards":    {8, []gpu.Ask{{Count: 8, Memory: 10}}, 1 + 8*8 + 1},
		"a device on sixty-four":          {64, []gpu.Ask{slice(10)}, 2},
		"sixty-four devices on as many":   {64, []gpu.Ask{{Count: 64, Memory: 10}}, 2},
		"four containers of four devices": {16, []gpu.Ask{{Count: 4, Memory: 10}, {Count: 4, Memory: 11}, {Count: 4, Memory: 12}, {Count: 4, Memory: 13}}, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := outlook(usual()...)
			s := state(96000)
			for i := range tc.cards {
				s.Add(Room{memory: uint16(300 + 7*i), cores: uint16(900 - 5*i)})
			}
			w := o.Of(request(0, tc.asks...))
			if _, ok := w.Cost(s); !ok {
				t.Error("it does not fit")
			}
			if got := len(o.worths.now); got > tc.looks {
				t.Errorf("%d states were looked at, want at most %d", got, tc.looks)
			}
			before := len(o.worths.now)
			for i := range tc.cards {
				if _, ask := w.CostAt(s, i); ask != 0 {
					t.Errorf("card %d takes ask %d", i, ask)
				}
			}
			if got := len(o.worths.now); got > before+tc.cards {
				t.Errorf("%d states were looked at to order the cards", got-before)
			}
		})
	}
}

// Of several containers each device goes where least is left.
func TestSeveralContainersGoWhereItIsTightest(t *testing.T) {
	o := outlook(usual()...)
	w := o.Of(request(0, slice(300), slice(200)))
	s := state(96000, 1000, 320, 600, 250)
	at := func(i int) int { c, _ := w.CostAt(s, i); return c.left }
	if diff := cmp.Diff([]int{700, 20, 300, 50}, []int{at(0), at(1), at(2), at(3)}); diff != "" {
		t.Errorf("left of each card (-want +got):\n%s", diff)
	}
	if c, ok := w.Cost(s); !ok || c.left != 1000+20+600+50 {
		t.Errorf("%d is left of all, %v; want 1670", c.left, ok)
	}
}
