package ledger_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

func TestReserve(t *testing.T) {
	type pods = []gpu.Placement
	tests := map[string]struct {
		before  pods
		place   gpu.Placement
		wantErr error
		want    books
	}{
		"a slice": {place: pod("p", slice("a", 60, 40)), want: books{"a": "p 60/40/1"}},
		"to the last MiB": {
			before: pods{pod("o", slice("a", 60, 0))}, place: pod("p", slice("a", 30, 0)),
			want: books{"a": "o 60/0/1, p 30/0/1"},
		},
		"one MiB over": {
			before: pods{pod("o", slice("a", 60, 0))}, place: pod("p", slice("a", 31, 0)),
			wantErr: ledger.ErrNoRoom, want: books{"a": "o 60/0/1"},
		},
		"one MiB over on an empty card": {place: pod("p", slice("a", 91, 0)), wantErr: ledger.ErrNoRoom, want: books{}},
		"to the last percent": {
			before: pods{pod("o", slice("a", 1, 60))}, place: pod("p", slice("a", 1, 40)),
			want: books{"a": "o 1/60/1, p 1/40/1"},
		},
		"one percent over": {
			before: pods{pod("o", slice("a", 1, 60))}, place: pod("p", slice("a", 1, 41)),
			wantErr: ledger.ErrNoRoom, want: books{"a": "o 1/60/1"},
		},
		"to the last slot": {
			before: pods{pod("o", slice("a", 1, 0)), pod("p", slice("a", 1, 0))}, place: pod("q", slice("a", 1, 0)),
			want: books{"a": "o 1/0/1, p 1/0/1, q 1/0/1"},
		},
		"one slot over": {
			before: pods{pod("o", slice("a", 1, 0), slice("a", 1, 0)), pod("p", slice("a", 1, 0))}, place: pod("q", slice("a", 1, 0)),
			wantErr: ledger.ErrNoRoom, want: books{"a": "o 2/0/2, p 1/0/1"},
		},
		"a whole card, which does not look at what slices may use": {place: pod("p", whole("a")), want: books{"a": "p 100/100/1!"}},
		"a whole card beside a slice": {
			before: pods{pod("o", slice("a", 1, 0))}, place: pod("p", whole("a")),
			wantErr: ledger.ErrNoRoom, want: books{"a": "o 1/0/1"},
		},
		"a whole card beside a whole card": {
			before: pods{pod("o", whole("a"))}, place: pod("p", whole("a")),
			wantErr: ledger.ErrNoRoom, want: books{"a": "o 100/100/1!"},
		},
		"a slice beside an exclusive holder that takes little": {
			before: pods{pod("o", gpu.Share{Card: "a", Memory: 1, Exclusive: true})}, place: pod("p", slice("a", 1, 0)),
			wantErr: ledger.ErrNoRoom, want: books{"a": "o 1/0/1!"},
		},
		"all cards": {
			place: pod("p", whole("a"), whole("b"), whole("c"), whole("d")),
			want:  books{"a": "p 100/100/1!", "b": "p 100/100/1!", "c": "p 100/100/1!", "d": "p 100/100/1!"},
		},
		"all or none": {
			before: pods{pod("o", whole("c"))}, place: pod("p", slice("a", 1, 0), slice("b", 1, 0), slice("c", 1, 0), slice("d", 1, 0)),
			wantErr: ledger.ErrNoRoom, want: books{"c": "o 100/100/1!"},
		},
		"a card that is not there": {place: pod("p", slice("a", 1, 0), slice("x", 1, 0)), wantErr: ledger.ErrNoRoom, want: books{}},
		"a card of another node":   {place: pod("p", slice("e", 1, 0)), wantErr: ledger.ErrNoRoom, want: books{}},
		"a node that is not there": {place: on("n3", pod("p", slice("a", 1, 0))), wantErr: ledger.ErrUnknownNode, want: books{}},
		"a tenant's own neighbours": {
			before: pods{of("u", pod("o", slice("a", 1, 0)))}, place: of("u", pod("p", slice("a", 1, 0))),
			want: books{"a": "o 1/0/1, p 1/0/1"},
		},
		"beside another tenant": {
			before: pods{of("u", pod("o", slice("a", 1, 0)))}, place: of("v", pod("p", slice("a", 1, 0))),
			wantErr: ledger.ErrBoundary, want: books{"a": "o 1/0/1"},
		},
		"beside another tenant on the second card": {
			before: pods{of("u", pod("o", slice("b", 1, 0)))}, place: of("v", pod("p", slice("a", 1, 0), slice("b", 1, 0))),
			wantErr: ledger.ErrBoundary, want: books{"b": "o 1/0/1"},
		},
		"nobody's pods share with nobody": {
			before: pods{of("", pod("o", slice("a", 1, 0)))}, place: of("", pod("p", slice("a", 1, 0))),
			wantErr: ledger.ErrBoundary, want: books{"a": "o 1/0/1"},
		},
		"another tenant's card without slices left": {
			before: pods{of("u", pod("o", slice("a", 90, 0)))}, place: of("v", pod("p", slice("a", 1, 0))),
			wantErr: ledger.ErrNoRoom, want: books{"a": "o 90/0/1"},
		},
		"no cards at all": {place: pod("p"), want: books{}},
		"a retried bind counts once": {
			before: pods{pod("p", slice("a", 60, 60))}, place: pod("p", slice("a", 60, 60)),
			want: books{"a": "p 60/60/1"},
		},
		"the same pod wants more": {
			before: pods{pod("p", slice("a", 60, 0))}, place: pod("p", slice("a", 61, 0)),
			wantErr: ledger.ErrHeldElsewhere, want: books{"a": "p 60/0/1"},
		},
		"the same pod wants another card": {
			before: pods{pod("p", slice("a", 60, 0))}, place: pod("p", slice("b", 60, 0)),
			wantErr: ledger.ErrHeldElsewhere, want: books{"a": "p 60/0/1"},
		},
		"the same pod wants another node": {
			before: pods{pod("p")}, place: on("n2", pod("p")),
			wantErr: ledger.ErrHeldElsewhere, want: books{},
		},
		"cards that it does not name": {
			place: foreign("p", gpu.Foreign{Cards: 1}), wantErr: ledger.ErrIllegal, want: books{},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := world(t, tc.before...)
			before := l.Snapshot()
			if err := l.Reserve(tc.place); !errors.Is(err, tc.wantErr) {
				t.Errorf("Reserve = %v, want %v", err, tc.wantErr)
			}
			after := l.Snapshot()
			if diff := cmp.Diff(tc.want, held(after)); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			if tc.wantErr != nil && freeze(before) != freeze(after) {
				t.Error("a refused Reserve has changed the books")
			}
		})
	}
}

