package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// promises is a small cluster in which services keep room for themselves, and the same
// without any of them, and without one.
type promises struct {
	*rand.Rand
	now      time.Time
	with     cluster
	none     cluster
	less     map[gpu.GroupID]cluster // without this service
	services map[gpu.GroupID]ledger.Service
	holders  map[gpu.PodID]gpu.Placement
}

func newPromises(seed uint64) *promises {
	p := &promises{Rand: rand.New(rand.NewPCG(seed, 11)), now: time.Now(), services: map[gpu.GroupID]ledger.Service{}, holders: map[gpu.PodID]gpu.Placement{}}
	same := func() cluster {
		c := newCluster(2, 2, 1)
		c.cfg.Now = func() time.Time { return p.now }
		c.ledger.Govern(rules{groups: [][]gpu.TenantID{{"ns", "two"}}})
		return c
	}
	p.with, p.none, p.less = same(), same(), map[gpu.GroupID]cluster{"chat": same(), "code": same()}
	return p
}

// each does the same to all of the clusters.
func (p *promises) each(do func(*ledger.Ledger)) {
	for _, c := range []cluster{p.with, p.none, p.less["chat"], p.less["code"]} {
		do(c.ledger)
	}
}

func (p *promises) card() gpu.CardID {
	return []gpu.CardID{"n1-d0", "n1-d1", "n2-d0", "n2-d1", "n3-d0"}[p.IntN(5)]
}

func (p *promises) share() gpu.Share {
	return []gpu.Share{alone, {Memory: 300, Cores: 30}, {Memory: 500}, {Memory: 900, Cores: 10}}[p.IntN(4)]
}

func (p *promises) placement(pod string, g gpu.GroupID, namespace string) gpu.Placement {
	card, share := p.card(), p.share()
	share.Card, share.Vendor = card, gpu.Nvidia
	return gpu.Placement{
		Pod: gpu.PodID(pod), Namespace: namespace, Name: pod, Node: gpu.NodeID(card[:2]), Group: g, Grants: []gpu.Grant{{Shares: []gpu.Share{share}}},
	}
}

func (p *promises) group() gpu.GroupID { return []gpu.GroupID{"chat", "code"}[p.IntN(2)] }

// livesIn is the namespace of a service.
func livesIn(g gpu.GroupID) string { return map[gpu.GroupID]string{"chat": "ns", "code": "other"}[g] }

func (p *promises) step() {
	switch p.IntN(6) {
	case 0, 1, 2:
		name, namespace, g := fmt.Sprintf("holder-%d", p.IntN(5)), []string{"ns", "two", "other"}[p.IntN(3)], gpu.GroupID("")
		if p.IntN(2) == 0 {
			g = p.group()
			namespace = livesIn(g)
		}
		x := p.placement(name, g, namespace)
		p.each(func(l *ledger.Ledger) { l.Release(x.Pod) })
		delete(p.holders, x.Pod)
		if p.IntN(4) > 0 {
			p.each(func(l *ledger.Ledger) { l.Confirm(x) })
			p.holders[x.Pod] = x
		}
	case 3, 4:
		s := ledger.Service{Group: p.group(), From: p.now.Add(time.Duration(1+p.IntN(3)) * time.Hour)}
		for i := range p.IntN(4) {
			s.Kept = append(s.Kept, p.placement(fmt.Sprintf("former-%d", i), s.Group, livesIn(s.Group)))
		}
		p.services[s.Group] = s
		p.with.ledger.SetService(s)
		for g, c := range p.less {
			told := s
			if g == s.Group {
				told.Kept = nil // it is a service all the same
			}
			c.ledger.SetService(told)
		}
	case 5:
		p.now = p.now.Add(time.Duration(p.IntN(60)) * time.Minute)
	}
}

// missing is what of a card is kept from who stays until then and is of that group,
// beyond what members have of it, worked out from the placements alone.
func (p *promises) missing(card gpu.CardID, of gpu.GroupID, until time.Time) (all []ledger.Holder) {
	for g, s := range p.services {
		if g == of || !until.IsZero() && !until.After(s.From) {
			continue
		}
		var sum gpu.Use
		for i := range s.Kept {
			sum = sum.Plus(onCard(&s.Kept[i], card))
		}
		for _, h := range p.holders {
			if had := onCard(&h, card); h.Group == g && had.Exclusive {
				sum = gpu.Use{}
			} else if h.Group == g {
				sum.Memory, sum.Cores, sum.Slots = max(0, sum.Memory-had.Memory), max(0, sum.Cores-had.Cores), max(0, sum.Slots-had.Slots)
			}
		}
		if sum != (gpu.Use{}) {
			all = append(all, ledger.Holder{Tenant: gpu.TenantID(livesIn(g)), Use: sum})
		}
	}
	return all
}

func onCard(p *gpu.Placement, card gpu.CardID) gpu.Use {
	for _, u := range p.Uses() {
		if u.Card == card {
			return u.Use
		}
	}
	return gpu.Use{}
}

