package ledger_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// The small world of the named tests: n1 has the cards a, b, c of one vendor and
// d of another; n2 has e. A card has 100 MiB, of which slices may take 90.

// byName are rules by which every namespace is a tenant of its name, without
// quotas.
type byName struct{}

func (byName) Owner(namespace string) (gpu.TenantID, gpu.Reason) { return gpu.TenantID(namespace), "" }
func (byName) Equal(ledger.Boundary) bool                        { return false } // as far as they know
func (byName) Dedicated(label string) gpu.TenantID               { return gpu.TenantID(label) }
func (byName) Accounts(string) []gpu.Account                     { return nil }
func (byName) Limits(gpu.Account) []gpu.Limit                    { return nil }

// apart is a boundary that lets nobody sit beside anybody else's pods.
type apart struct{ byName }

func (a apart) Boundary() ledger.Boundary { return a }

func (apart) MayShare(a, b gpu.TenantID) bool { return a == b && a != "" }

// chain is a boundary that is not transitive: u may sit beside v, and v beside w,
// but not u beside w. One that looks at some holders only gets it wrong.
type chain struct{ byName }

func (c chain) Boundary() ledger.Boundary { return c }

func (chain) MayShare(a, b gpu.TenantID) bool {
	switch a + b {
	case "uu", "vv", "ww", "uv", "vu", "vw", "wv":
		return true
	}
	return false
}

var start = time.Unix(1_000_000, 0).UTC() // read only

func card(id gpu.CardID, index int, vendor gpu.Vendor) gpu.Card {
	return gpu.Card{
		ID: id, Index: index, Vendor: vendor, Model: "A100", Memory: 100, Usable: 90, Cores: 100, UsableCores: 100,
		MaxSlices: 3, NUMA: gpu.NoNUMA, Healthy: true, Mode: gpu.ModeSlice, Isolation: gpu.IsolationSoft,
	}
}

func n1() ledger.Facts {
	return ledger.Facts{ID: "n1", CPU: 8000, Memory: 1 << 30, BootID: "boot-1", Cards: []gpu.Card{
		card("a", 0, gpu.Nvidia), card("b", 1, gpu.Nvidia), card("c", 2, gpu.Nvidia), card("d", 3, gpu.Ascend),
	}}
}

func n2() ledger.Facts {
	return ledger.Facts{ID: "n2", CPU: 8000, Memory: 1 << 30, BootID: "boot-2", Cards: []gpu.Card{card("e", 0, gpu.Nvidia)}}
}

func world(t *testing.T, reserved ...gpu.Placement) *ledger.Ledger {
	t.Helper()
	l := ledger.New(apart{})
	l.SetNode(n1())
	l.SetNode(n2())
	for _, p := range reserved {
		if err := l.Reserve(p); err != nil {
			t.Fatalf("before: %v", err)
		}
	}
	return l
}

func slice(id gpu.CardID, mib gpu.MiB, cores gpu.Cores) gpu.Share {
	return gpu.Share{Card: id, Memory: mib, Cores: cores}
}

func whole(id gpu.CardID) gpu.Share {
	return gpu.Share{Card: id, Memory: 100, Cores: 100, Exclusive: true}
}

// pod is a placement on n1 of one container of tenant t.
func pod(id gpu.PodID, shares ...gpu.Share) gpu.Placement {
	p := gpu.Placement{Pod: id, Namespace: "t", Name: string(id), Node: "n1", Tenant: "t", CPU: 100, Memory: 1000}
	if len(shares) > 0 {
		p.Grants = []gpu.Grant{{Container: "main", Shares: shares}}
	}
	return p
}

func on(node gpu.NodeID, p gpu.Placement) gpu.Placement { p.Node = node; return p }

func of(tenant gpu.TenantID, p gpu.Placement) gpu.Placement {
	p.Namespace, p.Tenant = string(tenant), tenant
	return p
}

func foreign(id gpu.PodID, claims ...gpu.Foreign) gpu.Placement {
	p := pod(id)
	p.Foreign = claims
	return p
}

// books says who is on which card, see held.
type books = map[gpu.CardID]string

// held says who is on which card: "pod MiB/cores/slots", "!" when exclusive,
// "closed" when it is. Cards with nothing to say are left out.
func held(s ledger.Snapshot) books {
	all := books{}
	for _, n := range s.Nodes() {
		for i := range n.Cards {
			if text := describe(&n.Cards[i]); text != "" {
				all[n.Cards[i].ID] = text
			}
		}
	}
	return all
}

func describe(c *ledger.Card) string {
	var parts []string
	for _, h := range c.Holders {
		exclusive := map[bool]string{true: "!"}[h.Use.Exclusive]
		parts = append(parts, fmt.Sprintf("%s %d/%d/%d%s", h.Pod, h.Use.Memory, h.Use.Cores, h.Use.Slots, exclusive))
	}
	if c.Closed {
		parts = append(parts, "closed")
	}
	var claimed []string
	for _, h := range c.Claims {
		claimed = append(claimed, fmt.Sprintf("%s %d", h.Pod, h.Use.Memory))
	}
	text := strings.Join(parts, ", ")
	if len(claimed) == 0 {
		return text
	}
	return strings.TrimPrefix(text+"; "+strings.Join(claimed, ", ")+" claimed", "; ")
}

// freeze writes a snapshot out in full, so that a later look shows any change to
// what it points to.
func freeze(s ledger.Snapshot) string {
	var all strings.Builder
	out := json.NewEncoder(&all) // one line each, so that a difference is seen where it is
	for _, account := range append(accounts(), anyAccounts()...) {
		if err := out.Encode(s.Spent(account)); err != nil {
			panic(err)
		}
	}
	for _, g := range groups() {
		if err := out.Encode(s.Members(g)); err != nil {
			panic(err)
		}
	}
	for _, pod := range podIDs() {
		if node, ok := s.Claim(pod); ok {
			fmt.Fprintln(&all, pod, "claims on", node)
		}
	}
	for id, n := range s.Nodes() {
		for _, k := range n.Kept() {
			if err := out.Encode(k); err != nil {
				panic(err)
			}
		}
		if n.Keeps() {
			if err := out.Encode(n.For("", time.Time{}).Cards); err != nil {
				panic(err)
			}
		}
		for _, part := range []any{id, n.Facts, n.Cards, n.Holds, n.Readings, n.UsedCPU, n.UsedMemory, n.Claims} {
			if err := out.Encode(part); err != nil {
				panic(err)
			}
		}
	}
	return all.String()
}

func node(t *testing.T, s ledger.Snapshot, id gpu.NodeID) *ledger.Node {
	t.Helper()
	n, ok := s.Node(id)
	if !ok {
		t.Fatalf("node %s is not in the snapshot", id)
	}
	return n
}

func state(l *ledger.Ledger, pod gpu.PodID) string {
	h, ok := l.Hold(pod)
	if !ok {
		return "none"
	}
	return h.State.String()
}

func cardIDs(cards []ledger.Card) []gpu.CardID {
	ids := []gpu.CardID{}
	for i := range cards {
		ids = append(ids, cards[i].ID)
	}
	return slices.Clip(ids)
}
