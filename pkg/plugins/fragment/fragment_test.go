package fragment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/demand"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// card is one of which slices may take 10 GiB; as much of it is used.
func card(id gpu.CardID, memory gpu.MiB, cores gpu.Cores) ledger.Card {
	c := ledger.Card{Card: gpu.Card{
		ID: id, Vendor: gpu.Nvidia, Model: "A", Memory: 10240, Usable: 10240, Cores: 100, UsableCores: 100, MaxSlices: 10,
		Healthy: true, Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft,
	}}
	if memory > 0 || cores > 0 {
		c.Used = gpu.Use{Memory: memory, Cores: cores, Slots: 1}
		c.Holders = []ledger.Holder{{Pod: "p-" + gpu.PodID(id), Use: c.Used}}
	}
	return c
}

func held(id gpu.CardID) ledger.Card {
	c := card(id, 10240, 100)
	c.Used.Exclusive = true
	return c
}

func node(cpu gpu.MilliCPU, cards ...ledger.Card) *ledger.Node {
	return &ledger.Node{Facts: ledger.Facts{CPU: cpu}, Cards: cards}
}

func with(c ledger.Card, change func(*ledger.Card)) ledger.Card { change(&c); return c }

func whole(n int) gpu.Ask { return gpu.Ask{Count: n, Whole: true} }

func slice(gib gpu.MiB) gpu.Ask {
	return gpu.Ask{Count: 1, Memory: gib * 1024, ProportionalCores: true}
}

func request(cpu gpu.MilliCPU, asks ...gpu.Ask) *gpu.Request {
	return &gpu.Request{CPU: cpu, Asks: asks, NUMA: gpu.NoNUMA}
}

// learned is an outlook on a mix of halves of a card and pairs of whole ones.
func learned() *demand.Outlook {
	l := demand.New()
	for range 500 {
		l.Note(request(1000, slice(5)))
		l.Note(request(4000, whole(2)))
	}
	kind := card("", 0, 0)
	return l.Outlook(func() demand.Supply { return demand.Supply{demand.KindOf(&kind.Card): 100} })
}

func cycle(r *gpu.Request) *pipeline.Cycle { return &pipeline.Cycle{Request: r, Outlook: learned()} }

func order(p Plugin, c *pipeline.Cycle, cards ...ledger.Card) (ids []gpu.CardID) {
	n := &pipeline.Candidate{Node: node(96000, cards...)}
	for i := range cards {
		n.Open = append(n.Open, i)
	}
	p.Place(c, n)
	for _, i := range n.Open {
		ids = append(ids, cards[i].ID)
	}
	return ids
}

// The nodes from the one on which the pod spoils least to the one on which it spoils
// most.
func TestScoreOrders(t *testing.T) {
	free := func() ledger.Card { return card("f", 0, 0) }
	tests := map[string]struct {
		r     *gpu.Request
		nodes []*ledger.Node
	}{
		"half a card: the half that is left, one of a pair": {
			request(1000, slice(5)),
			[]*ledger.Node{
				node(96000, card("h", 5120, 50), free(), free()),
				node(96000, free(), free()),
			},
		},
		"one card: a single one, one of a pair": {
			request(1000, whole(1)),
			[]*ledger.Node{node(96000, free(), held("x")), node(96000, free(), free())},
		},
		"no card: where there is none, where processors are plenty, where pairs need them": {
			request(4000),
			[]*ledger.Node{node(4000), node(4000, free(), free())},
		},
		"a slice that leaves no half: where that is lost already, a free card": {
			request(1000, slice(4)),
			[]*ledger.Node{node(96000, card("h", 6144, 60)), node(96000, free())},
		},
		"compute that is too little for a half, a free card": {
			request(1000, slice(2)),
			[]*ledger.Node{node(96000, card("h", 3072, 80)), node(96000, free())},
		},
	}
	p, _ := New(nil)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			last := math.Inf(1)
			for i, n := range tc.nodes {
				got := p.Score(cycle(tc.r), n)
				if got >= last || got <= 0 || got >= 100 {
					t.Errorf("node %d has the score %v, the one before %v", i, got, last)
				}
				last = got
			}
		})
	}
}

