package resourcefilter

import (
	"flag"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Sizes are few, so that what is left and what is asked meet exactly.
func drawCard(t *rapid.T, i int) gpu.Card {
	memory := rapid.SampledFrom([]gpu.MiB{4, 8, 10}).Draw(t, "memory")
	return gpu.Card{
		ID: gpu.CardID(fmt.Sprintf("d%d", i)), Index: i, Memory: memory,
		Vendor:      rapid.SampledFrom([]gpu.Vendor{gpu.Nvidia, gpu.Nvidia, gpu.Ascend}).Draw(t, "vendor"),
		Model:       rapid.SampledFrom([]string{"x", "x", "y"}).Draw(t, "model"),
		Usable:      memory - rapid.SampledFrom([]gpu.MiB{0, 1, 4}).Draw(t, "reserve"),
		Cores:       100,
		UsableCores: rapid.SampledFrom([]gpu.Cores{100, 100, 150}).Draw(t, "usable cores"),
		MaxSlices:   rapid.IntRange(1, 3).Draw(t, "slots"),
		Mode:        rapid.SampledFrom([]gpu.Mode{gpu.ModeSlice, gpu.ModeSlice, gpu.ModeSlice, gpu.ModeWhole, gpu.ModeMIG}).Draw(t, "mode"),
		Isolation:   rapid.SampledFrom([]gpu.Isolation{gpu.IsolationSoft, gpu.IsolationSoft, gpu.IsolationNone}).Draw(t, "isolation"),
		Healthy:     true,
	}
}

func drawShare(t *rapid.T, cards []gpu.Card) gpu.Share {
	c := rapid.SampledFrom(cards).Draw(t, "on")
	if rapid.IntRange(0, 3).Draw(t, "whole") == 0 {
		return gpu.Share{Card: c.ID, Memory: c.Memory, Cores: 100, Exclusive: true}
	}
	return slice(c.ID, rapid.SampledFrom([]gpu.MiB{1, 3, 4}).Draw(t, "held"), rapid.SampledFrom([]gpu.Cores{0, 50, 100}).Draw(t, "held cores"))
}

func drawAsk(t *rapid.T) gpu.Ask {
	a := gpu.Ask{
		Role:   rapid.SampledFrom([]gpu.Role{gpu.App, gpu.App, gpu.Init, gpu.Sidecar}).Draw(t, "role"),
		Vendor: rapid.SampledFrom([]gpu.Vendor{"", "", gpu.Nvidia, gpu.Ascend}).Draw(t, "vendor"),
		Model:  rapid.SampledFrom([]string{"", "", "", "x", "y"}).Draw(t, "asked model"),
		Count:  rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "count"),
	}
	switch rapid.IntRange(0, 3).Draw(t, "form") {
	case 0:
		a.Whole, a.Memory = true, rapid.SampledFrom([]gpu.MiB{0, 8, 10}).Draw(t, "least")
	case 1:
		a.Memory, a.Cores = gpu.MiB(rapid.IntRange(1, 6).Draw(t, "slice")), rapid.SampledFrom([]gpu.Cores{0, 0, 50}).Draw(t, "cores")
	case 2:
		a.MemoryPercent = rapid.SampledFrom([]int{50, 100}).Draw(t, "percent")
	case 3:
		a.Cores = rapid.SampledFrom([]gpu.Cores{30, 50, 100}).Draw(t, "cores alone")
	}
	a.ProportionalCores = !a.Whole && rapid.Bool().Draw(t, "proportional")
	return a
}

// Whatever the node and the request: the search says yes exactly when some
// arrangement is right, and the ledger takes the one that it found.
func TestPackAgainstBruteForce(t *testing.T) {
	moreChecks(t)
	yes, no := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var cards []gpu.Card
		for i := range rapid.SampledFrom([]int{1, 2, 3, 4, 4}).Draw(t, "cards") {
			cards = append(cards, drawCard(t, i))
		}
		var held []gpu.Share
		for range rapid.IntRange(0, 2).Draw(t, "holders") {
			held = append(held, drawShare(t, cards))
		}
		var asks []gpu.Ask
		for range rapid.IntRange(1, 3).Draw(t, "asks") {
			asks = append(asks, drawAsk(t))
		}
		r, l := request(asks...), books(cards, held)
		node, _ := l.Snapshot().Node("n1")
		want := possible(r.Asks, node, nil)
		grants, v := plugin(r, candidate(l))
		if v.OK() != want {
			t.Fatalf("verdict %+v %s, by brute force %v", v, where(grants), want)
		}
		if !v.OK() {
			no++
			if v.Have >= v.Want {
				t.Fatalf("refused with %d of %d: %s", v.Have, v.Want, v.Reason)
			}
			return
		}
		yes++
		mustBeRight(t, r, node, grants)
		if err := l.Reserve(gpu.Placement{Pod: r.Pod, Namespace: r.Namespace, Node: "n1", Grants: grants}); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("%d fit, %d do not", yes, no)
	if yes+no > 1000 && (yes < 100 || no < 100) { // a run with -rapid.seed may be short
		t.Error("one of the two answers is hardly tried")
	}
}

