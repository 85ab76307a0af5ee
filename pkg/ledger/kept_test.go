package ledger_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

var dawn = start.Add(8 * time.Hour) // when a service takes back what is kept for it; read only

// chat is a service that keeps what these placements of its members were.
func chat(members ...gpu.Placement) ledger.Service {
	s := ledger.Service{Group: "chat", Name: "t/chat", From: dawn}
	for _, p := range members {
		s.Kept = append(s.Kept, ofChat(p))
	}
	return s
}

func ofChat(p gpu.Placement) gpu.Placement {
	p.Group = "chat"
	return p
}

// seen says what is claimed of each card of n1 as somebody meets it who is of that group
// and stays until then.
func seen(t *testing.T, s ledger.Snapshot, g gpu.GroupID, until time.Time) books {
	t.Helper()
	all := books{}
	n := node(t, s, "n1").For(g, until)
	for i := range n.Cards {
		if text := describe(&n.Cards[i]); text != "" {
			all[n.Cards[i].ID] = text
		}
	}
	return all
}

// TestKept: whom something is kept from, and how much of it.
func TestKept(t *testing.T) {
	forever := time.Time{}
	tests := map[string]struct {
		services []ledger.Service
		there    []gpu.Placement
		group    gpu.GroupID
		until    time.Time
		want     books
	}{
		"from who stays for ever":          {services: []ledger.Service{chat(pod("m", whole("a")))}, want: books{"a": "kept:chat 100 claimed"}},
		"from who stays past it":           {services: []ledger.Service{chat(pod("m", whole("a")))}, until: dawn.Add(1), want: books{"a": "kept:chat 100 claimed"}},
		"not from who ends just then":      {services: []ledger.Service{chat(pod("m", whole("a")))}, until: dawn, want: books{}},
		"not from a member":                {services: []ledger.Service{chat(pod("m", whole("a")))}, group: "chat", want: books{}},
		"from a member of another":         {services: []ledger.Service{chat(pod("m", whole("a")))}, group: "batch", want: books{"a": "kept:chat 100 claimed"}},
		"not of other nodes":               {services: []ledger.Service{chat(on("n2", pod("m", whole("e"))))}, want: books{}},
		"slices of several members add up": {services: []ledger.Service{chat(pod("m", slice("a", 20, 5)), pod("n", slice("a", 30, 5)))}, want: books{"a": "kept:chat 50 claimed"}},
		"what a member has still is not kept besides": {
			services: []ledger.Service{chat(pod("m", whole("a")), pod("n", whole("b")))},
			there:    []gpu.Placement{ofChat(pod("m", whole("a")))},
			want:     books{"a": "m 100/100/1!", "b": "kept:chat 100 claimed"},
		},
		"a new member takes the place of an old one": {
			services: []ledger.Service{chat(pod("m", slice("a", 50, 0)))},
			there:    []gpu.Placement{ofChat(pod("new", slice("a", 50, 0)))},
			want:     books{"a": "new 50/0/1"},
		},
		"a smaller one leaves the rest": {
			services: []ledger.Service{chat(pod("m", slice("a", 50, 0)))},
			there:    []gpu.Placement{ofChat(pod("new", slice("a", 20, 0)))},
			want:     books{"a": "new 20/0/1; kept:chat 30 claimed"},
		},
		"one on another card leaves all of it": {
			services: []ledger.Service{chat(pod("m", slice("a", 50, 0)))},
			there:    []gpu.Placement{ofChat(pod("new", slice("b", 50, 0)))},
			want:     books{"a": "kept:chat 50 claimed", "b": "new 50/0/1"},
		},
		"who borrows it has it beside the promise": {
			services: []ledger.Service{chat(pod("m", slice("a", 50, 0)))},
			there:    []gpu.Placement{pod("short", slice("a", 60, 0))},
			want:     books{"a": "short 60/0/1; kept:chat 50 claimed"},
		},
		"of two services one": {
			services: []ledger.Service{chat(pod("m", whole("a"))), {Group: "late", Name: "t/late", From: dawn.Add(time.Hour), Kept: []gpu.Placement{pod("l", whole("b"))}}},
			until:    dawn.Add(time.Minute),
			want:     books{"a": "kept:chat 100 claimed"},
		},
		"of two services both": {
			services: []ledger.Service{chat(pod("m", slice("a", 50, 0))), {Group: "late", Name: "t/late", From: dawn.Add(time.Hour), Kept: []gpu.Placement{pod("l", slice("a", 10, 0))}}},
			until:    forever,
			want:     books{"a": "kept:chat 50, kept:late 10 claimed"},
		},
		"a service that keeps nothing": {services: []ledger.Service{{Group: "chat"}}, want: books{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := world(t, tc.there...)
			before := l.Snapshot()
			for _, s := range tc.services {
				l.SetService(s)
			}
			if diff := cmp.Diff(tc.want, seen(t, l.Snapshot(), tc.group, tc.until)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(held(before), held(l.Snapshot())); diff != "" {
				t.Errorf("a promise counts as a hold (-before +after):\n%s", diff)
			}
			for _, s := range tc.services {
				l.DropService(s.Group)
			}
			if n := node(t, l.Snapshot(), "n1"); n.For("", forever) != n || l.Snapshot().Keeps() {
				t.Error("something is kept for a service that is none any more")
			}
		})
	}
}

// TestKeptSurvives: what is kept of a node is kept whatever becomes of it.
func TestKeptSurvives(t *testing.T) {
	l := ledger.New(apart{})
	l.SetService(chat(pod("m", whole("a")))) // the node is not known yet
	want := books{"a": "kept:chat 100 claimed"}
	look := func(when string, s ledger.Snapshot, want books) {
		t.Helper()
		if diff := cmp.Diff(want, seen(t, s, "", time.Time{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	l.SetNode(n1())
	look("when the node appears", l.Snapshot(), want)
	changed := n1()
	changed.Unavailable = true
	l.SetNode(changed)
	look("when the node changes", l.Snapshot(), want)
	l.RemoveNode("n1")
	l.SetNode(n1())
	look("when the node is back", l.Snapshot(), want)
	l.SetReadings("n1", ledger.Readings{CPU: gpu.Measured(50)})
	look("when it is measured", l.Snapshot(), want)
	l.Fence(map[gpu.NodeID][]gpu.CardID{"n1": {"b"}})
	l.Fence(nil)
	look("after a fence", l.Snapshot(), want)

	want["b"] = "p 10/0/1"
	plan, err := l.Snapshot().With(pod("p", slice("b", 10, 0)))
	if err != nil {
		t.Fatal(err)
	}
	look("in a plan", plan, want)
	if n := node(t, plan, "n1"); n.For("", time.Time{}).Version != 0 {
		t.Error("what a plan makes of a node has a version")
	}
	l.Confirm(pod("p", slice("b", 10, 0)))
	look("when a pod comes", l.Snapshot(), want)
	delete(want, "b")
	look("in a plan without it", l.Snapshot().Without("n1", "p"), want)
	l.Release("p")
	look("when it has gone", l.Snapshot(), want)
	if err := l.Reserve(pod("q", whole("a"))); err != nil {
		t.Errorf("a promise is in the way of Reserve: %v", err)
	}
}

// TestKeptIsATenants: of the one to whom the namespace belongs, by the rules in force.
func TestKeptIsATenants(t *testing.T) {
	l := world(t)
	s := chat(of("u", pod("m", slice("a", 10, 0))))
	s.Kept[0].Tenant = "forged"
	l.SetService(s)
	owner := func() gpu.TenantID {
		n := node(t, l.Snapshot(), "n1").For("", time.Time{})
		return n.Cards[0].Claims[0].Tenant
	}
	if got := owner(); got != "u" {
		t.Errorf("it is kept for %q, want u", got)
	}
	l.Govern(moved{apart{}})
	if got := owner(); got != "moved" {
		t.Errorf("under other rules it is kept for %q, want moved", got)
	}
}

// moved says that all namespaces are one tenant's.
type moved struct{ apart }

func (m moved) Boundary() ledger.Boundary             { return m }
func (moved) Owner(string) (gpu.TenantID, gpu.Reason) { return "moved", "" }

// TestServicesWakeWhomTheyConcern: a node is another where what is kept of it is, and
// only there: whoever waits for room looks at it again.
func TestServicesWakeWhomTheyConcern(t *testing.T) {
	base := chat(pod("m", whole("a")))
	tests := map[string]struct {
		change  func(*ledger.Service)
		changed []gpu.NodeID
	}{
		"told again":           {func(*ledger.Service) {}, nil},
		"another closing":      {func(s *ledger.Service) { s.Closing = &ledger.Closing{At: start, Stay: 1} }, nil},
		"the same once more":   {func(s *ledger.Service) { s.Kept = append([]gpu.Placement(nil), s.Kept...) }, nil},
		"another card":         {func(s *ledger.Service) { s.Kept = chat(pod("m", whole("b"))).Kept }, []gpu.NodeID{"n1"}},
		"another time":         {func(s *ledger.Service) { s.From = dawn.Add(1) }, []gpu.NodeID{"n1"}},
		"nothing any more":     {func(s *ledger.Service) { s.Kept = nil }, []gpu.NodeID{"n1"}},
		"one more node":        {func(s *ledger.Service) { s.Kept = append(s.Kept[:1:1], ofChat(on("n2", pod("o", whole("e"))))) }, []gpu.NodeID{"n2"}},
		"another node instead": {func(s *ledger.Service) { s.Kept = chat(on("n2", pod("m", whole("e")))).Kept }, []gpu.NodeID{"n1", "n2"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := world(t)
			l.SetService(base)
			before := l.Snapshot()
			next := base
			tc.change(&next)
			l.SetService(next)
			var changed []gpu.NodeID
			for _, n := range l.Snapshot().Since(before) {
				old, _ := before.Node(n.ID)
				if old.Version == n.Version || old.For("", time.Time{}).Version == n.For("", time.Time{}).Version {
					t.Errorf("%s has changed under one version", n.ID)
				}
				changed = append(changed, n.ID)
			}
			if diff := cmp.Diff(tc.changed, changed); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestServicesAreInOrder: of whatever order they are told.
func TestServicesAreInOrder(t *testing.T) {
	l := ledger.New(apart{})
	for _, g := range []gpu.GroupID{"c", "a", "b"} {
		l.SetService(ledger.Service{Group: g})
	}
	before := l.Snapshot()
	l.DropService("b")
	l.DropService("b")
	l.DropService("unknown")
	groups := func(s ledger.Snapshot) (all []gpu.GroupID) {
		for _, x := range s.Services() {
			all = append(all, x.Group)
		}
		return all
	}
	if diff := cmp.Diff([]gpu.GroupID{"a", "b", "c"}, groups(before)); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]gpu.GroupID{"a", "c"}, groups(l.Snapshot())); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
	if _, known := l.Snapshot().Service(""); known {
		t.Error("no group is a service")
	}
}

// TestViewsShareNothing: what one of them claims of a card beside claims that are there,
// neither the books nor another sees.
func TestViewsShareNothing(t *testing.T) {
	l := world(t)
	for _, id := range []gpu.PodID{"p", "q", "r"} { // a list of three has room for a fourth
		if err := l.Claim(pod(id, slice("a", 1, 0)), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []ledger.Service{
		{Group: "chat", Name: "t/chat", From: dawn, Kept: []gpu.Placement{pod("m", slice("a", 10, 0))}},
		{Group: "code", Name: "t/code", From: dawn, Kept: []gpu.Placement{pod("n", slice("a", 20, 0))}},
	} {
		l.SetService(s)
	}
	look := func() []books {
		return []books{held(l.Snapshot()), seen(t, l.Snapshot(), "chat", time.Time{}), seen(t, l.Snapshot(), "code", time.Time{})}
	}
	n := node(t, l.Snapshot(), "n1")
	chat := n.For("code", time.Time{})
	want := []books{{"a": "p 1, q 1, r 1 claimed"}, {"a": "kept:code 20, p 1, q 1, r 1 claimed"}, {"a": "kept:chat 10, p 1, q 1, r 1 claimed"}}
	if diff := cmp.Diff(want, look()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := describe(&chat.Cards[0]); got != "kept:chat 10, p 1, q 1, r 1 claimed" {
		t.Errorf("one view sees what another does: %s", got)
	}
}

// Services whose windows open in a year keep what others have meanwhile, so one that has a
// slice for a minute after another lets thousands of them keep it. Each change of the node
// costs what they are, and not their square: it is made with the books locked.
func TestThousandsKeepOneCard(t *testing.T) {
	cost := func(services int) uint64 {
		l := world(t)
		for i := range services {
			g := gpu.GroupID(fmt.Sprintf("chat-%d", i))
			m := pod(gpu.PodID(fmt.Sprintf("m%d", i)), slice("a", 1, 0))
			m.Group = g
			l.SetService(ledger.Service{Group: g, Name: string(g), From: dawn, Kept: []gpu.Placement{m}})
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range 3 {
			if err := l.Reserve(pod(gpu.PodID(fmt.Sprintf("p%d", i)), slice("a", 1, 0))); err != nil {
				t.Fatal(err)
			}
			node(t, l.Snapshot(), "n1").For("chat-1", time.Time{})
		}
		runtime.ReadMemStats(&after)
		if n := node(t, l.Snapshot(), "n1").For("", time.Time{}); len(n.Cards[0].Claims) != services || n.Claims != services {
			t.Fatalf("%d claims of %d services, %d of them on the card", n.Claims, services, len(n.Cards[0].Claims))
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := cost(50), cost(500)
	if many > 20*few { // measured 8.4 times, and 86 while each was entered by itself
		t.Errorf("500 services that keep a card cost %d bytes, 50 cost %d", many, few)
	}
}