func TestScoreIsNeutral(t *testing.T) {
	many := make([]ledger.Card, demand.MostCards+1)
	for i := range many {
		many[i] = card(gpu.CardID(fmt.Sprint(i)), 0, 0)
	}
	p, _ := New(nil)
	for name, tc := range map[string]struct {
		c *pipeline.Cycle
		n *ledger.Node
	}{
		"nothing is known":           {&pipeline.Cycle{Request: request(0, whole(1))}, node(0, card("a", 0, 0))},
		"more cards than are looked": {cycle(request(0, whole(1))), node(0, many...)},
		"it does not fit":            {cycle(request(0, whole(1))), node(0, held("a"))},
		"no cards, none asked for":   {cycle(request(500)), node(1000)},
		"a node of unknown size":     {cycle(request(500)), node(0, card("a", 0, 0), card("b", 0, 0))},
	} {
		if got := p.Score(tc.c, tc.n); got != pipeline.Neutral {
			t.Errorf("%s: score %v, want 50", name, got)
		}
	}
}

// Processors that others have are not there.
func TestUsedProcessors(t *testing.T) {
	p, _ := New(nil)
	used := node(12000, card("a", 0, 0), card("b", 0, 0))
	used.UsedCPU = 8000
	c := cycle(request(2000))
	got, want := p.Score(c, used), p.Score(c, node(4000, card("a", 0, 0), card("b", 0, 0)))
	if plenty := p.Score(c, node(12000, card("a", 0, 0), card("b", 0, 0))); got != want || got == plenty {
		t.Errorf("score %v, want %v, as with what is left; with all of it it is %v", got, want, plenty)
	}
}

// On a card that takes nobody there is nothing to spoil.
func TestWhatIsClosedDoesNotCount(t *testing.T) {
	p, _ := New(nil)
	c := cycle(request(1000, slice(5)))
	want := p.Score(c, node(96000, card("a", 0, 0), held("b")))
	for name, closed := range map[string]ledger.Card{
		"unhealthy":  with(card("b", 0, 0), func(c *ledger.Card) { c.Healthy = false }),
		"cordoned":   with(card("b", 0, 0), func(c *ledger.Card) { c.Cordoned = true }),
		"closed":     with(card("b", 0, 0), func(c *ledger.Card) { c.Closed = true }),
		"fenced":     with(card("b", 0, 0), func(c *ledger.Card) { c.Fenced = true }),
		"divided":    with(card("b", 1, 1), func(c *ledger.Card) { c.Divided = true }),
		"no slots":   with(card("b", 1, 1), func(c *ledger.Card) { c.MaxSlices = 1 }),
		"partitions": with(card("b", 0, 0), func(c *ledger.Card) { c.Mode = gpu.ModeMIG }),
	} {
		if got := p.Score(c, node(96000, card("a", 0, 0), closed)); got != want {
			t.Errorf("%s: score %v, want %v", name, got, want)
		}
	}
	if other := p.Score(c, node(96000, card("a", 0, 0), card("b", 0, 0))); other == want {
		t.Errorf("a free card makes no difference to %v", other)
	}
}