// moreChecks tries many worlds, as they are small. A number on the command line
// stands.
func moreChecks(t *testing.T) {
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue {
		return
	}
	if err := f.Value.Set("3000"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
}

// mustBeRight checks what each container gets: its number of different cards, of
// one vendor, with what it asked for.
func mustBeRight(t *rapid.T, r *gpu.Request, n *ledger.Node, grants []gpu.Grant) {
	if len(grants) != len(r.Asks) {
		t.Fatalf("%d grants for %d asks", len(grants), len(r.Asks))
	}
	for i, g := range grants {
		a := &r.Asks[i]
		if g.Container != a.Container || g.Role != a.Role || g.Number != a.Number || len(g.Shares) != a.Count {
			t.Fatalf("%+v for %+v", g, a)
		}
		seen := map[gpu.CardID]bool{}
		for _, s := range g.Shares {
			c := cardOf(n, s.Card)
			use := a.On(&c.Card)
			if seen[s.Card] || s.Vendor != g.Shares[0].Vendor || s.Vendor != c.Vendor || a.Vendor != "" && a.Vendor != s.Vendor || a.Model != "" && a.Model != c.Model {
				t.Fatalf("cards of %+v for %+v", g, a)
			}
			if (gpu.Use{Memory: s.Memory, Cores: s.Cores, Slots: 1, Exclusive: s.Exclusive}) != use || s.Index != c.Index {
				t.Fatalf("share %+v, want %+v", s, use)
			}
			seen[s.Card] = true
		}
	}
}

func cardOf(n *ledger.Node, id gpu.CardID) *ledger.Card {
	for i := range n.Cards {
		if n.Cards[i].ID == id {
			return &n.Cards[i]
		}
	}
	panic("no card " + id)
}

// possible tries every choice of cards for every ask, and judges each complete
// arrangement by right. It shares nothing with the search.
func possible(asks []gpu.Ask, n *ledger.Node, chosen [][]int) bool {
	if len(chosen) == len(asks) {
		return right(asks, n, chosen)
	}
	a := &asks[len(chosen)]
	for set := range 1 << len(n.Cards) {
		var pick []int
		for i := range n.Cards {
			if set>>i&1 == 1 {
				pick = append(pick, i)
			}
		}
		if len(pick) != a.Count {
			continue
		}
		if possible(asks, n, append(chosen[:len(chosen):len(chosen)], pick)) {
			return true
		}
	}
	return false
}

// right judges an arrangement moment by moment: each ordinary init container
// runs alone, then the app containers run together; sidecars run always.
func right(asks []gpu.Ask, n *ledger.Node, chosen [][]int) bool {
	moments := [][]int{{}}
	for i := range asks {
		if asks[i].Role == gpu.App {
			moments[0] = append(moments[0], i)
		}
		if asks[i].Role == gpu.Init {
			moments = append(moments, []int{i})
		}
		for _, c := range chosen[i] {
			card := &n.Cards[c]
			if asks[i].Vendor != "" && card.Vendor != asks[i].Vendor || asks[i].Model != "" && card.Model != asks[i].Model ||
				card.Vendor != n.Cards[chosen[i][0]].Vendor {
				return false
			}
		}
	}
	for _, m := range moments {
		for i := range asks {
			if asks[i].Role == gpu.Sidecar {
				m = append(m, i)
			}
		}
		for c := range n.Cards {
			if !rightAt(asks, &n.Cards[c], c, chosen, m) {
				return false
			}
		}
	}
	return true
}

// rightAt judges one card at one moment, when the asks of running run.
func rightAt(asks []gpu.Ask, card *ledger.Card, c int, chosen [][]int, running []int) bool {
	var on []*gpu.Ask
	for _, i := range running {
		for _, d := range chosen[i] {
			if d == c {
				on = append(on, &asks[i])
			}
		}
	}
	var memory gpu.MiB
	var cores gpu.Cores
	for _, a := range on {
		if a.Whole {
			partitioned := card.Mode == gpu.ModeMIG || card.Mode == gpu.ModeVNPU
			return len(on) == 1 && !partitioned && card.Memory >= a.Memory && len(card.Holders) == 0 && !card.Closed
		}
		if card.Mode != gpu.ModeSlice || card.Isolation == gpu.IsolationNone || card.Used.Exclusive || card.Closed {
			return false
		}
		use := a.On(&card.Card)
		memory += use.Memory
		cores += use.Cores
	}
	return len(on) == 0 || card.Used.Memory+memory <= card.Usable &&
		card.Used.Cores+max(1, cores) <= card.UsableCores && card.Used.Slots+len(on) <= card.MaxSlices
}
