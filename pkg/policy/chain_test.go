package policy

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/demand"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// world is one node with those who are on it already.
type world struct {
	facts   ledger.Facts
	earlier []gpu.Placement
}

func (w world) books() *ledger.Ledger {
	l := ledger.New(tenancy.Separate{})
	l.SetNode(w.facts)
	for _, p := range w.earlier {
		l.Confirm(p)
	}
	return l
}

func pick[T any](t *rapid.T, label string, of ...T) T { return rapid.SampledFrom(of).Draw(t, label) }

func drawWorld(t *rapid.T) world {
	w := world{facts: ledger.Facts{ID: "n1", CPU: 8000, Memory: 8, Unavailable: rapid.IntRange(0, 20).Draw(t, "away") == 0}}
	for i := range rapid.IntRange(0, 6).Draw(t, "cards") {
		memory := pick[gpu.MiB](t, "memory", 8, 10)
		w.facts.Cards = append(w.facts.Cards, gpu.Card{
			ID: gpu.CardID(fmt.Sprintf("d%d", i)), Index: pick(t, "index", i, 0), Memory: memory, Usable: memory - 1,
			Vendor: pick(t, "vendor", gpu.Nvidia, gpu.Nvidia, gpu.Ascend), Model: pick(t, "model", "A100", "H20"),
			Plugin: pick(t, "given out by", "", "", "", "", "count", "shares"),
			Cores:  100, UsableCores: 100, MaxSlices: 3, NUMA: pick(t, "numa", 0, 0, 1, gpu.NoNUMA),
			Healthy: pick(t, "healthy", true, true, true, false), Cordoned: pick(t, "cordoned", false, false, false, true),
			Mode: pick(t, "mode", gpu.ModeSlice, gpu.ModeSlice, gpu.ModeMIG), Isolation: pick(t, "isolation", gpu.IsolationSoft, gpu.IsolationSoft, gpu.IsolationNone),
		})
	}
	if pick(t, "tells of links", false, true) {
		w.facts.Links = drawLinks(t, w.facts.Cards)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "earlier") {
		p := gpu.Placement{Pod: gpu.PodID(fmt.Sprintf("earlier-%d", i)), Node: "n1", Namespace: pick(t, "namespace", "red", "red", "blue"), CPU: 1000}
		if len(w.facts.Cards) > 0 {
			share := gpu.Share{Card: pick(t, "on", w.facts.Cards...).ID, Memory: pick[gpu.MiB](t, "held", 1, 5), Cores: pick[gpu.Cores](t, "cores", 0, 50, 100)}
			share.Exclusive = pick(t, "exclusive", false, false, true)
			p.Grants = []gpu.Grant{{Shares: []gpu.Share{share}}}
		}
		if pick(t, "foreign", false, false, false, true) {
			p.Grants, p.Foreign = nil, []gpu.Foreign{{Vendor: pick(t, "of", "", gpu.Nvidia), Cards: 1}}
		}
		w.earlier = append(w.earlier, p)
	}
	return w
}

func drawRequest(t *rapid.T) *gpu.Request {
	r := &gpu.Request{
		Pod: "pod", Namespace: pick(t, "namespace", "red", "red", "blue"), Name: "pod", CPU: 5, Memory: 7,
		Vendor:     pick(t, "gpu-type", "", "", "", gpu.Ascend),
		NUMA:       pick(t, "numa", gpu.NoNUMA, gpu.NoNUMA, 0),
		CardPolicy: pick(t, "card policy", "", "", gpu.Spread, gpu.Binpack),
		NVLink:     pick(t, "nvlink required", false, false, true),
	}
	if pick(t, "picky", false, false, true) {
		r.Models = []string{"a100"}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "asks") {
		a := gpu.Ask{Container: fmt.Sprintf("c%d", i), Number: i, Role: pick(t, "role", gpu.App, gpu.App, gpu.Init, gpu.Sidecar), Count: pick(t, "count", 1, 1, 2, 3)}
		if r.Vendor == "" {
			a.Vendor = pick(t, "name", "", "", gpu.Nvidia, gpu.Ascend)
			a.Plugin = pick(t, "count of", "", "count", "shares")
		}
		switch pick(t, "form", "whole", "memory", "cores") {
		case "whole":
			a.Whole = true
		case "memory":
			a.Memory = pick[gpu.MiB](t, "slice", 1, 3, 9)
		case "cores":
			a.Cores = pick[gpu.Cores](t, "share", 20, 50)
		}
		r.Asks = append(r.Asks, a)
	}
	return r
}

