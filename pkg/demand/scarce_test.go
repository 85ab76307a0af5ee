package demand

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// cluster is a little cluster of cards of one model.
type cluster struct {
	card  gpu.Card
	nodes []*machine
	asked int // states that were asked for
}

type machine struct {
	version uint64
	cpu     gpu.MilliCPU
	left    []gpu.MiB
}

func (c *cluster) Len() int             { return len(c.nodes) }
func (c *cluster) Version(i int) uint64 { return c.nodes[i].version }

func (c *cluster) State(i int, o *Outlook, s *State) {
	c.asked++
	s.SetCPU(c.nodes[i].cpu)
	for _, left := range c.nodes[i].left {
		r, _ := o.Room(&c.card, left == 1000, left, gpu.Cores(left/10))
		s.Add(r)
	}
}

func (c *cluster) Supply() Supply {
	s := Supply{}
	for _, n := range c.nodes {
		s[KindOf(&c.card)] += len(n.left)
	}
	return s
}

func (c *cluster) add(cpu gpu.MilliCPU, left ...gpu.MiB) *machine {
	n := &machine{version: uint64(1000 + len(c.nodes)), cpu: cpu, left: left}
	c.nodes = append(c.nodes, n)
	return n
}

// learned returns a learner that has seen these alone.
func learned(wishes ...wish) *Learner {
	l := New()
	clear(l.seen)
	for _, w := range wishes {
		for range int(w.weight) {
			l.Note(w.r)
		}
	}
	return l
}

func TestTail(t *testing.T) {
	for _, tc := range []struct {
		mean float64
		n    int
		want float64
	}{
		{0, 0, 1}, {0, 1, 0}, {2, 0, 1},
		{2, 1, 1 - math.Exp(-2)},
		{2, 3, 1 - 5*math.Exp(-2)},
		{1000, 1, 1},
		{1e6, 10, 1}, // e to the -mean is 0
		{5, 1000, 0},
		{100, 130, 0.002282093054}, // as a sum
		{101, 102, 0.4736},         // and as a normal variable
		{1000, 5000, 0},            // e to the -mean is 0 here too
		{1000, 1000, 0.5042},
	} {
		within := 1e-9
		if tc.mean > 100 {
			within = 0.01 // far less than what odds are told by
		}
		if got := tail(tc.mean, tc.n); math.Abs(got-tc.want) > within {
			t.Errorf("mean %v, at least %d: %v, want %v", tc.mean, tc.n, got, tc.want)
		}
	}
}

// What goes back and forth between two steps is told by one of them.
func TestRetold(t *testing.T) {
	for _, tc := range []struct {
		step int
		odds float64
		want int
	}{
		{3, 3.9, 3}, {3, 4.1, 3}, {4, 3.9, 4}, {3, 4.25, 4}, {4, 3.75, 4}, {4, 3.7, 3},
		{0, 0.9, 0}, {0, 1.2, 0}, {0, 1.25, 1}, {1, 0.8, 1}, {1, 0.7, 0},
		{7, 7.9, 7}, {7, 8, 8}, {8, 7.8, 8}, {8, 7.7, 7}, {0, 6.5, 6}, {6, 0.1, 0},
	} {
		if got := retold(tc.step, tc.odds); got != tc.want {
			t.Errorf("odds of %v steps, of which %d were told: %d, want %d", tc.odds, tc.step, got, tc.want)
		}
	}
}

