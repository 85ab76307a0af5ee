package pipeline

import (
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// barring bars cards by their places.
type barring map[int]Verdict

func (barring) Name() string { return "barring" }
func (b barring) Filter(_ *Cycle, n *Candidate) Verdict {
	for i, v := range b {
		n.Bar(i, v)
	}
	return Verdict{}
}

// shutting takes a card out for good.
type shutting int

func (shutting) Name() string { return "shutting" }
func (s shutting) Filter(_ *Cycle, n *Candidate) Verdict {
	n.Keep(func(c *ledger.Card) bool { return c.ID != n.Node.Cards[s].ID })
	return Verdict{}
}

// Of those that would have to fall the one that is past its limit by most is the last
// to do so, and the one that is reported; the others come nearer.
func TestBlame(t *testing.T) {
	hot := func(have int64) Verdict {
		return Verdict{Reason: gpu.Overheated, Gauge: gpu.CardTemperature, Have: have, Want: 80}
	}
	short := Verdict{Reason: gpu.InsufficientGPUCount, Have: 4, Want: 5}
	tests := map[string]struct {
		filters []Filter
		count   int
		want    Verdict
	}{
		"none is barred":              {nil, 4, Verdict{}},
		"enough are left":             {[]Filter{barring{0: hot(99)}}, 3, Verdict{}},
		"the nearest would do":        {[]Filter{barring{0: hot(99), 1: hot(85), 2: hot(90)}}, 2, hot(85)},
		"two have to fall":            {[]Filter{barring{0: hot(99), 1: hot(85), 2: hot(90)}}, 3, hot(90)},
		"all have to":                 {[]Filter{barring{0: hot(99), 1: hot(85), 2: hot(90)}}, 4, hot(99)},
		"it would not fit anyhow":     {[]Filter{barring{0: hot(99), 1: hot(85)}}, 5, short},
		"the first bar of a card":     {[]Filter{barring{0: hot(85)}, barring{0: hot(99)}}, 4, hot(85)},
		"one that is out anyhow":      {[]Filter{barring{0: hot(85)}, shutting(0)}, 4, Verdict{Reason: gpu.InsufficientGPUCount, Have: 3, Want: 4}},
		"one that is out, and others": {[]Filter{shutting(0), barring{0: hot(81), 1: hot(90)}}, 3, hot(90)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := cardsOf(4)
			c := &Cycle{Request: &gpu.Request{Asks: []gpu.Ask{{Count: tc.count, Whole: true}}}}
			p, scratch := New(Config{Filters: tc.filters, Pack: taking{}}), &Scratch{}
			for range 2 { // the scratch is used again
				if got := p.Judge(c, n, scratch); got != tc.want {
					t.Errorf("judged %+v, want %+v", got, tc.want)
				}
			}
			if _, got := p.Assign(c, n); got != tc.want {
				t.Errorf("assigned %+v, want %+v", got, tc.want)
			}
		})
	}
}
