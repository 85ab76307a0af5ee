package policy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
	"heteroflow.io/heteroflow/pkg/topology"
)

func drawLinks(t *rapid.T, cards []gpu.Card) topology.Links {
	cards = ledger.InOrder(cards)
	b, err := topology.NewBuilder(cards)
	if err != nil {
		t.Fatal(err)
	}
	b.Told()
	for i := range cards {
		for j := range i {
			b.Pair(cards[i].ID, cards[j].ID, pick(t, "link", "", "SYS", "SYS", "PIX", "NV1", "NV4"))
		}
	}
	return b.Links()
}

// drawLinkedWorld draws a node on which little but links is in the way.
func drawLinkedWorld(t *rapid.T) world {
	w := drawWorld(t)
	w.facts.Unavailable = false
	for i := range w.facts.Cards {
		c := &w.facts.Cards[i]
		c.Vendor, c.Plugin, c.Model, c.Healthy, c.Cordoned = gpu.Nvidia, "", "A100", true, false
		c.Mode, c.Isolation = gpu.ModeSlice, gpu.IsolationSoft
	}
	if pick(t, "tells", true, true, true, false) {
		w.facts.Links = drawLinks(t, w.facts.Cards)
	}
	return w
}

// drawLinkedRequest draws one of which a container wants several cards.
func drawLinkedRequest(t *rapid.T) *gpu.Request {
	r := drawRequest(t)
	r.Vendor, r.NUMABind = "", pick(t, "numa-bind", false, false, true)
	for i := range r.Asks {
		r.Asks[i].Vendor, r.Asks[i].Plugin = "", ""
	}
	if len(r.Asks) > 0 && pick(t, "whole", true, true, false) {
		r.Asks[0] = gpu.Ask{Container: "c0", Role: r.Asks[0].Role, Whole: true, Count: pick(t, "several", 2, 3)}
	}
	return r
}

// setOf are the places of the cards.
func setOf(n *ledger.Node, shares []gpu.Share) (set topology.Set) {
	for _, s := range shares {
		set |= topology.SetOf(slices.IndexFunc(n.Cards, func(c ledger.Card) bool { return c.ID == s.Card }))
	}
	return set
}

// What is required is so wherever links are known, for each container. It refuses
// nobody else, and of one container nobody for whom any cards would do.
func TestNVLinkRequired(t *testing.T) {
	moreChecks(t)
	pipe := Default().Pipeline()
	var yes, no, without int
	rapid.Check(t, func(t *rapid.T) {
		w, r := drawLinkedWorld(t), drawLinkedRequest(t)
		r.NVLink = true
		n, _ := w.books().Snapshot().Node("n1")
		judged := pipe.Judge(&pipeline.Cycle{Request: r}, n, &pipeline.Scratch{})
		p, v := pipe.Assign(&pipeline.Cycle{Request: r}, n)
		if judged != v {
			t.Fatalf("judged %+v, assigned %+v", judged, v)
		}
		free := *r
		free.NVLink = false
		_, loose := pipe.Assign(&pipeline.Cycle{Request: &free}, n)
		switch {
		case v.OK() && !loose.OK():
			t.Fatalf("fits, but not without the wish: %+v", loose)
		case v.OK():
			yes++
			mustBeLinked(t, n, p)
		case !loose.OK():
			without++
			if v.Reason == gpu.NVLinkUnsatisfied && loose.Reason != gpu.NUMAUnsatisfied {
				t.Fatalf("%+v, and without the wish %+v", v, loose)
			}
		case v.Reason != gpu.NVLinkUnsatisfied && !r.NUMABind || !n.Links.Known():
			t.Fatalf("%+v, and without the wish it fits", v)
		default:
			no++
			mustBeTorn(t, n, r)
		}
	})
	t.Logf("%d fit, %d do not, %d would not anyway", yes, no, without)
	if yes+no+without > 1000 && min(yes, no) < 40 {
		t.Error("one of the answers is hardly tried")
	}
}

func mustBeLinked(t *rapid.T, n *ledger.Node, p gpu.Placement) {
	for _, g := range p.Grants {
		if set := setOf(n, g.Shares); n.Links.Known() && n.Links.Room(set) != set.Len() {
			t.Fatalf("%+v are not of one domain", g)
		}
	}
}

// mustBeTorn tries each domain's cards by themselves.
func mustBeTorn(t *rapid.T, n *ledger.Node, r *gpu.Request) {
	if len(r.Asks) != 1 {
		return
	}
	for place := range n.Cards {
		only := *r
		only.NVLink = false
		for i := range n.Cards {
			if !n.Links.Domain(place).Has(i) {
				only.NotCards = append(only.NotCards, n.Cards[i].ID)
			}
		}
		if v := Default().Pipeline().Judge(&pipeline.Cycle{Request: &only}, n, &pipeline.Scratch{}); v.OK() {
			t.Fatalf("refused, though the domain of %s would do", n.Cards[place].ID)
		}
	}
}