// drawOutlook is what is known of what is asked for: nothing, or a few requests.
func drawOutlook(t *rapid.T, w world) *demand.Outlook {
	if pick(t, "nothing is learned", false, false, true) {
		return nil
	}
	l := demand.New()
	for range rapid.IntRange(0, 8).Draw(t, "seen") {
		l.Note(drawRequest(t))
	}
	supply := demand.Supply{}
	for i := range w.facts.Cards {
		supply[demand.KindOf(&w.facts.Cards[i])]++
	}
	return l.Outlook(func() demand.Supply { return supply })
}

// Filter and bind take the same path, so what /filter accepted /bind accepts,
// and the ledger takes what bind chose. The order in which a node's cards and a
// pod's containers happen to be given makes no difference.
func TestChain(t *testing.T) {
	moreChecks(t)
	pipe := Default().Pipeline()
	rapid.Check(t, func(t *rapid.T) {
		w, r := drawWorld(t), drawRequest(t)
		outlook := drawOutlook(t, w)
		asking := func(r *gpu.Request) *pipeline.Cycle { return &pipeline.Cycle{Request: r, Outlook: outlook} }
		l := w.books()
		r.Tenant, _ = l.Snapshot().Owner(r.Namespace)
		n, _ := l.Snapshot().Node("n1")
		judged := pipe.Judge(asking(r), n, &pipeline.Scratch{})
		p, assigned := pipe.Assign(asking(r), n)
		if judged != assigned {
			t.Fatalf("judged %+v, assigned %+v", judged, assigned)
		}
		if judged.OK() {
			if err := l.Reserve(p); err != nil {
				t.Fatal(err)
			}
			for _, g := range p.Grants {
				for _, s := range g.Shares {
					mustBeOpen(t, w, r, &r.Asks[g.Number], s.Card)
				}
			}
		} else if judged.Reason.Info().Sentence == "" || judged.Want > 0 && judged.Have >= judged.Want {
			t.Fatalf("refused with %+v", judged)
		}

		w.facts.Cards = rapid.Permutation(w.facts.Cards).Draw(t, "cards in another order")
		w.earlier = rapid.Permutation(w.earlier).Draw(t, "pods in another order")
		shuffled := *r
		shuffled.Asks = rapid.Permutation(r.Asks).Draw(t, "containers in another order")
		m, _ := w.books().Snapshot().Node("n1")
		q, again := pipe.Assign(asking(&shuffled), m)
		if again != assigned {
			t.Fatalf("verdict %+v, in another order %+v", assigned, again)
		}
		if diff := cmp.Diff(p, q); diff != "" {
			t.Fatalf("placement (-first +in another order):\n%s", diff)
		}
		before, _ := pipe.Rate(asking(r), n)
		after, _ := pipe.Rate(asking(&shuffled), m)
		if d := before - after; d > 1e-9 || d < -1e-9 || before < 0 || before > 100 {
			t.Fatalf("score %v, in another order %v", before, after)
		}
	})
}

// mustBeOpen checks what the ledger does not.
func mustBeOpen(t *rapid.T, w world, r *gpu.Request, a *gpu.Ask, id gpu.CardID) {
	c := w.facts.Cards[slices.IndexFunc(w.facts.Cards, func(c gpu.Card) bool { return c.ID == id })]
	switch {
	case w.facts.Unavailable, c.Plugin != "" && c.Plugin != a.Plugin:
		t.Fatalf("placed %+v on a node that is unavailable %v, a card that %s gives out", a, w.facts.Unavailable, c.Plugin)
	case !c.Healthy, c.Cordoned, a.Vendor != "" && c.Vendor != a.Vendor:
		t.Fatalf("card %+v for %+v", c, a)
	case r.Vendor != "" && c.Vendor != r.Vendor, len(r.Models) > 0 && c.Model != "A100", r.NUMA != gpu.NoNUMA && c.NUMA != r.NUMA:
		t.Fatalf("card %+v for %+v", c, r)
	}
}

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

// atLeast is how many of so many there are in a run that is short: rapid makes a fifth
// of the checks then.
func atLeast(n int) int {
	if testing.Short() {
		return n / 5
	}
	return n
}
