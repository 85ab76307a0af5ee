package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

func TestNodesComeAndGo(t *testing.T) {
	rebooted := n1()
	rebooted.BootID = "boot-9"
	silent := n1()
	silent.BootID = ""
	short := n1()
	short.Cards = short.Cards[1:]

	tests := map[string]struct {
		do   func(l *ledger.Ledger)
		want books
		pods []gpu.PodID
	}{
		"a pod before its node": {
			do:   func(l *ledger.Ledger) { l.Confirm(pod("p", slice("a", 1, 0))); l.SetNode(n1()) },
			want: books{"a": "p 1/0/1"}, pods: []gpu.PodID{"p"},
		},
		"a pod whose node never comes": {
			do:   func(l *ledger.Ledger) { l.Confirm(pod("p", slice("a", 1, 0))) },
			want: books{}, pods: []gpu.PodID{"p"},
		},
		"a pod that ends before its node comes": {
			do:   func(l *ledger.Ledger) { l.Confirm(pod("p", slice("a", 1, 0))); l.Release("p"); l.SetNode(n1()) },
			want: books{}, pods: []gpu.PodID{},
		},
		"a pod that moves from a node not known": {
			do: func(l *ledger.Ledger) {
				l.Confirm(pod("p", slice("a", 1, 0)))
				l.SetNode(n2())
				l.Confirm(on("n2", pod("p", slice("e", 1, 0))))
				l.SetNode(n1())
			},
			want: books{"e": "p 1/0/1"}, pods: []gpu.PodID{"p"},
		},
		"a node that goes": {
			do:   func(l *ledger.Ledger) { l.SetNode(n1()); l.Confirm(pod("p", slice("a", 1, 0))); l.RemoveNode("n1") },
			want: books{}, pods: []gpu.PodID{"p"},
		},
		"a node that comes back": {
			do: func(l *ledger.Ledger) {
				l.SetNode(n1())
				l.Confirm(pod("p", slice("a", 1, 0)))
				l.RemoveNode("n1")
				l.Confirm(pod("q", slice("a", 2, 0)))
				l.SetNode(n1())
			},
			want: books{"a": "p 1/0/1, q 2/0/1"}, pods: []gpu.PodID{"p", "q"},
		},
		"what lingers goes with its node": {
			do: func(l *ledger.Ledger) {
				l.SetNode(n1())
				l.Confirm(pod("p", slice("a", 1, 0)))
				l.Confirm(pod("q", slice("b", 1, 0)))
				l.Linger("p", start.Add(time.Hour))
				l.RemoveNode("n1")
				l.SetNode(n1())
			},
			want: books{"b": "q 1/0/1"}, pods: []gpu.PodID{"q"},
		},
		"what lingers on a node never seen goes with it": {
			do: func(l *ledger.Ledger) {
				l.Confirm(pod("p", slice("a", 1, 0)))
				l.Linger("p", start.Add(time.Hour))
				l.RemoveNode("n1")
			},
			want: books{}, pods: []gpu.PodID{},
		},
		"a node never seen goes": {do: func(l *ledger.Ledger) { l.RemoveNode("n1") }, want: books{}, pods: []gpu.PodID{}},
		"what lingers goes with a reboot": {
			do: func(l *ledger.Ledger) {
				l.SetNode(n1())
				l.Confirm(pod("p", slice("a", 1, 0)))
				l.Confirm(pod("q", slice("b", 1, 0)))
				l.Linger("p", start.Add(time.Hour))
				l.SetNode(rebooted)
			},
			want: books{"b": "q 1/0/1"}, pods: []gpu.PodID{"q"},
		},
		"a node that does not say when it booted has not rebooted": {
			do: func(l *ledger.Ledger) {
				l.SetNode(n1())
				l.Confirm(pod("p", slice("a", 1, 0)))
				l.Linger("p", start.Add(time.Hour))
				l.SetNode(silent)
				l.SetNode(n1())
			},
			want: books{"a": "p 1/0/1"}, pods: []gpu.PodID{"p"},
		},
		"what lingers stays on a node that merely changes": {
			do: func(l *ledger.Ledger) {
				l.SetNode(n1())
				l.Confirm(pod("p", slice("a", 1, 0)))
				l.Linger("p", start.Add(time.Hour))
				f := n1()
				f.Unavailable = true
				l.SetNode(f)
			},
			want: books{"a": "p 1/0/1"}, pods: []gpu.PodID{"p"},
		},
		"a card that goes and comes back": {
			do: func(l *ledger.Ledger) {
				l.SetNode(n1())
				l.Confirm(pod("p", slice("a", 1, 0)))
				l.SetNode(short)
				l.SetNode(n1())
			},
			want: books{"a": "p 1/0/1"}, pods: []gpu.PodID{"p"},
		},
		"a card that goes": {
			do: func(l *ledger.Ledger) {
				l.SetNode(n1())
				l.Confirm(pod("p", slice("a", 1, 0), slice("b", 1, 0)))
				l.SetNode(short)
			},
			want: books{"b": "p 1/0/1", "d": "closed"}, pods: []gpu.PodID{"p"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := ledger.New(apart{})
			tc.do(l)
			if diff := cmp.Diff(tc.want, held(l.Snapshot())); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.pods, l.Pods()); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReserveOnARemovedNode(t *testing.T) {
	l := world(t, pod("o", slice("a", 1, 0)))
	l.RemoveNode("n1")
	if err := l.Reserve(pod("p", slice("a", 1, 0))); !errors.Is(err, ledger.ErrUnknownNode) {
		t.Errorf("Reserve = %v, want %v", err, ledger.ErrUnknownNode)
	}
	if err := l.Reserve(pod("o", slice("a", 1, 0))); err != nil {
		t.Errorf("a retry of what is held already: %v", err)
	}
}

func TestCardOrder(t *testing.T) {
	l := ledger.New(apart{})
	f := ledger.Facts{ID: "n1", Cards: []gpu.Card{card("z", 1, ""), card("b", 0, ""), card("a", 1, ""), card("y", 0, "")}}
	l.SetNode(f)
	n := node(t, l.Snapshot(), "n1")
	if diff := cmp.Diff([]gpu.CardID{"b", "y", "a", "z"}, cardIDs(n.Cards)); diff != "" {
		t.Errorf("cards (-want +got):\n%s", diff)
	}
	if f.Cards[0].ID != "z" {
		t.Error("SetNode has put the caller's cards in order")
	}
}

func TestForeign(t *testing.T) {
	nvidia := func(n int) gpu.Foreign { return gpu.Foreign{Vendor: gpu.Nvidia, Cards: n} }
	tests := map[string]struct {
		ours   []gpu.Placement
		others []gpu.Placement
		want   books
	}{
		"one of a vendor is its last":   {others: []gpu.Placement{foreign("x", nvidia(1))}, want: books{"c": "closed"}},
		"one of any vendor is the last": {others: []gpu.Placement{foreign("x", gpu.Foreign{Cards: 1})}, want: books{"d": "closed"}},
		"none":                          {others: []gpu.Placement{foreign("x", nvidia(0))}, want: books{}},
		"several pods add up": {
			others: []gpu.Placement{foreign("x", nvidia(1)), foreign("y", nvidia(1))},
			want:   books{"b": "closed", "c": "closed"},
		},
		"several claims of a pod add up": {
			others: []gpu.Placement{foreign("x", nvidia(1), gpu.Foreign{Vendor: gpu.Ascend, Cards: 1})},
			want:   books{"c": "closed", "d": "closed"},
		},
		"any vendor takes what the picky leave": {
			others: []gpu.Placement{foreign("x", gpu.Foreign{Cards: 1}), foreign("y", gpu.Foreign{Vendor: gpu.Ascend, Cards: 1})},
			want:   books{"c": "closed", "d": "closed"},
		},
		"cards that are in use are not free": {
			ours: []gpu.Placement{pod("o", slice("c", 1, 0))}, others: []gpu.Placement{foreign("x", nvidia(1))},
			want: books{"c": "o 1/0/1", "b": "closed"},
		},
		"as many as are free": {
			ours: []gpu.Placement{pod("o", slice("c", 1, 0))}, others: []gpu.Placement{foreign("x", nvidia(2))},
			want: books{"c": "o 1/0/1", "a": "closed", "b": "closed"},
		},
		"more than are free: it is on one of ours": {
			ours: []gpu.Placement{pod("o", slice("c", 1, 0))}, others: []gpu.Placement{foreign("x", nvidia(3))},
			want: books{"c": "o 1/0/1, closed", "a": "closed", "b": "closed"},
		},
		"all of a vendor, in use or not": {
			ours: []gpu.Placement{pod("o", slice("b", 1, 0))}, others: []gpu.Placement{foreign("x", nvidia(gpu.AllCards))},
			want: books{"a": "closed", "b": "o 1/0/1, closed", "c": "closed"},
		},
		"all of them": {
			others: []gpu.Placement{foreign("x", gpu.Foreign{Cards: gpu.AllCards})},
			want:   books{"a": "closed", "b": "closed", "c": "closed", "d": "closed"},
		},
		"all and one more": {
			others: []gpu.Placement{foreign("x", nvidia(gpu.AllCards)), foreign("y", nvidia(1))},
			want:   books{"a": "closed", "b": "closed", "c": "closed"},
		},
		"more than a number can say": {
			others: []gpu.Placement{foreign("x", nvidia(1<<62)), foreign("y", nvidia(1<<62))},
			want:   books{"a": "closed", "b": "closed", "c": "closed"},
		},
		"of a vendor that the node lacks": {others: []gpu.Placement{foreign("x", gpu.Foreign{Vendor: gpu.Biren, Cards: 2})}, want: books{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := world(t, tc.ours...)
			for _, p := range tc.others {
				l.Confirm(p)
			}
			s := l.Snapshot()
			if diff := cmp.Diff(tc.want, held(s)); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			closedTakesNothing(t, l, node(t, s, "n1"))
			for _, p := range tc.others {
				l.Release(p.Pod)
			}
			if diff := cmp.Diff(held(world(t, tc.ours...).Snapshot()), held(l.Snapshot())); diff != "" {
				t.Errorf("after they have ended (-want +got):\n%s", diff)
			}
		})
	}
}

// What runs on a card does not end because the node calls it otherwise, or counts
// fewer: as many of the others are not free.
func TestUnlistedCardsAreNotFreeRoom(t *testing.T) {
	count := func(vendor gpu.Vendor, ids ...gpu.CardID) (cards []gpu.Card) {
		for i, id := range ids {
			cards = append(cards, gpu.Card{
				ID: id, Index: i, Vendor: vendor, Memory: 100, Usable: 100, Cores: 100, UsableCores: 100, MaxSlices: 10,
			})
		}
		return cards
	}
	plugged := func(cards []gpu.Card, by ...string) []gpu.Card {
		for i := range cards {
			cards[i].Plugin = by[i]
		}
		return cards
	}
	on := func(name gpu.PodID, id gpu.CardID) gpu.Placement {
		p := pod(name, whole(id))
		p.Grants[0].Shares[0].Vendor = gpu.Nvidia
		return p
	}
	tests := map[string]struct {
		pods []gpu.Placement
		then []gpu.Card
		want []bool // closed
	}{
		"a count that shrinks":       {[]gpu.Placement{on("p", "n-3")}, count(gpu.Nvidia, "n-0", "n-1", "n-2"), []bool{false, false, true}},
		"all names change":           {[]gpu.Placement{on("p", "n-0"), on("q", "n-1")}, count(gpu.Nvidia, "GPU-a", "GPU-b"), []bool{true, true}},
		"more than are left":         {[]gpu.Placement{on("p", "n-0"), on("q", "n-1")}, count(gpu.Nvidia, "GPU-a"), []bool{true}},
		"another vendor's are apart": {[]gpu.Placement{on("p", "n-0")}, count(gpu.Ascend, "a", "b"), []bool{false, false}},
		"nothing is missing":         {[]gpu.Placement{on("p", "n-0")}, count(gpu.Nvidia, "n-0", "n-1"), []bool{false, false}},
		"the vendor is missing":      {[]gpu.Placement{on("p", "n-0")}, nil, nil},
		"two plugins of the vendor":  {[]gpu.Placement{on("p", "n-0")}, plugged(count(gpu.Nvidia, "x-0", "x-1", "y-0"), "x", "x", "y"), []bool{false, true, true}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := ledger.New(apart{})
			for _, p := range tc.pods {
				l.Confirm(p)
			}
			l.SetNode(ledger.Facts{ID: "n1", Cards: tc.then})
			n := node(t, l.Snapshot(), "n1")
			var got []bool
			for i := range n.Cards {
				got = append(got, n.Cards[i].Closed)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("closed (-want +got):\n%s", diff)
			}
			for _, p := range tc.pods {
				l.Release(p.Pod)
			}
			for i := range tc.then {
				if n := node(t, l.Snapshot(), "n1"); !n.Cards[i].Free() {
					t.Errorf("card %s is not free after the pods have ended", n.Cards[i].ID)
				}
			}
		})
	}
}

// A claim says of which vendor's cards it is, not which device plugin has given
// them out: it is settled among the cards of each, so that room that may be in
// use is not free.
func TestForeignAmongPlugins(t *testing.T) {
	plugged := func(id gpu.CardID, index int, vendor gpu.Vendor, by string) gpu.Card {
		c := card(id, index, vendor)
		c.Plugin = by
		return c
	}
	facts := ledger.Facts{ID: "n1", Cards: []gpu.Card{
		plugged("w0", 0, gpu.Metax, "gpu"), plugged("s0", 0, gpu.Metax, "sgpu"), plugged("w1", 1, gpu.Metax, "gpu"), plugged("s1", 1, gpu.Metax, "sgpu"),
		plugged("w2", 2, gpu.Metax, "gpu"), plugged("k", 0, gpu.Kunlun, "xpu"),
	}}
	tests := map[string]struct {
		ours  []gpu.Placement
		claim gpu.Foreign
		want  books
	}{
		"one":                       {claim: gpu.Foreign{Vendor: gpu.Metax, Cards: 1}, want: books{"w2": "closed", "s1": "closed"}},
		"more than one plugin has":  {claim: gpu.Foreign{Vendor: gpu.Metax, Cards: 3}, want: books{"w0": "closed", "w1": "closed", "w2": "closed", "s0": "closed", "s1": "closed"}},
		"more than are free of one": {[]gpu.Placement{pod("o", slice("s0", 1, 0))}, gpu.Foreign{Vendor: gpu.Metax, Cards: 2}, books{"s0": "o 1/0/1, closed", "s1": "closed", "w1": "closed", "w2": "closed"}},
		"of any vendor":             {claim: gpu.Foreign{Cards: 1}, want: books{"w2": "closed"}},
		"another vendor's":          {claim: gpu.Foreign{Vendor: gpu.Kunlun, Cards: 1}, want: books{"k": "closed"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := ledger.New(apart{})
			l.SetNode(facts)
			for _, p := range tc.ours {
				if err := l.Reserve(p); err != nil {
					t.Fatal(err)
				}
			}
			l.Confirm(foreign("x", tc.claim))
			if diff := cmp.Diff(tc.want, held(l.Snapshot())); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
		})
	}
}

func closedTakesNothing(t *testing.T, l *ledger.Ledger, n *ledger.Node) {
	t.Helper()
	for i := range n.Cards {
		c := &n.Cards[i]
		if !c.Closed {
			continue
		}
		for _, s := range []gpu.Share{slice(c.ID, 1, 0), whole(c.ID)} {
			if err := l.Reserve(pod("probe", s)); !errors.Is(err, ledger.ErrNoRoom) {
				t.Errorf("closed card %s: %v, want %v", c.ID, err, ledger.ErrNoRoom)
			}
		}
	}
}