// Three nodes of two cards; every second pod wants two. Six cards are four pods, at one
// and a half each, two of which want two: that three or more do has the odds 1 - 5 e^-2
// = 0.32, told as 2/8, and a place is two cards.
func TestScarceByHand(t *testing.T) {
	c := &cluster{card: model("A")}
	var nodes []*machine
	for range 3 {
		nodes = append(nodes, c.add(9000, 1000, 1000))
	}
	pair, single := request(0, whole(2)), request(0, whole(1))
	l := learned(wish{pair, 500}, wish{single, 500})
	o := l.Outlook(c.Supply)
	if len(o.scarce) != 0 {
		t.Fatalf("scarce before anybody has looked: %+v", o.scarce)
	}
	price := func() float64 {
		l.Look(c)
		o = l.Outlook(nil)
		if len(o.scarce) == 0 {
			return 0
		}
		return o.scarce[0].price
	}
	if got := price(); got != 0.25*2 {
		t.Errorf("a place is worth %v cards, want 0.5", got)
	}
	// To break a pair is dearer than to take what is left of one.
	fresh, _ := o.Of(single).Cost(state(9000, 1000, 1000))
	begun, _ := o.Of(single).Cost(state(9000, 1000))
	if fresh.Cards()-begun.Cards() < 0.25*2-2*grain {
		t.Errorf("a single card costs %v of two, and %v of one", fresh.Cards(), begun.Cards())
	}
	// One is begun: five cards are 3.33 pods, 1.67 of them of two; two or more of
	// these have the odds 1 - e^-1.67 (1 + 1.67) = 0.496.
	nodes[0].left[1], nodes[0].version = 0, 1
	if got := price(); got != 0.375*2 {
		t.Errorf("with one begun a place is worth %v cards, want 0.75", got)
	}
	// None is left, so there is none to keep.
	for i, n := range nodes {
		n.left[0], n.version = 0, uint64(10+i)
	}
	if got := price(); got != 0 {
		t.Errorf("a place that is not there is worth %v cards", got)
	}
}

// A place is lost with the cards or with the processors that it takes.
func TestSpoiledPlaces(t *testing.T) {
	pair := wish{request(4000, whole(2)), 1}
	plain := outlook(pair)
	scarce := plain.outlook([]scarcity{{0, 12 * grain}})
	half, two := gpu.Ask{Count: 1, Memory: 500}, gpu.Ask{Count: 2, Memory: 500}
	tests := map[string]struct {
		r     *gpu.Request
		state *State
		lost  float64 // places
	}{
		"a card of the pair":                         {request(0, whole(1)), state(9000, 1000, 1000), 1},
		"a third card":                               {request(0, whole(1)), state(9000, 1000, 1000, 1000), 0},
		"a part of one":                              {request(0, half), state(9000, 1000, 1000), 1},
		"beside the pair":                            {request(5000, half), state(9000, 1000, 1000, 500), 0},
		"beside it, and its processors":              {request(5001, half), state(9000, 1000, 1000, 500), 1},
		"two parts beside it":                        {request(5000, two), state(9000, 1000, 1000, 500, 500), 0},
		"two parts beside it, and its processors":    {request(5001, two), state(9000, 1000, 1000, 500, 500), 1},
		"processors alone":                           {request(5001), state(9000, 1000, 1000), 1},
		"a pair":                                     {request(4000, whole(2)), state(9000, 1000, 1000), 1},
		"four cards are two places":                  {request(0, whole(4)), state(9000, 1000, 1000, 1000, 1000), 2},
		"there was no place, for want of processors": {request(0, whole(1)), state(3999, 1000, 1000), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			with, _ := scarce.Of(tc.r).Cost(tc.state)
			without, ok := plain.Of(tc.r).Cost(tc.state)
			if got := (with.grains - without.grains); !ok || got != int(12*tc.lost) {
				t.Errorf("costs %d steps more, %v; want %v places of 12", got, ok, tc.lost)
			}
		})
	}
}

// Who looks at the cluster needs not look twice: the first outlook goes by what there
// is room for, and so does one on another mix.
func TestLook(t *testing.T) {
	c := &cluster{card: model("A")}
	for range 3 {
		c.add(9000, 1000, 1000)
	}
	l := learned(wish{request(0, whole(2)), 500}, wish{request(0, whole(1)), 500})
	first := l.Look(c)
	for range 1000 {
		l.Note(request(0, whole(2)))
	}
	if second := l.Look(c); second == first || len(first.scarce) == 0 || len(second.scarce) == 0 {
		t.Errorf("scarce at first: %+v, and then: %+v", first.scarce, second.scarce)
	}
	if o := l.Look(c); l.Look(c) != o {
		t.Error("another outlook, though nothing has changed")
	}
}

