package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// written are rules as a table. It is never edited once the ledger has it.
type written struct {
	owner  map[string]gpu.TenantID // namespace -> tenant; others are their own
	closed map[string]gpu.Reason   // namespace -> why nothing new may come from it
	pairs  []string                // "u v": these two may share; not transitive
	limits map[gpu.Account][]gpu.Limit
	// tracked are accounts without limits.
	tracked []gpu.Account
}

func (w written) Owner(namespace string) (gpu.TenantID, gpu.Reason) {
	if t, ok := w.owner[namespace]; ok {
		return t, w.closed[namespace]
	}
	return gpu.TenantID(namespace), w.closed[namespace]
}

func (w written) Boundary() ledger.Boundary { return w }

func (w written) Equal(o ledger.Boundary) bool { return slices.Equal(w.pairs, o.(written).pairs) }

func (w written) Dedicated(label string) gpu.TenantID { return gpu.TenantID(label) }

func (w written) MayShare(a, b gpu.TenantID) bool {
	if a == b {
		return a != ""
	}
	for _, p := range w.pairs {
		if x, y, _ := strings.Cut(p, " "); string(a) == x && string(b) == y || string(a) == y && string(b) == x {
			return true
		}
	}
	return false
}

func (w written) Accounts(namespace string) (accounts []gpu.Account) {
	tenant, _ := w.Owner(namespace)
	for _, a := range []gpu.Account{gpu.NamespaceAccount(namespace), gpu.TenantAccount(string(tenant))} {
		if _, limited := w.limits[a]; limited || slices.Contains(w.tracked, a) {
			accounts = append(accounts, a)
		}
	}
	return accounts
}

func (w written) Limits(a gpu.Account) []gpu.Limit { return w.limits[a] }

func cardsOf(quota string, most int64) gpu.Limit {
	return gpu.Limit{Quota: quota, Name: "cards", Measure: gpu.Devices, Most: most}
}

func memoryOf(quota string, most int64) gpu.Limit {
	return gpu.Limit{Quota: quota, Name: "memoryMiB", Measure: gpu.Memory, Most: most}
}

// in is the pod in a namespace.
func in(namespace string, p gpu.Placement) gpu.Placement { p.Namespace = namespace; return p }

func governed(t *testing.T, r ledger.Rules, reserved ...gpu.Placement) *ledger.Ledger {
	t.Helper()
	l := ledger.New(r)
	l.SetNode(n1())
	l.SetNode(n2())
	for _, p := range reserved {
		if err := l.Reserve(p); err != nil {
			t.Fatalf("before: %v", err)
		}
	}
	return l
}

// blue has the namespaces b1 and b2, and a quota of 3 devices and 100 MiB; b1 has
// one of 2 devices by itself.
func blue() written {
	return written{
		owner: map[string]gpu.TenantID{"b1": "blue", "b2": "blue"},
		limits: map[gpu.Account][]gpu.Limit{
			"tenant/blue":  {cardsOf("Tenant blue", 3), memoryOf("Tenant blue", 100)},
			"namespace/b1": {cardsOf("ResourceQuota b1/gpus", 2)},
		},
	}
}

