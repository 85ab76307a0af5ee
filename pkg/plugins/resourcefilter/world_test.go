package resourcefilter

import (
	"fmt"
	"strings"
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// card is a card of 1000 MiB, of which slices may take 900, and 3 slots.
func card(id gpu.CardID, change ...func(*gpu.Card)) gpu.Card {
	c := gpu.Card{
		ID: id, Vendor: gpu.Nvidia, Memory: 1000, Usable: 900, Cores: 100, UsableCores: 100, MaxSlices: 3,
		Healthy: true, Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft,
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func of(v gpu.Vendor) func(*gpu.Card) { return func(c *gpu.Card) { c.Vendor = v } }

func ofModel(m string) func(*gpu.Card) { return func(c *gpu.Card) { c.Model = m } }

func mode(m gpu.Mode) func(*gpu.Card) { return func(c *gpu.Card) { c.Mode = m } }

func size(memory gpu.MiB) func(*gpu.Card) {
	return func(c *gpu.Card) { c.Memory, c.Usable = memory, memory*9/10 }
}

func unbounded(c *gpu.Card) { c.Isolation = gpu.IsolationNone }

// cards returns n cards alike, d0 and on.
func cards(n int, change ...func(*gpu.Card)) []gpu.Card {
	out := make([]gpu.Card, n)
	for i := range out {
		out[i] = card(gpu.CardID(fmt.Sprintf("d%d", i)), change...)
		out[i].Index = i
	}
	return out
}

// slice and whole make what an earlier pod holds.
func slice(id gpu.CardID, memory gpu.MiB, cores gpu.Cores) gpu.Share {
	return gpu.Share{Card: id, Memory: memory, Cores: cores}
}

func whole(id gpu.CardID) gpu.Share {
	return gpu.Share{Card: id, Memory: 1000, Cores: 100, Exclusive: true}
}

// books returns a ledger with the node n1 of these cards, each share held by a
// pod of its own.
func books(cards []gpu.Card, held []gpu.Share, foreign ...gpu.Foreign) *ledger.Ledger {
	l := ledger.New(tenancy.Separate{})
	l.SetNode(ledger.Facts{ID: "n1", Cards: cards})
	for i, s := range held {
		l.Confirm(gpu.Placement{
			Pod: gpu.PodID(fmt.Sprintf("earlier-%d", i)), Node: "n1", Namespace: "red",
			Grants: []gpu.Grant{{Shares: []gpu.Share{s}}},
		})
	}
	if len(foreign) > 0 {
		l.Confirm(gpu.Placement{Pod: "foreign", Node: "n1", Foreign: foreign})
	}
	return l
}

// candidate returns the node n1 with all cards open.
func candidate(l *ledger.Ledger) *pipeline.Candidate {
	node, _ := l.Snapshot().Node("n1")
	n := &pipeline.Candidate{Node: node}
	for i := range node.Cards {
		n.Open = append(n.Open, i)
	}
	return n
}

// request names the containers c0 and on, in the order of the asks.
func request(asks ...gpu.Ask) *gpu.Request {
	r := &gpu.Request{Pod: "pod", Namespace: "red", NUMA: gpu.NoNUMA, Asks: asks}
	for i := range r.Asks {
		r.Asks[i].Container, r.Asks[i].Number = fmt.Sprintf("c%d", i), i
		r.Asks[i].Count = max(1, r.Asks[i].Count)
	}
	return r
}

// pack runs the plugin both ways, and fails the test when they disagree.
func pack(t testing.TB, r *gpu.Request, l *ledger.Ledger) ([]gpu.Grant, pipeline.Verdict) {
	t.Helper()
	judge := candidate(l)
	judge.JudgeOnly = true
	_, judged := Plugin{}.Pack(&pipeline.Cycle{Request: r}, judge)
	grants, v := Plugin{}.Pack(&pipeline.Cycle{Request: r}, candidate(l))
	if judged != v {
		t.Errorf("verdict %+v when it is all that is wanted, else %+v", judged, v)
	}
	return grants, v
}

// where writes the grants as "c0:d0,d1 c1:d0".
func where(grants []gpu.Grant) string {
	texts := make([]string, len(grants))
	for i, g := range grants {
		ids := make([]string, len(g.Shares))
		for j, s := range g.Shares {
			ids[j] = string(s.Card)
		}
		texts[i] = g.Container + ":" + strings.Join(ids, ",")
	}
	return strings.Join(texts, " ")
}

func plugin(r *gpu.Request, n *pipeline.Candidate) ([]gpu.Grant, pipeline.Verdict) {
	return Plugin{}.Pack(&pipeline.Cycle{Request: r}, n)
}
