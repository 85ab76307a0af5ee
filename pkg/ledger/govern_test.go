package ledger_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// divided lists the cards that are.
func divided(s ledger.Snapshot) []gpu.CardID {
	var ids []gpu.CardID
	for _, n := range s.Nodes() {
		for i := range n.Cards {
			if c := &n.Cards[i]; c.Divided {
				ids = append(ids, c.ID)
			}
		}
	}
	return ids
}

// u and v share card a; v is alone on b, u holds c whole. Then the rules change.
func TestGovern(t *testing.T) {
	together := written{pairs: []string{"u v"}}
	sharing := []gpu.Placement{
		in("u", pod("o", slice("a", 10, 0))), in("v", pod("p", slice("a", 10, 0))), in("v", pod("q", slice("b", 10, 0))), in("u", pod("r", whole("c"))),
	}
	tests := map[string]struct {
		rules   ledger.Rules
		then    func(l *ledger.Ledger)
		divided []gpu.CardID
		place   gpu.Placement // afterwards
		wantErr error
	}{
		"the same again":                          {rules: together, place: in("u", pod("n", slice("a", 10, 0)))},
		"the group is removed":                    {rules: written{}, divided: []gpu.CardID{"a"}, place: in("u", pod("n", slice("a", 10, 0))), wantErr: ledger.ErrBoundary},
		"the group is removed; a third":           {rules: written{pairs: []string{"w u", "w v"}}, divided: []gpu.CardID{"a"}, place: in("w", pod("n", slice("a", 10, 0))), wantErr: ledger.ErrBoundary},
		"the group is removed; a whole card":      {rules: written{}, divided: []gpu.CardID{"a"}, place: in("u", pod("n", whole("a"))), wantErr: ledger.ErrBoundary},
		"the group is removed; another card":      {rules: written{}, divided: []gpu.CardID{"a"}, place: in("v", pod("n", slice("b", 10, 0)))},
		"the group is removed; one of them again": {rules: written{}, divided: []gpu.CardID{"a"}, place: sharing[0]},
		"the group is removed, and one has gone": {
			rules: written{}, then: func(l *ledger.Ledger) { l.Release("o") }, place: in("v", pod("n", slice("a", 10, 0))),
		},
		"... for the other nothing changes": {
			rules: written{}, then: func(l *ledger.Ledger) { l.Release("o") }, place: in("u", pod("n", slice("a", 10, 0))), wantErr: ledger.ErrBoundary,
		},
		"the group is removed, and one lingers": {
			rules: written{}, then: func(l *ledger.Ledger) { l.Linger("o", start) }, divided: []gpu.CardID{"a"},
			place: in("v", pod("n", slice("a", 10, 0))), wantErr: ledger.ErrBoundary,
		},
		"the group is removed, and is back": {
			rules: written{}, then: func(l *ledger.Ledger) { l.Govern(together) }, place: in("u", pod("n", slice("a", 10, 0))),
		},
		"the group is removed while the node is away": {
			rules: written{}, then: func(l *ledger.Ledger) {
				l.Govern(together)
				l.RemoveNode("n1")
				l.Govern(written{})
				l.SetNode(n1())
			},
			divided: []gpu.CardID{"a"}, place: in("u", pod("n", slice("a", 10, 0))), wantErr: ledger.ErrBoundary,
		},
		"the namespace moves to another tenant, whom nobody may sit beside": {
			rules: written{pairs: []string{"u v"}, owner: map[string]gpu.TenantID{"v": "w"}}, divided: []gpu.CardID{"a"},
			place: in("v", pod("n", slice("b", 10, 0))), // its own came along
		},
		"... and who was its own is a stranger on the other card": {
			rules: written{pairs: []string{"u v"}, owner: map[string]gpu.TenantID{"v": "w"}}, divided: []gpu.CardID{"a"},
			place: in("v2", pod("n", slice("b", 10, 0))), wantErr: ledger.ErrBoundary,
		},
		"the namespaces move into one tenant": {
			rules: written{owner: map[string]gpu.TenantID{"u": "w", "v": "w"}}, place: in("u", pod("n", slice("b", 10, 0))),
		},
		"the namespace moves while the node is away": {
			rules: together, then: func(l *ledger.Ledger) {
				l.RemoveNode("n1")
				l.Govern(written{owner: map[string]gpu.TenantID{"v": "w"}})
				l.SetNode(n1())
			},
			divided: []gpu.CardID{"a"}, place: in("v", pod("n", slice("b", 10, 0))),
		},
		"two claim the namespace: it shares with nobody, not even itself": {
			rules: written{pairs: []string{"u v"}, owner: map[string]gpu.TenantID{"v": ""}}, divided: []gpu.CardID{"a"},
			place: in("v", pod("n", slice("b", 10, 0))), wantErr: ledger.ErrBoundary,
		},
		"the tenant is deleted: nothing new, what runs runs": {
			rules: written{pairs: []string{"u v"}, closed: map[string]gpu.Reason{"u": gpu.TenantInactive}},
			place: in("u", pod("n", slice("a", 10, 0))), wantErr: ledger.ErrInactive,
		},
		"the limit is below what is held": {
			rules: written{pairs: []string{"u v"}, limits: map[gpu.Account][]gpu.Limit{"tenant/v": {cardsOf("Tenant v", 1)}}},
			place: in("v", pod("n", slice("a", 10, 0))), wantErr: ledger.ErrQuota,
		},
		"the limit is below what the other holds": {
			rules: written{pairs: []string{"u v"}, limits: map[gpu.Account][]gpu.Limit{"tenant/v": {cardsOf("Tenant v", 1)}}},
			place: in("u", pod("n", slice("a", 10, 0))),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := governed(t, together, sharing...)
			before := l.Snapshot()
			frozen := freeze(before)
			l.Govern(tc.rules)
			if diff := cmp.Diff(held(before), held(l.Snapshot())); diff != "" {
				t.Errorf("other rules have moved pods (-before +after):\n%s", diff)
			}
			if tc.then != nil {
				tc.then(l)
			}
			after := l.Snapshot()
			if diff := cmp.Diff(tc.divided, divided(after)); diff != "" {
				t.Errorf("divided (-want +got):\n%s", diff)
			}
			if _, err := after.With(tc.place); !errors.Is(err, tc.wantErr) {
				t.Errorf("With = %v, want %v", err, tc.wantErr)
			}
			if err := l.Reserve(tc.place); !errors.Is(err, tc.wantErr) {
				t.Errorf("Reserve = %v, want %v", err, tc.wantErr)
			}
			if freeze(before) != frozen {
				t.Error("the snapshot from before has changed")
			}
		})
	}
}