func TestReserveJudgesEveryHolder(t *testing.T) {
	friends := friendly{of: map[gpu.TenantID]gpu.TenantID{"u": "v", "v": "u"}}
	l := ledger.New(friends)
	l.SetNode(n1())
	for _, p := range []gpu.Placement{of("u", pod("o", slice("a", 1, 0))), of("v", pod("p", slice("a", 1, 0)))} {
		if err := l.Reserve(p); err != nil {
			t.Fatal(err)
		}
	}
	friends.of["w"] = "v" // w may sit beside v, who is second on the card, or last
	if err := l.Reserve(of("w", pod("q", slice("a", 1, 0)))); !errors.Is(err, ledger.ErrBoundary) {
		t.Errorf("beside u and v: %v, want %v", err, ledger.ErrBoundary)
	}
	friends.of["w"] = "u"
	if err := l.Reserve(of("w", pod("q", slice("a", 1, 0)))); !errors.Is(err, ledger.ErrBoundary) {
		t.Errorf("beside u and v: %v, want %v", err, ledger.ErrBoundary)
	}
	l.Release("p")
	if err := l.Reserve(of("w", pod("q", slice("a", 1, 0)))); err != nil {
		t.Errorf("beside u alone: %v", err)
	}
}

// friendly lets a tenant sit beside the one that it names.
type friendly struct {
	byName
	of map[gpu.TenantID]gpu.TenantID
}

func (f friendly) Boundary() ledger.Boundary { return f }

func (f friendly) MayShare(a, b gpu.TenantID) bool { return f.of[a] == b || f.of[b] == a }

func TestReserveFollowsTheFacts(t *testing.T) {
	tests := map[string]struct {
		change  func(c *gpu.Card)
		place   gpu.Placement
		wantErr error
	}{
		"slices to the overcommitted MiB":     {change: func(c *gpu.Card) { c.Usable = 180 }, place: pod("p", slice("a", 180, 0))},
		"slices past the overcommitted MiB":   {change: func(c *gpu.Card) { c.Usable = 180 }, place: pod("p", slice("a", 181, 0)), wantErr: ledger.ErrNoRoom},
		"slices to the overcommitted compute": {change: func(c *gpu.Card) { c.UsableCores = 200 }, place: pod("p", slice("a", 1, 200))},
		"slices past the overcommitted compute": {
			change: func(c *gpu.Card) { c.UsableCores = 200 }, place: pod("p", slice("a", 1, 201)), wantErr: ledger.ErrNoRoom,
		},
		"health is for others to judge":   {change: func(c *gpu.Card) { c.Healthy = false }, place: pod("p", whole("a"))},
		"cordons are for others to judge": {change: func(c *gpu.Card) { c.Cordoned = true }, place: pod("p", whole("a"))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := world(t)
			f := n1()
			tc.change(&f.Cards[0])
			l.SetNode(f)
			if err := l.Reserve(tc.place); !errors.Is(err, tc.wantErr) {
				t.Errorf("Reserve = %v, want %v", err, tc.wantErr)
			}
		})
	}
}

// A pod holds the larger of its app containers' sum and its largest init
// container, plus its sidecars.
func TestReserveCountsRoles(t *testing.T) {
	p := pod("p")
	p.Grants = []gpu.Grant{
		{Container: "init-1", Role: gpu.Init, Shares: []gpu.Share{slice("a", 70, 0), slice("b", 5, 5)}},
		{Container: "init-2", Role: gpu.Init, Shares: []gpu.Share{slice("a", 20, 60)}},
		{Container: "proxy", Role: gpu.Sidecar, Shares: []gpu.Share{slice("a", 10, 10)}},
		{Container: "main", Shares: []gpu.Share{slice("a", 30, 10)}},
		{Container: "other", Shares: []gpu.Share{slice("a", 30, 10)}},
	}
	l := world(t, p)
	if diff := cmp.Diff(books{"a": "p 80/70/3", "b": "p 5/5/1"}, held(l.Snapshot())); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
}

func TestUsedCPUAndMemory(t *testing.T) {
	l := world(t, pod("o", slice("a", 1, 0)), pod("p"))
	big := pod("q")
	big.CPU, big.Memory = 1_000_000, 1<<40
	if err := l.Reserve(big); err != nil {
		t.Errorf("CPU and memory are not the ledger's to refuse: %v", err)
	}
	l.Confirm(pod("r"))
	if err := l.Drain("r"); err != nil {
		t.Fatal(err)
	}
	l.Linger("p", start)
	l.Unreserve("q")
	n := node(t, l.Snapshot(), "n1")
	if n.UsedCPU != 300 || n.UsedMemory != 3000 {
		t.Errorf("used %d mCPU, %d bytes, want 300, 3000", n.UsedCPU, n.UsedMemory)
	}
}