// While most of the cluster is free for few large pods nothing is scarce, and the
// outlook stays the same one.
func TestNothingIsScarce(t *testing.T) {
	c := &cluster{card: model("A")}
	for range 50 {
		c.add(96000, 1000, 1000, 1000, 1000)
	}
	l := learned(wish{request(0, whole(1)), 990}, wish{request(0, whole(4)), 10})
	o := l.Outlook(c.Supply)
	l.Look(c)
	if again := l.Outlook(nil); again != o || len(o.scarce) != 0 {
		t.Errorf("another outlook, by which %+v are scarce", again.scarce)
	}
}

// Who asks for no less takes the same places; who asks for less, or for another model,
// does not.
func TestRivals(t *testing.T) {
	l := learned(
		wish{request(4000, whole(2)), 10}, wish{request(8000, whole(2)), 20}, wish{request(4000, whole(4)), 30},
		wish{named(request(4000, whole(2)), "A"), 40}, wish{named(request(4000, whole(2)), "B"), 50}, wish{request(4000, whole(1)), 50},
	)
	a, b := model("A"), model("B")
	o := l.Outlook(func() Supply { return Supply{KindOf(&a): 1, KindOf(&b): 1} })
	large := o.large()
	want := map[string]float64{
		"4000 2 []": 150, "8000 2 []": 20, "4000 4 []": 30, "4000 2 [a]": 40, "4000 2 [b]": 50,
	}
	got := map[string]float64{}
	for _, k := range large {
		w := o.mix[k]
		got[fmtShape(w)] = math.Round(o.rivals(k, large) * o.weight)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pods that take places away (-want +got):\n%s", diff)
	}
}

// Of nodes that have not changed nothing is asked, and what was counted step by step
// is what there is, whatever came and went.
func TestSurveyCountsWhatThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &cluster{card: model("A")}
		l := learned(wish{request(2000, whole(2)), 5}, wish{request(0, whole(4)), 3}, wish{request(100, slice(300)), 9})
		l.Outlook(func() Supply { return Supply{KindOf(&c.card): 100} })
		version := uint64(1)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			changed := 0
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				changed++
				version++
				left := rapid.SliceOfN(rapid.SampledFrom([]gpu.MiB{0, 400, 1000, 1000}), 0, 8).Draw(t, "left")
				n := &machine{version: version, cpu: gpu.MilliCPU(rapid.IntRange(0, 9000).Draw(t, "cpu")), left: left}
				switch i := rapid.IntRange(0, len(c.nodes)).Draw(t, "where"); {
				case i < len(c.nodes):
					c.nodes[i] = n
				case len(c.nodes) > 5:
					c.nodes, changed = c.nodes[:len(c.nodes)-2], changed-1
				default:
					c.nodes = append(c.nodes, n)
				}
			}
			c.asked = 0
			l.Look(c)
			if c.asked > changed {
				t.Errorf("%d states were asked for, of %d that changed", c.asked, changed)
			}
			fresh := survey{}
			fresh.count(l.outlook, c)
			if diff := cmp.Diff(fresh.total, l.survey.total); diff != "" || fresh.idle != l.survey.idle {
				t.Errorf("places (-counted anew +step by step):\n%s\nidle %d, counted anew %d", diff, l.survey.idle, fresh.idle)
			}
		}
	})
}

// A node without a version is looked at each time.
func TestSurveyOfWhatHasNoVersion(t *testing.T) {
	c := &cluster{card: model("A")}
	c.add(1000, 1000).version = 0
	l := learned(wish{request(0, whole(2)), 1})
	l.Outlook(c.Supply)
	l.Look(c)
	c.nodes[0].left = []gpu.MiB{1000, 1000}
	l.Look(c)
	if c.asked != 2 || l.survey.total[0] != 1 {
		t.Errorf("asked %d times, %d places; want 2, 1", c.asked, l.survey.total[0])
	}
}