func TestReserveKeepsToQuotas(t *testing.T) {
	type pods = []gpu.Placement
	tests := map[string]struct {
		before   pods
		place    gpu.Placement
		wantErr  error
		wantText string
		spent    map[gpu.Account]int64 // devices
	}{
		"to the limit of the namespace": {
			before: pods{in("b1", pod("o", slice("a", 10, 0)))}, place: in("b1", pod("p", slice("a", 10, 0))),
			spent: map[gpu.Account]int64{"tenant/blue": 2, "namespace/b1": 2},
		},
		"one over that of the namespace": {
			before: pods{in("b1", pod("o", slice("a", 10, 0), slice("b", 10, 0)))}, place: in("b1", pod("p", slice("a", 10, 0))),
			wantErr: ledger.ErrQuota, wantText: "cards of ResourceQuota b1/gpus: 2 of 2 used, 1 asked",
			spent: map[gpu.Account]int64{"tenant/blue": 2, "namespace/b1": 2},
		},
		"one over that of the tenant, from its other namespace": {
			before:  pods{in("b1", pod("o", slice("a", 10, 0), slice("b", 10, 0))), in("b2", pod("q", slice("a", 10, 0)))},
			place:   in("b2", pod("p", slice("c", 10, 0))),
			wantErr: ledger.ErrQuota, wantText: "cards of Tenant blue: 3 of 3 used, 1 asked",
			spent: map[gpu.Account]int64{"tenant/blue": 3, "namespace/b1": 2},
		},
		"a whole card counts with all its memory": {
			before: pods{in("b2", pod("o", slice("b", 1, 0)))}, place: in("b2", pod("p", whole("a"))),
			wantErr: ledger.ErrQuota, wantText: "memoryMiB of Tenant blue: 1 of 100 used, 100 asked",
			spent: map[gpu.Account]int64{"tenant/blue": 1},
		},
		"somebody else's namespace": {
			before: pods{in("b1", pod("o", slice("a", 10, 0), slice("b", 10, 0)))}, place: in("red", pod("p", whole("c"))),
			spent: map[gpu.Account]int64{"tenant/blue": 2, "namespace/b1": 2},
		},
		"the tenant that the placement names does not matter": {
			before:  pods{in("b1", pod("o", slice("a", 10, 0), slice("b", 10, 0)))},
			place:   gpu.Placement{Pod: "p", Namespace: "b1", Node: "n1", Tenant: "red", Grants: pod("p", slice("a", 10, 0)).Grants},
			wantErr: ledger.ErrQuota, wantText: "cards of ResourceQuota b1/gpus: 2 of 2 used, 1 asked",
			spent: map[gpu.Account]int64{"tenant/blue": 2, "namespace/b1": 2},
		},
		"a retried bind at the limit": {
			before: pods{in("b1", pod("o", slice("a", 10, 0), slice("b", 10, 0)))}, place: in("b1", pod("o", slice("a", 10, 0), slice("b", 10, 0))),
			spent: map[gpu.Account]int64{"tenant/blue": 2, "namespace/b1": 2},
		},
		"no card at the limit": {
			before: pods{in("b1", pod("o", slice("a", 10, 0), slice("b", 10, 0)))}, place: in("b1", pod("p")),
			spent: map[gpu.Account]int64{"tenant/blue": 2, "namespace/b1": 2},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := governed(t, blue(), tc.before...)
			before := l.Snapshot()
			frozen := freeze(before)
			_, planned := before.With(tc.place)
			err := l.Reserve(tc.place)
			if !errors.Is(err, tc.wantErr) || tc.wantText != "" && !strings.Contains(err.Error(), tc.wantText) {
				t.Errorf("Reserve = %v, want %v (%s)", err, tc.wantErr, tc.wantText)
			}
			if !errors.Is(planned, tc.wantErr) || (planned == nil) != (err == nil) {
				t.Errorf("With = %v, want %v", planned, tc.wantErr)
			}
			if x, over := before.Purse(tc.place.Namespace).Check(tc.place.Spending()); tc.wantErr != nil && (!over || !strings.Contains(err.Error(), x.String())) {
				t.Errorf("Purse.Check = %v, %t, Reserve = %v", x, over, err)
			}
			if diff := cmp.Diff(tc.spent, devices(l.Snapshot())); diff != "" {
				t.Errorf("devices spent (-want +got):\n%s", diff)
			}
			if freeze(before) != frozen {
				t.Error("the snapshot from before has changed")
			}
		})
	}
}

// devices are what the accounts of blue's world are charged for.
func devices(s ledger.Snapshot) map[gpu.Account]int64 {
	all := map[gpu.Account]int64{}
	for _, a := range accounts() {
		l := gpu.Limit{Measure: gpu.Devices}
		if n := l.Of(s.Spent(a)); n != 0 {
			all[a] = n
		}
	}
	return all
}

func accounts() []gpu.Account {
	return []gpu.Account{"tenant/blue", "namespace/b1", "namespace/b2", "tenant/red", "namespace/red"}
}

func TestReserveFromClosedNamespaces(t *testing.T) {
	r := blue()
	r.closed = map[string]gpu.Reason{"b1": gpu.TenantInactive}
	l := governed(t, r)
	if err := l.Reserve(in("b1", pod("p", slice("a", 1, 0)))); !errors.Is(err, ledger.ErrInactive) {
		t.Errorf("a card from a closed namespace: %v, want %v", err, ledger.ErrInactive)
	}
	if _, err := l.Snapshot().With(in("b1", pod("p", slice("a", 1, 0)))); !errors.Is(err, ledger.ErrInactive) {
		t.Errorf("planned: %v, want %v", err, ledger.ErrInactive)
	}
	// kube-scheduler binds through us whatever we are asked about.
	if err := l.Reserve(in("b1", pod("q"))); err != nil {
		t.Errorf("no card from a closed namespace: %v", err)
	}
	if _, err := l.Snapshot().With(in("b1", pod("r"))); err != nil {
		t.Errorf("planned: %v", err)
	}
	if err := l.Reserve(in("b2", pod("s", slice("a", 1, 0)))); err != nil {
		t.Errorf("the tenant's other namespace: %v", err)
	}
}

