package pipeline

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

func tooHot(have int64) Verdict {
	return Verdict{Reason: gpu.Overheated, Gauge: gpu.CardTemperature, Have: have, Want: 79}
}

// taking packs where there are as many open cards as are asked for that nobody has.
type taking struct{}

func (taking) Name() string { return "taking" }

func (taking) Pack(c *Cycle, n *Candidate) ([]gpu.Grant, Verdict) {
	a, got := &c.Request.Asks[0], gpu.Grant{}
	for _, i := range n.Open {
		if card := &n.Node.Cards[i]; card.Free() && len(got.Shares) < a.Count {
			got.Shares = append(got.Shares, gpu.Share{Card: card.ID})
		}
	}
	if len(got.Shares) < a.Count {
		return nil, Verdict{Reason: gpu.InsufficientGPUCount, Have: int64(len(got.Shares)), Want: int64(a.Count)}
	}
	return []gpu.Grant{got}, Verdict{}
}

func cardsOf(n int, taken ...int) *ledger.Node {
	node := &ledger.Node{Facts: ledger.Facts{ID: "n1"}}
	for i := range n {
		c := ledger.Card{Card: gpu.Card{ID: gpu.CardID("abcdefgh"[i : i+1])}}
		if slices.Contains(taken, i) {
			c.Holders = []ledger.Holder{{Pod: "p"}}
		}
		node.Cards = append(node.Cards, c)
	}
	return node
}

// A barred card is never given out, a scratch that has been used before makes no
// difference, and the figure that is told is one which, were all that are barred up to
// it let in, would let the request in, and no lower one would.
func TestBarredIsTheLastOneNeeded(t *testing.T) {
	var used Scratch
	rapid.Check(t, func(t *rapid.T) {
		cards := rapid.IntRange(1, 8).Draw(t, "cards")
		bars, taken := barring{}, []int{}
		for i := range cards {
			if rapid.Bool().Draw(t, "hot") {
				bars[i] = tooHot(rapid.Int64Range(79, 90).Draw(t, "degrees"))
			}
			if rapid.IntRange(0, 3).Draw(t, "somebody's") == 0 {
				taken = append(taken, i)
			}
		}
		n := cardsOf(cards, taken...)
		c := &Cycle{Request: &gpu.Request{Asks: []gpu.Ask{{Count: rapid.IntRange(1, cards).Draw(t, "count"), Whole: true}}}}
		fits := func(below int64) bool {
			let := barring{}
			for i, bar := range bars {
				if bar.Have > below {
					let[i] = bar
				}
			}
			return New(Config{Filters: []Filter{let}, Pack: taking{}}).Judge(c, n, &Scratch{}).OK()
		}
		v := New(Config{Filters: []Filter{bars}, Pack: taking{}}).Judge(c, n, &used)
		switch {
		case v.OK() != fits(0):
			t.Fatalf("verdict %+v", v)
		case v.Gauge != "" && (!fits(v.Have) || fits(v.Have-1)):
			t.Fatalf("%d is told, with %v barred and %v taken", v.Have, bars, taken)
		case v.Reason == gpu.InsufficientGPUCount && fits(100):
			t.Fatalf("%+v, with %v barred and %v taken", v, bars, taken)
		}
		p, v := New(Config{Filters: []Filter{bars}, Pack: taking{}}).Assign(c, n)
		for _, g := range p.Grants {
			for _, s := range g.Shares {
				if _, hot := bars[slices.IndexFunc(n.Cards, func(c ledger.Card) bool { return c.ID == s.Card })]; hot || !v.OK() {
					t.Fatalf("%s was given out, with %v barred", s.Card, bars)
				}
			}
		}
	})
}