// takes reports whether the ask of that tenant's, of one card, goes onto the card beside
// who is there and what is kept.
func (p *promises) takes(c *ledger.Card, ask gpu.Ask, tenant gpu.TenantID, kept []ledger.Holder) bool {
	beside := slices.Concat(c.Holders, kept)
	if ask.Whole {
		return len(beside) == 0
	}
	sum := ask.On(&c.Card)
	sum.Cores = max(1, sum.Cores)
	for _, h := range beside {
		sum = sum.Plus(h.Use)
		if !(rules{groups: [][]gpu.TenantID{{"ns", "two"}}}).MayShare(tenant, h.Tenant) {
			return false
		}
	}
	return !sum.Exclusive && !c.Divided && sum.Memory <= c.Usable && sum.Cores <= c.UsableCores && sum.Slots <= c.MaxSlices
}

// request is anybody's, for some time.
func (p *promises) request(i int) gpu.Request {
	r := pod(fmt.Sprintf("asker-%d", i), []gpu.Ask{whole(1), whole(2), slice(200), slice(400), slice(600)}[p.IntN(5)])
	r.Namespace = []string{"ns", "two", "other"}[p.IntN(3)]
	r.Runtime = time.Duration(p.IntN(5)) * 50 * time.Minute
	if p.IntN(4) == 0 {
		r = memberOf(string(p.group()), r)
		r.Namespace = livesIn(r.Group)
	}
	return r
}

// TestKeptRoomIsThere: whoever stays past the time from which room is kept gets what fits
// beside it, just that, and leaves it; whoever ends before, and the members, are judged
// and rated as if it were not kept.
func TestKeptRoomIsThere(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	beside, before, own := 0, 0, 0
	for round := range uint64(60) {
		p := newPromises(seed + round)
		for i := range 40 {
			p.step()
			r := p.request(i)
			until := time.Time{}
			_, served := p.services[r.Group]
			switch {
			case r.Gang && !served:
				p.mustBeAlike(t, &r, p.none) // both refuse it: it is no service in either
				continue
			case r.Runtime > 0 && !served:
				until = p.now.Add(r.Runtime)
			}
			binding := 0
			for g, s := range p.services {
				if g != r.Group && (until.IsZero() || until.After(s.From)) && len(s.Kept) > 0 {
					binding++
				}
			}
			switch {
			case served:
				p.mustBeAlike(t, &r, p.less[r.Group])
				own++
			case binding == 0:
				p.mustBeAlike(t, &r, p.none)
				before++
			}
			beside += p.mustLeaveRoom(t, &r, until)
		}
	}
	if beside < 200 || before < 200 || own < 200 {
		t.Errorf("only %d nodes beside what is kept, %d requests that end before, %d of members", beside, before, own)
	}
}

// mustBeAlike holds every answer against that of another cluster.
func (p *promises) mustBeAlike(t *testing.T, r *gpu.Request, other cluster) {
	t.Helper()
	want, got := other.Filter(r, other.all()), p.with.Filter(r, p.with.all())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%+v (-want +got):\n%s", r, diff)
	}
	if diff := cmp.Diff(other.Score(r, other.all()), p.with.Score(r, p.with.all())); diff != "" {
		t.Fatalf("scores of %+v (-want +got):\n%s", r, diff)
	}
	for _, c := range []cluster{other, p.with} {
		c.Forget(r.Pod)
	}
}

// mustLeaveRoom holds Filter, Trial and the choice of cards against the cards one by one,
// and returns of how many nodes something is kept that counts.
func (p *promises) mustLeaveRoom(t *testing.T, r *gpu.Request, until time.Time) (counts int) {
	t.Helper()
	in := p.with.ledger.Snapshot()
	told := p.with.reasons(*r)
	p.with.Forget(r.Pod)
	trial := p.with.Trial(r, in)
	for id, n := range in.Nodes() {
		open := 0
		for i := range n.Cards {
			kept := p.missing(n.Cards[i].ID, r.Group, until)
			counts += min(1, len(kept))
			if p.takes(&n.Cards[i], r.Asks[0], gpu.TenantID(r.Namespace), kept) {
				open++
			}
		}
		want := open >= r.Asks[0].Count
		if got := told[id] == ""; got != want {
			t.Fatalf("%+v until %v fits %s: %t, want %t (%s)", r, until, id, got, want, told[id])
		}
		placed, ok := trial.Place(in, id)
		if ok != want || trial.Fits(in, id) != want {
			t.Fatalf("a trial of %+v on %s: %t, want %t", r, id, ok, want)
		}
		s := stand(r, in, p.with.terms(in), p.now)
		if _, v := s.choose(n); v.OK() != want {
			t.Fatalf("a bind of %+v on %s: %+v, want %t", r, id, v, want)
		}
		for _, u := range placed.Uses() {
			for i := range n.Cards {
				if c := &n.Cards[i]; c.ID == u.Card && !p.takes(c, r.Asks[0], gpu.TenantID(r.Namespace), p.missing(u.Card, r.Group, until)) {
					t.Fatalf("%+v gets card %s, of which it leaves too little", r, u.Card)
				}
			}
		}
	}
	return counts
}