// A snapshot goes by the rules that it was taken under.
func TestSnapshotsKeepTheirRules(t *testing.T) {
	l := governed(t, written{pairs: []string{"u v"}}, in("u", pod("o", slice("a", 10, 0))))
	then := l.Snapshot()
	l.Govern(written{closed: map[string]gpu.Reason{"v": gpu.TenantInactive}})
	if _, err := then.With(in("v", pod("p", slice("a", 10, 0)))); err != nil {
		t.Errorf("then: %v", err)
	}
	if _, err := l.Snapshot().With(in("v", pod("p", slice("a", 10, 0)))); !errors.Is(err, ledger.ErrInactive) {
		t.Errorf("now: %v, want %v", err, ledger.ErrInactive)
	}
	if err := l.Reserve(in("v", pod("p", slice("a", 10, 0)))); !errors.Is(err, ledger.ErrInactive) {
		t.Errorf("what was planned then: %v, want %v", err, ledger.ErrInactive)
	}
}

// Whose a hold is, the rules say: not the placement, and not those of yesterday.
func TestGovernSaysWhoseHoldsAre(t *testing.T) {
	l := governed(t, written{owner: map[string]gpu.TenantID{"ns": "blue"}})
	forged := in("ns", pod("p", slice("a", 10, 0)))
	forged.Tenant = "red"
	if err := l.Reserve(forged); err != nil {
		t.Fatal(err)
	}
	l.Confirm(on("n9", in("ns", pod("q", slice("x", 10, 0))))) // a node that is not there
	owners := func() []gpu.TenantID {
		p, _ := l.Hold("p")
		q, _ := l.Hold("q")
		return []gpu.TenantID{p.Tenant, node(t, l.Snapshot(), "n1").Cards[0].Holders[0].Tenant, q.Tenant}
	}
	if diff := cmp.Diff([]gpu.TenantID{"blue", "blue", "blue"}, owners()); diff != "" {
		t.Errorf("whose holds are (-want +got):\n%s", diff)
	}
	before := l.Snapshot()
	l.Govern(written{owner: map[string]gpu.TenantID{"ns": "green"}})
	if diff := cmp.Diff([]gpu.TenantID{"green", "green", "green"}, owners()); diff != "" {
		t.Errorf("whose holds are under other rules (-want +got):\n%s", diff)
	}
	l.Confirm(forged)
	if diff := cmp.Diff([]gpu.TenantID{"green", "green", "green"}, owners()); diff != "" {
		t.Errorf("whose holds are once more confirmed (-want +got):\n%s", diff)
	}
	if got := node(t, before, "n1").Holds[0].Tenant; got != "blue" {
		t.Errorf("the snapshot from before has it for %q", got)
	}
}