// The plugin chooses among cards and refuses nobody, and bind takes the cards that
// the score has rated.
func TestNVLinkPromises(t *testing.T) {
	moreChecks(t)
	off := Default()
	for i := range off.Plugins {
		off.Plugins[i].Enabled = off.Plugins[i].Enabled && off.Plugins[i].Name != "nvlink"
	}
	on, without := Default().Pipeline(), off.Pipeline()
	rated := 0
	rapid.Check(t, func(t *rapid.T) {
		w, r := drawLinkedWorld(t), drawLinkedRequest(t)
		n, _ := w.books().Snapshot().Node("n1")
		c := &pipeline.Cycle{Request: r}
		p, v := on.Assign(c, n)
		if _, plain := without.Assign(c, n); v.OK() != plain.OK() {
			t.Fatalf("%+v, without the plugin %+v", v, plain)
		}
		_, parts := on.Rate(c, n)
		i := slices.IndexFunc(parts, func(p pipeline.Part) bool { return p.Plugin == "nvlink" })
		if !v.OK() || i < 0 {
			return
		}
		rated++
		if want := meanOf(n, r, p); parts[i].Score < want-1e-9 || parts[i].Score > want+1e-9 {
			t.Fatalf("score %v, and the cards that it gets are worth %v", parts[i].Score, want)
		}
	})
	if t.Logf("%d rated", rated); rated < atLeast(100) {
		t.Error("hardly anything is rated")
	}
}

// meanOf is what the cards are worth that containers get which want several whole
// ones.
func meanOf(n *ledger.Node, r *gpu.Request, p gpu.Placement) float64 {
	var free topology.Set
	for i := range n.Cards {
		if c := &n.Cards[i]; c.Free() && c.Healthy && !c.Cordoned {
			free |= topology.SetOf(i)
		}
	}
	sum, of := 0.0, 0
	for _, g := range p.Grants {
		if a := &r.Asks[g.Number]; a.Whole && a.Count > 1 {
			sum += topology.Score(n.Links.Raw(setOf(n, g.Shares), free))
			of++
		}
	}
	return sum / float64(of)
}

// One container gets the cards that topology finds best among all that it could
// have.
func TestNVLinkChoosesTheTightest(t *testing.T) {
	moreChecks(t)
	pipe := Default().Pipeline()
	chosen := 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawLinkedWorld(t)
		n, _ := w.books().Snapshot().Node("n1")
		a := gpu.Ask{Container: "main", Count: pick(t, "count", 2, 3), Whole: true}
		p, v := pipe.Assign(&pipeline.Cycle{Request: &gpu.Request{NUMA: gpu.NoNUMA, Asks: []gpu.Ask{a}}}, n)
		if !v.OK() {
			return
		}
		chosen++
		var open []int
		var free topology.Set
		for i := range n.Cards {
			if c := &n.Cards[i]; c.Free() && c.Healthy && !c.Cordoned {
				free |= topology.SetOf(i)
				if c.TakesWhole() {
					open = append(open, i)
				}
			}
		}
		best, ok := n.Links.Tightest(topology.Ask{Open: open, Free: free, Count: a.Count})
		got := setOf(n, p.Grants[0].Shares)
		if !ok || n.Links.Raw(got, free) != best.Raw || best.Domain != 0 && !got.Within(best.Domain) && n.Links.Room(got) < got.Len() {
			t.Fatalf("%b of raw %d, best %b of raw %d", got, n.Links.Raw(got, free), best.Cards, best.Raw)
		}
	})
	if t.Logf("%d chosen", chosen); chosen < 100 {
		t.Error("hardly anything is chosen")
	}
}

// What the settings of the plugin mean: for all pods, for one that requires it, and
// for the score of a node whose cards are not joined.
func TestNVLinkSettings(t *testing.T) {
	var cards []gpu.Card
	for i, id := range []gpu.CardID{"d0", "d1"} {
		cards = append(cards, gpu.Card{ID: id, Index: i, Vendor: gpu.Nvidia, Memory: 8, Healthy: true, Mode: gpu.ModeWhole, NUMA: gpu.NoNUMA})
	}
	b, err := topology.NewBuilder(cards)
	if err != nil {
		t.Fatal(err)
	}
	b.Told()
	w := world{facts: ledger.Facts{ID: "n1", Cards: cards, Links: b.Links()}}
	n, _ := w.books().Snapshot().Node("n1")
	tests := map[string]struct {
		change         func(*Plugin)
		any, requiring gpu.Reason
		rated          bool
	}{
		"by default":             {func(*Plugin) {}, "", gpu.NVLinkUnsatisfied, true},
		"required of all":        {func(p *Plugin) { p.Args = []byte(`{"requireNVLink":true}`) }, gpu.NVLinkUnsatisfied, gpu.NVLinkUnsatisfied, false},
		"required of all, off":   {func(p *Plugin) { p.Args, p.Enabled = []byte(`{"requireNVLink":true}`), false }, "", gpu.NVLinkUnsatisfied, false},
		"weight 0 does not rate": {func(p *Plugin) { p.Weight = 0 }, "", gpu.NVLinkUnsatisfied, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := Default()
			for i := range s.Plugins {
				if s.Plugins[i].Name == "nvlink" {
					tc.change(&s.Plugins[i])
				}
			}
			if err := s.Validate(); err != nil {
				t.Fatal(err)
			}
			for required, want := range map[bool]gpu.Reason{false: tc.any, true: tc.requiring} {
				r := &gpu.Request{NUMA: gpu.NoNUMA, NVLink: required, Asks: []gpu.Ask{{Count: 2, Whole: true}}}
				if _, v := s.Pipeline().Assign(&pipeline.Cycle{Request: r}, n); v.Reason != want {
					t.Errorf("required %t: %+v, want %q", required, v, want)
				}
			}
			r := &gpu.Request{NUMA: gpu.NoNUMA, Asks: []gpu.Ask{{Count: 2, Whole: true}}}
			_, parts := s.Pipeline().Rate(&pipeline.Cycle{Request: r}, n)
			rated := slices.ContainsFunc(parts, func(p pipeline.Part) bool { return p.Plugin == "nvlink" && p.Score == 30 })
			if rated != tc.rated {
				t.Errorf("parts %+v", parts)
			}
		})
	}
}