// What every move does to what is charged: each hold counts once, in full, from
// Reserve until it is gone.
func TestChargedOnceUntilGone(t *testing.T) {
	p, q := in("b1", pod("p", slice("a", 10, 0))), in("b1", pod("q", slice("b", 10, 0)))
	both, one := map[gpu.Account]int64{"tenant/blue": 2, "namespace/b1": 2}, map[gpu.Account]int64{"tenant/blue": 1, "namespace/b1": 1}
	tests := map[string]struct {
		do   func(l *ledger.Ledger)
		want map[gpu.Account]int64
	}{
		"reserved":                     {func(*ledger.Ledger) {}, both},
		"confirmed":                    {func(l *ledger.Ledger) { l.Confirm(p) }, both},
		"confirmed twice":              {func(l *ledger.Ledger) { l.Confirm(p); l.Confirm(p) }, both},
		"confirmed, and unreserved":    {func(l *ledger.Ledger) { l.Confirm(p); l.Unreserve("p") }, both},
		"unreserved":                   {func(l *ledger.Ledger) { l.Unreserve("p") }, one},
		"unreserved twice":             {func(l *ledger.Ledger) { l.Unreserve("p"); l.Unreserve("p") }, one},
		"drained":                      {func(l *ledger.Ledger) { l.Confirm(p); _ = l.Drain("p") }, both},
		"lingers":                      {func(l *ledger.Ledger) { l.Linger("p", start) }, both},
		"lingers, longer":              {func(l *ledger.Ledger) { l.Linger("p", start); l.Linger("p", start) }, both},
		"lingers, and is back":         {func(l *ledger.Ledger) { l.Linger("p", start); l.Confirm(p) }, both},
		"expired":                      {func(l *ledger.Ledger) { l.Linger("p", start); l.Expire(start) }, one},
		"released":                     {func(l *ledger.Ledger) { l.Release("p") }, one},
		"its node is gone":             {func(l *ledger.Ledger) { l.RemoveNode("n1") }, both},
		"its node is gone, it lingers": {func(l *ledger.Ledger) { l.Linger("p", start); l.RemoveNode("n1") }, one},
		"its node is gone, and it too": {func(l *ledger.Ledger) { l.RemoveNode("n1"); l.Release("p") }, one},
		"its node has started anew while it lingered": {
			func(l *ledger.Ledger) { l.Linger("p", start); f := n1(); f.BootID = "boot-9"; l.SetNode(f) }, one,
		},
		"its card is gone": {func(l *ledger.Ledger) { f := n1(); f.Cards = f.Cards[1:]; l.SetNode(f) }, both},
		"bound to another node after all": {
			func(l *ledger.Ledger) { l.Confirm(on("n2", in("b1", pod("p", slice("e", 10, 0))))) }, both,
		},
		"bound to more after all": {
			func(l *ledger.Ledger) { l.Confirm(in("b1", pod("p", slice("a", 10, 0), slice("c", 10, 0)))) },
			map[gpu.Account]int64{"tenant/blue": 3, "namespace/b1": 3},
		},
		"bound by somebody else past every limit": {
			func(l *ledger.Ledger) { l.Confirm(in("b1", foreign("x", gpu.Foreign{Vendor: gpu.Nvidia, Cards: 5}))) },
			map[gpu.Account]int64{"tenant/blue": 7, "namespace/b1": 7},
		},
		"everybody gone": {func(l *ledger.Ledger) { l.Release("p"); l.Release("q") }, map[gpu.Account]int64{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := governed(t, blue(), p, q)
			l.Snapshot() // so that the sums are shared
			tc.do(l)
			if diff := cmp.Diff(tc.want, devices(l.Snapshot())); diff != "" {
				t.Errorf("devices spent (-want +got):\n%s", diff)
			}
		})
	}
}