// Other rules charge what is held to other accounts.
func TestGovernMovesWhatIsCharged(t *testing.T) {
	l := governed(t, blue(), in("b1", pod("o", slice("a", 10, 0))), in("b2", pod("p", slice("b", 10, 0))), in("red", pod("q", whole("c"))))
	before := l.Snapshot()
	then := map[gpu.Account]int64{"tenant/blue": 2, "namespace/b1": 1}
	if diff := cmp.Diff(then, devices(before)); diff != "" {
		t.Fatalf("devices spent (-want +got):\n%s", diff)
	}
	steps := []struct {
		what  string
		rules written
		want  map[gpu.Account]int64
	}{
		{"b1 leaves the tenant", written{owner: map[string]gpu.TenantID{"b2": "blue"}, tracked: accounts()}, map[gpu.Account]int64{
			"tenant/blue": 1, "namespace/b1": 1, "namespace/b2": 1, "tenant/red": 1, "namespace/red": 1,
		}},
		{"nobody wants to know", written{}, map[gpu.Account]int64{}},
		{"as it was", blue(), then},
	}
	for _, step := range steps {
		l.Govern(step.rules)
		if diff := cmp.Diff(step.want, devices(l.Snapshot())); diff != "" {
			t.Errorf("%s: devices spent (-want +got):\n%s", step.what, diff)
		}
	}
	l.Govern(written{})
	for _, id := range []gpu.PodID{"o", "p", "q"} {
		l.Release(id)
	}
	l.Govern(blue())
	if diff := cmp.Diff(map[gpu.Account]int64{}, devices(l.Snapshot())); diff != "" {
		t.Errorf("after all have gone: devices spent (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(then, devices(before)); diff != "" {
		t.Errorf("the snapshot from before has changed (-then +now):\n%s", diff)
	}
}

// Verdicts are remembered by Version: a node has another one when it is judged by
// another boundary, or when its pods are somebody else's; and not for anything else.
func TestGovernMakesNodesOthers(t *testing.T) {
	before := written{pairs: []string{"u v"}, limits: map[gpu.Account][]gpu.Limit{"tenant/u": {cardsOf("Tenant u", 8)}}}
	tests := map[string]struct {
		change func(*written)
		want   []gpu.NodeID
	}{
		"nothing changes":                    {change: func(*written) {}},
		"a limit is raised":                  {change: func(w *written) { w.limits = map[gpu.Account][]gpu.Limit{"tenant/u": {cardsOf("Tenant u", 9)}} }},
		"a limit is new":                     {change: func(w *written) { w.limits = map[gpu.Account][]gpu.Limit{"tenant/v": {cardsOf("Tenant v", 9)}} }},
		"a namespace is closed":              {change: func(w *written) { w.closed = map[string]gpu.Reason{"u": gpu.TenantInactive} }},
		"a namespace that has nothing moves": {change: func(w *written) { w.owner = map[string]gpu.TenantID{"x": "v"} }},
		"one with pods on a node moves":      {change: func(w *written) { w.owner = map[string]gpu.TenantID{"v": "w"} }, want: []gpu.NodeID{"n2"}},
		"one with pods on both moves":        {change: func(w *written) { w.owner = map[string]gpu.TenantID{"u": "w"} }, want: []gpu.NodeID{"n1", "n2"}},
		"one whose pod has gone moves":       {change: func(w *written) { w.owner = map[string]gpu.TenantID{"gone": "w"} }},
		"a group is added":                   {change: func(w *written) { w.pairs = []string{"u v", "v w"} }, want: []gpu.NodeID{"n1", "n2"}},
		"a group is removed":                 {change: func(w *written) { w.pairs = nil }, want: []gpu.NodeID{"n1", "n2"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := governed(t, before, in("u", pod("o", slice("a", 1, 0))), in("u", on("n2", pod("p", slice("e", 1, 0)))), in("v", on("n2", pod("q", slice("e", 1, 0)))),
				in("gone", pod("r", slice("c", 1, 0))))
			l.Release("r")
			old, after := l.Snapshot(), before
			tc.change(&after)
			l.Govern(after)
			var changed []gpu.NodeID
			for _, n := range l.Snapshot().Since(old) {
				changed = append(changed, n.ID)
				if then := node(t, old, n.ID); n.Version <= then.Version {
					t.Errorf("%s: version %d after %d", n.ID, n.Version, then.Version)
				}
			}
			if diff := cmp.Diff(tc.want, changed); diff != "" {
				t.Errorf("nodes that are others (-want +got):\n%s", diff)
			}
		})
	}
}

// marked are rules whose boundaries are all equal, and can be told apart.
type marked struct {
	apart
	mark int
}

func (m marked) Boundary() ledger.Boundary { return m }

func (marked) Equal(ledger.Boundary) bool { return true }

// A boundary that is equal to the one before does not take its place, so that what
// it was made with is not kept.
func TestGovernKeepsABoundary(t *testing.T) {
	first := marked{mark: 1}
	l := ledger.New(first)
	l.SetNode(n1())
	l.Govern(marked{mark: 2})
	l.SetNode(n2())
	for id, n := range l.Snapshot().Nodes() {
		if n.Boundary != ledger.Boundary(first) {
			t.Errorf("%s goes by another boundary than the first", id)
		}
	}
}

// Pods are listed by their namespaces as long as they hold anything, in whatever
// state.
func TestPodsIn(t *testing.T) {
	l := governed(t, written{}, in("b", pod("p", slice("a", 1, 0))), in("a", pod("q", slice("b", 1, 0))), in("b", pod("o", slice("c", 1, 0))))
	mustHave := func(want map[string][]gpu.PodID) {
		t.Helper()
		for _, namespace := range []string{"a", "b", "c", ""} {
			if got := l.PodsIn(namespace); !slices.Equal(got, want[namespace]) {
				t.Errorf("in %q are %v, want %v", namespace, got, want[namespace])
			}
		}
	}
	mustHave(map[string][]gpu.PodID{"a": {"q"}, "b": {"o", "p"}})
	l.Linger("p", start)
	l.Release("o")
	l.Govern(written{owner: map[string]gpu.TenantID{"b": "red"}})
	l.RemoveNode("n2")
	mustHave(map[string][]gpu.PodID{"a": {"q"}, "b": {"p"}})
	l.Expire(start)
	l.Confirm(in("a", pod("q", slice("b", 2, 0))))
	mustHave(map[string][]gpu.PodID{"a": {"q"}})
	l.Confirm(in("c", pod("q", slice("b", 2, 0)))) // as nobody does
	mustHave(map[string][]gpu.PodID{"c": {"q"}})
	l.Release("q")
	mustHave(nil)
}
