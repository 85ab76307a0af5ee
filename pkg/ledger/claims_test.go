package ledger_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// do is one step of a story, for which err is the answer.
type do struct {
	step func(*ledger.Ledger) error
	err  error
}

func claims(p gpu.Placement, victims ...gpu.PodID) do {
	return do{step: func(l *ledger.Ledger) error { return l.Claim(p, victims) }}
}

func reserves(p gpu.Placement) do {
	return do{step: func(l *ledger.Ledger) error { return l.Reserve(p) }}
}

func leaves(id gpu.PodID) do {
	return do{step: func(l *ledger.Ledger) error { l.Release(id); return nil }}
}

func givesBack(id gpu.PodID) do {
	return do{step: func(l *ledger.Ledger) error { l.Unreserve(id); return nil }}
}

func givesUp(id gpu.PodID) do {
	return do{step: func(l *ledger.Ledger) error { l.Unclaim(id); return nil }}
}

func (d do) but(err error) do { d.err = err; return d }

// TestClaims tells what happens between a plan and the bind it was made for: v and w are
// to go for p and q, o stays, and x is anybody.
func TestClaims(t *testing.T) {
	tests := map[string]struct {
		before []gpu.Placement
		story  []do
		want   books
	}{
		"what victims leave goes to nobody else": {
			before: []gpu.Placement{pod("v", slice("a", 60, 0))},
			story: []do{
				claims(pod("p", slice("a", 90, 0)), "v"), reserves(pod("x", slice("a", 1, 0))).but(ledger.ErrNoRoom),
				leaves("v"), reserves(pod("x", slice("a", 1, 0))).but(ledger.ErrNoRoom), reserves(pod("p", slice("a", 90, 0))),
			},
			want: books{"a": "p 90/0/1"},
		},
		"not even the victim's successor": {
			before: []gpu.Placement{pod("v", whole("a"))},
			story:  []do{claims(pod("p", whole("a")), "v"), leaves("v"), reserves(pod("v2", whole("a"))).but(ledger.ErrNoRoom), reserves(pod("p", whole("a")))},
			want:   books{"a": "p 100/100/1!"},
		},
		"who fits beside both comes at once": {
			before: []gpu.Placement{pod("v", slice("a", 40, 0)), pod("o", slice("a", 20, 0))},
			story: []do{
				claims(pod("p", slice("a", 50, 0)), "v"), reserves(pod("x", slice("a", 21, 0))).but(ledger.ErrNoRoom), reserves(pod("x", slice("a", 20, 0))),
				leaves("v"), reserves(pod("p", slice("a", 50, 0))),
			},
			want: books{"a": "o 20/0/1, p 50/0/1, x 20/0/1"},
		},
		"two claims on one card wait for their own victims alone": {
			before: []gpu.Placement{pod("v", slice("a", 45, 0)), pod("w", slice("a", 45, 0))},
			story: []do{
				claims(pod("p", slice("a", 45, 0)), "v"), claims(pod("q", slice("a", 45, 0)), "w"),
				leaves("v"), reserves(pod("p", slice("a", 45, 0))), reserves(pod("q", slice("a", 45, 0))).but(ledger.ErrNoRoom), leaves("w"), reserves(pod("q", slice("a", 45, 0))),
			},
			want: books{"a": "p 45/0/1, q 45/0/1"},
		},
		"one victim makes no room for two": {
			before: []gpu.Placement{pod("v", slice("a", 60, 0))},
			story:  []do{claims(pod("p", slice("a", 60, 0)), "v"), claims(pod("q", slice("a", 60, 0)), "v").but(ledger.ErrNoRoom), claims(pod("q", slice("a", 30, 0)), "v")},
			want:   books{"a": "v 60/0/1; p 60, q 30 claimed"},
		},
		"the claimant has to wait for its victim": {
			before: []gpu.Placement{pod("v", slice("a", 60, 0))},
			story:  []do{claims(pod("p", slice("a", 60, 0)), "v"), reserves(pod("p", slice("a", 60, 0))).but(ledger.ErrNoRoom)},
			want:   books{"a": "v 60/0/1; p 60 claimed"},
		},
		"the claimant comes before its victim has gone where there is room, and on other cards of the node": {
			before: []gpu.Placement{pod("v", slice("a", 60, 0))},
			story:  []do{claims(pod("p", slice("a", 60, 0)), "v"), reserves(pod("p", slice("b", 60, 0)))},
			want:   books{"a": "v 60/0/1", "b": "p 60/0/1"},
		},
		"and on no other node": {
			before: []gpu.Placement{pod("v", slice("a", 60, 0))},
			story:  []do{claims(pod("p", slice("a", 60, 0)), "v"), reserves(on("n2", pod("p", slice("e", 60, 0)))).but(ledger.ErrHeldElsewhere)},
			want:   books{"a": "v 60/0/1; p 60 claimed"},
		},
		"a Binding that is refused leads back to the claim, with the cards that it had": {
			before: []gpu.Placement{pod("v", slice("a", 60, 0))},
			story: []do{
				claims(pod("p", slice("a", 60, 0)), "v"), reserves(pod("p", slice("b", 60, 0))), reserves(pod("x", slice("a", 30, 0))), givesBack("p"),
				reserves(pod("x2", slice("b", 31, 0))).but(ledger.ErrNoRoom), reserves(pod("p", slice("b", 60, 0))),
			},
			want: books{"a": "v 60/0/1, x 30/0/1", "b": "p 60/0/1"},
		},
		"a claim that is given up while a bind is on its way leaves that alone": {
			story: []do{claims(pod("p", slice("a", 60, 0))), reserves(pod("p", slice("a", 60, 0))), givesUp("p"), givesBack("p")},
			want:  books{},
		},
		"a claim of who is on the way already counts when that fails": {
			story: []do{reserves(pod("p", slice("a", 60, 0))), claims(pod("p", slice("a", 60, 0))), givesBack("p")},
			want:  books{"a": "p 60 claimed"},
		},
		"refused where the victims do not suffice, and nothing is claimed": {
			before: []gpu.Placement{pod("v", slice("a", 30, 0)), pod("o", slice("a", 40, 0))},
			story:  []do{claims(pod("p", slice("a", 51, 0)), "v").but(ledger.ErrNoRoom)},
			want:   books{"a": "o 40/0/1, v 30/0/1"},
		},
		"refused beside whom it may not be": {
			before: []gpu.Placement{pod("v", slice("a", 30, 0)), pod("o", slice("a", 30, 0))},
			story:  []do{claims(of("u", pod("p", slice("a", 30, 0))), "v").but(ledger.ErrBoundary)},
			want:   books{"a": "o 30/0/1, v 30/0/1"},
		},
		"across tenants, and nobody else of the victims' tenant comes": {
			before: []gpu.Placement{pod("v", slice("a", 30, 0))},
			story:  []do{claims(of("u", pod("p", slice("a", 30, 0))), "v"), reserves(pod("x", slice("a", 1, 0))).but(ledger.ErrBoundary)},
			want:   books{"a": "v 30/0/1; p 30 claimed"},
		},
		"nobody alone onto a claimed card, nor beside who is to be alone": {
			story: []do{
				claims(pod("p", slice("a", 30, 0))), reserves(pod("x", whole("a"))).but(ledger.ErrNoRoom),
				claims(pod("q", whole("b"))), reserves(pod("x", slice("b", 1, 0))).but(ledger.ErrNoRoom),
			},
			want: books{"a": "p 30 claimed", "b": "q 100 claimed"},
		},
		"unknown node, and cards that are not named": {
			story: []do{claims(on("n9", pod("p"))).but(ledger.ErrUnknownNode), claims(foreign("p", gpu.Foreign{Cards: 1})).but(ledger.ErrIllegal)},
			want:  books{},
		},
		"one that is claimed elsewhere": {
			story: []do{claims(pod("p", slice("a", 60, 0))), claims(on("n2", pod("p", slice("e", 60, 0)))).but(ledger.ErrHeldElsewhere)},
			want:  books{"a": "p 60 claimed"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := world(t, tc.before...)
			for i, d := range tc.story {
				if err := d.step(l); !errors.Is(err, d.err) {
					t.Fatalf("step %d = %v, want %v", i, err, d.err)
				}
			}
			if diff := cmp.Diff(tc.want, held(l.Snapshot())); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAClaimIsNobody: the card is as it was for all that go by who is there.
func TestAClaimIsNobody(t *testing.T) {
	v, o := pod("v", slice("a", 30, 0)), pod("o", slice("b", 10, 0))
	l := world(t, v, o)
	l.SetReadings("n1", ledger.Readings{Cards: map[gpu.CardID]gpu.Reading{"a": {MemoryUsed: gpu.Figure{Known: true, Value: 70}}, "b": {MemoryUsed: gpu.Figure{Known: true, Value: 30}}}})
	before := node(t, l.Snapshot(), "n1")
	if err := l.Claim(of("u", pod("p", whole("a"))), []gpu.PodID{"v"}); err != nil {
		t.Fatal(err)
	}
	after := node(t, l.Snapshot(), "n1")
	for i := range after.Cards {
		was, is := &before.Cards[i], after.Cards[i]
		is.Claims, is.Claimed = nil, gpu.Use{}
		if diff := cmp.Diff(*was, is, others()); diff != "" || was.Foreign() != is.Foreign() {
			t.Errorf("card %s (-before +after):\n%s", is.ID, diff)
		}
	}
	if after.Version == before.Version {
		t.Error("the node has the same version, so what was said of it stands")
	}
	if after.UsedCPU != before.UsedCPU || after.UsedMemory != before.UsedMemory {
		t.Errorf("uses %d, %d, want %d, %d: those of v are to be p's", after.UsedCPU, after.UsedMemory, before.UsedCPU, before.UsedMemory)
	}
	if got := l.Rivals("p"); got != nil {
		t.Errorf("rivals of a claim: %v", got)
	}
	l.Unclaim("p")
	again := node(t, l.Snapshot(), "n1")
	if diff := cmp.Diff(before.Cards, again.Cards, others()); diff != "" {
		t.Errorf("once the claim has ended (-before +after):\n%s", diff)
	}
}

// others leaves out what every change of a node keeps anew of what was measured before.
func others() cmp.Option { return cmpopts.IgnoreFields(ledger.Card{}, "Others") }

// TestClaimsAreFound: who has a claim is known, with the node, as long as it stands; and
// it is neither unconfirmed nor confirmed.
func TestClaimsAreFound(t *testing.T) {
	l := world(t)
	p := pod("p", slice("a", 60, 0))
	_ = l.Claim(p, nil)
	old := l.Snapshot()
	at := func(s ledger.Snapshot) gpu.NodeID { n, _ := s.Claim("p"); return n }
	if got := at(old); got != "n1" {
		t.Errorf("claimed on %q, want n1", got)
	}
	if len(l.Unconfirmed())+len(l.Confirmed()) != 0 {
		t.Errorf("holds: %v, %v", l.Unconfirmed(), l.Confirmed())
	}
	if got := at(old.Without("n1", "p")); got != "" {
		t.Errorf("without it: claimed on %q", got)
	}
	if n := node(t, old, "n1"); n.Claims != 1 || n.Unclaimed().Claims != 0 || !n.Unclaimed().Cards[0].Free() {
		t.Errorf("claims of the node: %d, and %+v without them", n.Claims, n.Unclaimed())
	}
	_ = l.Reserve(p)
	if got := at(l.Snapshot()); got != "n1" || len(l.Unconfirmed()) != 1 {
		t.Errorf("while the bind is on its way: %q, unconfirmed %v", got, l.Unconfirmed())
	}
	l.Confirm(p)
	if got := at(l.Snapshot()); got != "" {
		t.Errorf("once it is bound: claimed on %q", got)
	}
	if got := at(old); got != "n1" {
		t.Error("a snapshot has changed")
	}
}

// TestClaimsAreSpent: an account is charged for a claim as far as it takes more than
// the victims have, so that the next plan goes by what there will be.
func TestClaimsAreSpent(t *testing.T) {
	l := ledger.New(quota{most: 3})
	l.SetNode(n1())
	for id, c := range map[gpu.PodID]gpu.CardID{"v": "a", "w": "b"} {
		l.Confirm(pod(id, whole(c)))
	}
	if err := l.Claim(pod("p", whole("a")), []gpu.PodID{"v"}); err != nil {
		t.Fatal(err)
	}
	spent := func() int64 { return l.Snapshot().Spent("acct").Sum(gpu.WholeCards) }
	if got := spent(); got != 2 {
		t.Errorf("spent: %d cards, want those of v, which are to be p's, and w", got)
	}
	if err := l.Claim(pod("q", whole("b"), whole("c")), []gpu.PodID{"w"}); err != nil {
		t.Fatal(err)
	}
	if got := spent(); got != 3 {
		t.Errorf("spent: %d cards, want one more for q than w has", got)
	}
	if err := l.Reserve(pod("x", whole("c"))); !errors.Is(err, ledger.ErrQuota) {
		t.Errorf("Reserve = %v, want %v", err, ledger.ErrQuota)
	}
	l.Release("v")
	if err := l.Reserve(pod("p", whole("a"))); err != nil {
		t.Errorf("the claimant is in its own way: %v", err)
	}
	l.Release("w")
	l.Unclaim("q")
	if got := spent(); got != 1 {
		t.Errorf("spent: %d cards, want those of p", got)
	}
	l.Govern(quota{most: 1})
	if err := l.Claim(pod("q", whole("b")), nil); !errors.Is(err, ledger.ErrQuota) {
		t.Errorf("Claim = %v, want %v", err, ledger.ErrQuota)
	}
}

// quota are rules by which all namespaces have so many whole cards together.
type quota struct {
	apart
	most int64
}

func (q quota) Accounts(string) []gpu.Account { return []gpu.Account{"acct"} }
func (q quota) Limits(gpu.Account) []gpu.Limit {
	return []gpu.Limit{{Quota: "q", Name: "cards", Measure: gpu.WholeCards, Most: q.most}}
}