func TestPlace(t *testing.T) {
	usual, _ := New(nil)
	tests := map[string]struct {
		plugin Plugin
		c      *pipeline.Cycle
		cards  []ledger.Card
		want   []gpu.CardID
	}{
		"the half that is left, then a free card": {
			usual, cycle(request(1000, slice(5))), []ledger.Card{card("a", 0, 0), card("b", 5120, 50)}, []gpu.CardID{"b", "a"},
		},
		"what fits nobody comes last": {
			usual, cycle(request(1000, slice(5))), []ledger.Card{held("a"), card("b", 0, 0), card("c", 8000, 80)}, []gpu.CardID{"b", "a", "c"},
		},
		"a card that no half fits any more, before one that two do": {
			usual, cycle(request(1000, slice(4))), []ledger.Card{card("a", 0, 0), card("b", 6144, 60), card("c", 5120, 50)}, []gpu.CardID{"b", "c", "a"},
		},
		"the slice begins where the whole one cannot": {
			usual, cycle(request(1000, slice(4), whole(1))), []ledger.Card{card("a", 0, 0), held("b"), card("c", 6144, 60), card("d", 0, 0)}, []gpu.CardID{"c", "a", "d", "b"},
		},
		"also where that spoils more than the whole one does": {
			usual, cycle(request(1000, slice(1), whole(1))), []ledger.Card{card("a", 0, 0), card("c", 5120, 50)}, []gpu.CardID{"c", "a"},
		},
		"no slot is left beside the half": {
			usual, cycle(request(1000, slice(5))),
			[]ledger.Card{with(card("a", 5120, 50), func(c *ledger.Card) { c.MaxSlices = 1 }), card("b", 0, 0)}, []gpu.CardID{"b", "a"},
		},
		"of equal ones the one with less memory": {
			usual, cycle(request(1000, whole(1))),
			[]ledger.Card{card("a", 0, 0), with(card("b", 0, 0), func(c *ledger.Card) { c.Memory-- })}, []gpu.CardID{"b", "a"},
		},
		"nothing is known: the fullest": {
			usual, &pipeline.Cycle{Request: request(1000, slice(1))}, []ledger.Card{card("a", 100, 1), card("b", 9000, 90), card("c", 200, 2)}, []gpu.CardID{"b", "c", "a"},
		},
		"no cards are asked for": {
			usual, cycle(request(1000)), []ledger.Card{card("b", 0, 0), card("a", 9000, 90)}, []gpu.CardID{"b", "a"},
		},
		"bestfit: the tightest, and last what does not fit": {
			Plugin{Args{BestFit}}, cycle(request(1000, slice(4))),
			[]ledger.Card{held("x"), card("a", 0, 0), card("b", 6000, 10), card("c", 7000, 10), card("d", 1000, 1)}, []gpu.CardID{"b", "d", "a", "c", "x"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, order(tc.plugin, tc.c, tc.cards...)); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

// What one device of a request is rated by is where it would go: the node is no better
// and no worse than its first card.
func TestScoreIsThatOfTheFirstCard(t *testing.T) {
	p, _ := New(nil)
	random := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		var cards []ledger.Card
		for i := range 1 + random.IntN(8) {
			c := card(gpu.CardID(rune('a'+i)), 0, 0)
			if random.IntN(2) > 0 {
				c = card(c.ID, gpu.MiB(random.IntN(10000)), gpu.Cores(1+random.IntN(99)))
			}
			cards = append(cards, c)
		}
		c := cycle(request(1000, slice(gpu.MiB(1+random.IntN(10)))))
		first := order(p, c, cards...)[0]
		n := node(96000, cards...)
		var s demand.State
		stateOf(c.Outlook, n, &s)
		cost, ok := c.Outlook.Of(c.Request).Cost(&s)
		for i := range cards {
			if cards[i].ID != first {
				continue
			}
			if at, ask := c.Outlook.Of(c.Request).CostAt(&s, i); ok != (ask == 0) || ok && at != cost {
				t.Fatalf("%+v on %+v: %+v, on the first card, %s, %+v", c.Request.Asks, cards, cost, first, at)
			}
		}
	}
}

func TestBestFit(t *testing.T) {
	p := Plugin{Args{BestFit}}
	tests := map[string]struct {
		asks  []gpu.Ask
		cards []ledger.Card
		want  float64
	}{
		"no card is asked for": {nil, []ledger.Card{card("a", 0, 0)}, 50},
		"a clean card":         {[]gpu.Ask{whole(1)}, []ledger.Card{held("a"), card("b", 0, 0)}, 100},
		"no clean card":        {[]gpu.Ask{whole(1)}, []ledger.Card{card("a", 1, 1)}, 10},
		"a clean card of which somebody else uses memory": {
			[]gpu.Ask{{Count: 1, Whole: true, Memory: 10240}},
			[]ledger.Card{with(card("a", 0, 0), func(c *ledger.Card) { c.Reading.MemoryUsed = gpu.Measured(500) })}, 10,
		},
		"one of two":                     {[]gpu.Ask{whole(2)}, []ledger.Card{card("a", 1, 1), card("b", 0, 0)}, 10},
		"exactly":                        {[]gpu.Ask{slice(4)}, []ledger.Card{card("a", 6144, 0)}, 100},
		"a GiB and a half":               {[]gpu.Ask{slice(4)}, []ledger.Card{card("a", 0, 0), card("b", 6144-1536, 0)}, 85},
		"the tightest has no compute":    {[]gpu.Ask{slice(4)}, []ledger.Card{card("a", 4096, 0), card("b", 6144, 90)}, 80},
		"the tightest is cordoned":       {[]gpu.Ask{slice(4)}, []ledger.Card{card("a", 4096, 0), with(card("b", 6144, 0), func(c *ledger.Card) { c.Cordoned = true })}, 80},
		"the tightest has no slots":      {[]gpu.Ask{slice(4)}, []ledger.Card{card("a", 4096, 0), with(card("b", 6144, 0), func(c *ledger.Card) { c.MaxSlices = 1 })}, 80},
		"the tightest is a partition":    {[]gpu.Ask{slice(4)}, []ledger.Card{card("a", 4096, 0), with(card("b", 6144, 0), func(c *ledger.Card) { c.Mode = gpu.ModeMIG })}, 80},
		"a clean partition":              {[]gpu.Ask{whole(1)}, []ledger.Card{with(card("b", 0, 0), func(c *ledger.Card) { c.Mode = gpu.ModeMIG })}, 10},
		"too much is left":               {[]gpu.Ask{{Count: 1, Memory: 1}}, []ledger.Card{with(card("a", 0, 0), func(c *ledger.Card) { c.Usable = 81920 })}, 0},
		"no room":                        {[]gpu.Ask{slice(4)}, []ledger.Card{held("a")}, 0},
		"the lowest of several":          {[]gpu.Ask{whole(1), slice(4)}, []ledger.Card{card("a", 0, 0), card("b", 4096, 40)}, 80},
		"an overcommitted card":          {[]gpu.Ask{slice(4)}, []ledger.Card{with(card("a", 6144, 0), func(c *ledger.Card) { c.Usable = 20480 })}, 0},
		"another model is no tight card": {[]gpu.Ask{{Count: 1, Memory: 4096, Model: "A"}}, []ledger.Card{card("a", 4096, 0), with(card("b", 6144, 0), func(c *ledger.Card) { c.Model = "B" })}, 80},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := p.Score(cycle(request(0, tc.asks...)), node(1000, tc.cards...)); math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("score %v, want %v", got, tc.want)
			}
		})
	}
}

func TestArgs(t *testing.T) {
	for args, want := range map[string]string{
		"":                    "",
		`{}`:                  "",
		`{"mode":"gradient"}`: "",
		`{"mode":"bestfit"}`:  "",
		`{"mode":"BestFit"}`:  `mode: "BestFit" is not gradient or bestfit`,
		`{"mode":""}`:         `mode: "" is not gradient or bestfit`,
		`{"mode":1}`:          "mode: is a number, and not a fragment.Mode",
		`{"modes":"bestfit"}`: "modes: there is no such argument",
	} {
		p, err := New([]byte(args))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
		if err == nil && (p.Args.Mode == BestFit) != (args == `{"mode":"bestfit"}`) {
			t.Errorf("%s: mode %s", args, p.Args.Mode)
		}
	}
}

// A decision looks at every node.
func TestScoreDoesNotAllocate(t *testing.T) {
	p, _ := New(nil)
	c := cycle(request(1000, slice(5)))
	n := node(96000, card("a", 0, 0), card("b", 5120, 50), held("c"), card("d", 0, 0))
	if allocs := testing.AllocsPerRun(100, func() { p.Score(c, n) }); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}