// Past its limit an account takes nothing more, and what ends makes room again.
func TestForcedPastTheLimit(t *testing.T) {
	l := governed(t, blue())
	for _, id := range []gpu.PodID{"x", "y", "z", "zz"} {
		l.Confirm(in("b2", pod(id, slice("a", 10, 0))))
	}
	for _, free := range []gpu.PodID{"x", "y"} {
		if err := l.Reserve(in("b2", pod("p", slice("b", 1, 0)))); !errors.Is(err, ledger.ErrQuota) {
			t.Fatalf("at or past the limit: %v, want %v", err, ledger.ErrQuota)
		}
		l.Release(free)
	}
	if err := l.Reserve(in("b2", pod("p", slice("b", 1, 0)))); err != nil {
		t.Errorf("below the limit again: %v", err)
	}
}

func TestPlansSpendAlike(t *testing.T) {
	l := governed(t, blue(), in("b1", pod("o", slice("a", 10, 0))))
	s := l.Snapshot()
	first, err := s.With(in("b1", pod("p", slice("b", 10, 0))))
	if err != nil {
		t.Fatal(err)
	}
	second, err := first.With(in("b2", pod("q", slice("b", 10, 0))))
	if err != nil {
		t.Fatal(err)
	}
	other, err := first.With(on("n2", in("b2", pod("r", slice("e", 10, 0)))))
	if err != nil {
		t.Fatal(err)
	}
	third := second.Without("n1", "o", "p")
	for name, tc := range map[string]struct {
		s    ledger.Snapshot
		want map[gpu.Account]int64
	}{
		"books":                {s, map[gpu.Account]int64{"tenant/blue": 1, "namespace/b1": 1}},
		"a plan":               {first, map[gpu.Account]int64{"tenant/blue": 2, "namespace/b1": 2}},
		"a plan on it":         {second, map[gpu.Account]int64{"tenant/blue": 3, "namespace/b1": 2}},
		"another plan on it":   {other, map[gpu.Account]int64{"tenant/blue": 3, "namespace/b1": 2}},
		"without two of them":  {third, map[gpu.Account]int64{"tenant/blue": 1}},
		"without somebody new": {third.Without("n1", "o"), map[gpu.Account]int64{"tenant/blue": 1}},
	} {
		if diff := cmp.Diff(tc.want, devices(tc.s)); diff != "" {
			t.Errorf("%s: devices spent (-want +got):\n%s", name, diff)
		}
	}
	if _, err := second.With(in("b2", pod("t", slice("c", 1, 0)))); !errors.Is(err, ledger.ErrQuota) {
		t.Errorf("past the limit of a plan: %v, want %v", err, ledger.ErrQuota)
	}
	if _, err := third.With(in("b2", pod("t", slice("c", 1, 0)))); err != nil {
		t.Errorf("where two would have ended: %v", err)
	}
}

func TestPurse(t *testing.T) {
	l := governed(t, blue(), in("b1", pod("o", slice("a", 10, 0))))
	s := l.Snapshot()
	if !s.Purse("b1").Limited() || s.Purse("red").Limited() {
		t.Error("b1 has limits, red has none")
	}
	if x, over := s.Purse("red").Check(gpu.Spending{{Devices: 1 << 40}}); over {
		t.Errorf("without limits: %v", x)
	}
	if (ledger.Snapshot{}).Purse("b1").Limited() {
		t.Error("the zero Snapshot has limits")
	}
	if _, why := (ledger.Snapshot{}).Owner("b1"); why != gpu.TenantInactive {
		t.Errorf("from the zero Snapshot anything may come: %q", why)
	}
	before := s.Purse("b2")
	if !before.Equal(l.Snapshot().Purse("b2")) {
		t.Error("the same purse is not equal")
	}
	if err := l.Reserve(in("red", pod("p", slice("b", 10, 0)))); err != nil {
		t.Fatal(err)
	}
	if !before.Equal(l.Snapshot().Purse("b2")) {
		t.Error("what others spend has changed the purse")
	}
	if err := l.Reserve(in("b1", pod("q", slice("a", 10, 0)))); err != nil {
		t.Fatal(err)
	}
	if before.Equal(l.Snapshot().Purse("b2")) {
		t.Error("the tenant's other namespace has spent, and the purse is equal")
	}
	l.Release("q")
	if !before.Equal(l.Snapshot().Purse("b2")) {
		t.Error("what has been given back is not in the purse")
	}
	more := blue()
	more.limits["tenant/blue"] = []gpu.Limit{cardsOf("Tenant blue", 4), memoryOf("Tenant blue", 100)}
	l.Govern(more)
	if before.Equal(l.Snapshot().Purse("b2")) {
		t.Error("a limit has been raised, and the purse is equal")
	}
}
