package tenant

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// What is found of a tenant, and told of it.
func TestFind(t *testing.T) {
	both := []*v1alpha1.Tenant{object("blue", owns("b"), shares("g")), object("red", owns("r"), shares("g"))}
	apart := []*v1alpha1.Tenant{object("blue", owns("b")), object("red", owns("r"))}
	type says struct{ resolved, separated, within string }
	fine := says{"True Resolved ", "True Separated ", "True WithinLimits "}
	tests := map[string]struct {
		tenants    []*v1alpha1.Tenant
		namespaces []string
		pods       func(*ledger.Ledger)
		red        says
		count      int32
		used       v1alpha1.TenantUsed
		told       []string
	}{
		"nothing held": {tenants: both, namespaces: []string{"b", "r"}, red: fine, count: 1, told: []string{}},
		"two that may share": {tenants: both, namespaces: []string{"b", "r"},
			pods: func(l *ledger.Ledger) { runs(l, "b", "p", "n1", 0); runs(l, "r", "q", "n1", 0) },
			red:  fine, count: 1, used: v1alpha1.TenantUsed{Cards: 1, MemoryMiB: 100, Cores: 10}, told: []string{}},
		"two that may not": {tenants: apart, namespaces: []string{"b", "r"},
			pods: func(l *ledger.Ledger) {
				runs(l, "b", "p", "n1", 0)
				runs(l, "r", "q", "n1", 0)
				runs(l, "r", "s", "n2", 0)
			},
			red: says{fine.resolved, "False SharedAcrossBoundary GPU-n1-0 of node n1", fine.within}, count: 1,
			used: v1alpha1.TenantUsed{Cards: 2, MemoryMiB: 200, Cores: 20},
			told: []string{"Node /n1 Warning TenantBoundaryViolated: card GPU-n1-0 is held together by pods that may not share one: b/p (tenant blue), r/q (tenant red). " +
				"They keep it, and nobody else gets onto it. End all but one side, or give the tenants a sharing group in common"}},
		"a third between two that may": {tenants: append([]*v1alpha1.Tenant{object("green", owns("g"), shares("other"))}, both...), namespaces: []string{"b", "r", "g"},
			pods: func(l *ledger.Ledger) {
				for _, ns := range []string{"b", "r", "g"} {
					runs(l, ns, "p", "n2", 1)
				}
			},
			red: says{fine.resolved, "False SharedAcrossBoundary GPU-n2-1 of node n2", fine.within}, count: 1,
			used: v1alpha1.TenantUsed{Cards: 1, MemoryMiB: 100, Cores: 10},
			told: []string{"Node /n2 Warning TenantBoundaryViolated: card GPU-n2-1 is held together by pods that may not share one: " +
				"b/p (tenant blue), g/p (tenant green), r/p (tenant red). " +
				"They keep it, and nobody else gets onto it. End all but one side, or give the tenants a sharing group in common"}},
		"a stranger beside two of the tenant": {tenants: apart, namespaces: []string{"b", "r", "own"},
			pods: func(l *ledger.Ledger) {
				runs(l, "r", "p", "n1", 0)
				runs(l, "r", "q", "n1", 1)
				runs(l, "own", "p", "n1", 1)
			},
			red: says{fine.resolved, "False SharedAcrossBoundary GPU-n1-1 of node n1", fine.within}, count: 1,
			used: v1alpha1.TenantUsed{Cards: 2, MemoryMiB: 200, Cores: 20},
			told: []string{"Node /n1 Warning TenantBoundaryViolated: card GPU-n1-1 is held together by pods that may not share one: own/p (tenant namespace/own), r/q (tenant red). " +
				"They keep it, and nobody else gets onto it. End all but one side, or give the tenants a sharing group in common"}},
		"claimed twice": {tenants: []*v1alpha1.Tenant{object("blue", owns("b", "x")), object("red", owns("r", "x"))}, namespaces: []string{"b", "r", "x"},
			pods: func(l *ledger.Ledger) { runs(l, "x", "p", "n1", 0); runs(l, "x", "q", "n1", 0) },
			red:  says{"False ClaimedTwice x (also of blue)", fine.separated, fine.within}, count: 1,
			used: v1alpha1.TenantUsed{Cards: 2, MemoryMiB: 200, Cores: 20},
			told: []string{"Node /n1 Warning TenantBoundaryViolated: card GPU-n1-0 is held together by pods that may not share one: x/p (of no tenant), x/q (of no tenant). " +
				"They keep it, and nobody else gets onto it. End all but one side, or give the tenants a sharing group in common",
				"Tenant /blue Warning NamespaceClaimedTwice: claims what others claim too: x (also of red). " +
					"Pods there share cards with nobody, and count against the quotas of all, until one claim is left",
				"Tenant /red Warning NamespaceClaimedTwice: claims what others claim too: x (also of blue). " +
					"Pods there share cards with nobody, and count against the quotas of all, until one claim is left"}},
		"past a limit": {tenants: []*v1alpha1.Tenant{object("red", owns("r", "r2"), cardLimit(1))}, namespaces: []string{"r", "r2"},
			pods: func(l *ledger.Ledger) { runs(l, "r", "p", "n1", 0); runs(l, "r2", "p", "n2", 0) },
			red:  says{fine.resolved, fine.separated, "False OverLimit cards: 2 held, 1 allowed"}, count: 2,
			used: v1alpha1.TenantUsed{Cards: 2, MemoryMiB: 200, Cores: 20}, told: []string{}},
		"at its limit, of namespaces that are not there yet": {tenants: []*v1alpha1.Tenant{object("red", owns("r", "later"), cardLimit(1))}, namespaces: []string{"r"},
			pods: func(l *ledger.Ledger) { runs(l, "r", "p", "n1", 0) },
			red:  fine, count: 1, used: v1alpha1.TenantUsed{Cards: 1, MemoryMiB: 100, Cores: 10}, told: []string{}},
		"cannot be read": {tenants: []*v1alpha1.Tenant{object("red", func(t *v1alpha1.Tenant) { t.Spec.SharingGroups = []string{""} })},
			red: says{"False SpecUnreadable spec.sharingGroups[0]: is empty", fine.separated, fine.within}, told: []string{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := law(tc.tenants, nil, tc.namespaces...)
			books := cluster(l.Directory)
			if tc.pods != nil {
				tc.pods(books)
			}
			s := books.Snapshot()
			f := find(s, l.Directory)
			if diff := cmp.Diff(tc.told, notices(f.notices(tc.tenants))); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			red := tc.tenants[len(tc.tenants)-1]
			got := f.status(red, l, s.Spent(gpu.TenantAccount("red")), start())
			says := says{conditionOf(t, got, "NamespacesResolved"), conditionOf(t, got, "CardsSeparated"), conditionOf(t, got, "WithinQuota")}
			if diff := cmp.Diff(tc.red, says, cmp.AllowUnexported(tc.red)); diff != "" {
				t.Errorf("conditions of red (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(v1alpha1.TenantStatus{ObservedGeneration: 1, NamespaceCount: tc.count, Used: tc.used, Conditions: got.Conditions}, got); diff != "" {
				t.Errorf("status of red (-want +got):\n%s", diff)
			}
		})
	}
}

// Nobody is killed and no card moves; but a text that names hundreds of pods would
// say nothing, and the API server would refuse it.
func TestTextsAreBounded(t *testing.T) {
	var names []string
	for i := range 500 {
		names = append(names, fmt.Sprintf("name-%d", i))
	}
	if got, want := some(names), "name-0, name-1, name-2, name-3, name-4, name-5, name-6, name-7 and 492 more"; got != want {
		t.Errorf("some = %q, want %q", got, want)
	}
	if got := some(names[:2]); got != "name-0, name-1" {
		t.Errorf("some of two = %q", got)
	}
}

// A selector with hundreds of values that no label can have is told of with each of
// them, and more than the API server takes.
func TestMessagesAreBounded(t *testing.T) {
	red := object("red", owns("r"))
	values := make([]string, 500)
	for i := range values {
		values[i] = fmt.Sprintf("välue %d", i)
	}
	red.Spec.Namespaces.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "team", Operator: metav1.LabelSelectorOpIn, Values: values},
	}}
	l := law([]*v1alpha1.Tenant{red}, nil, "r")
	f := find(cluster(l.Directory).Snapshot(), l.Directory)
	for _, c := range f.status(red, l, nil, start()).Conditions {
		if len(c.Message) > 32768 || !utf8.ValidString(c.Message) {
			t.Errorf("%s: a message of %d bytes", c.Type, len(c.Message))
		}
	}
	if got := f.status(red, l, nil, start()).Conditions[0]; got.Reason != v1alpha1.TenantReasonUnreadable || !strings.HasSuffix(got.Message, " ...") {
		t.Errorf("NamespacesResolved is %s: %.100s", got.Reason, got.Message)
	}
}

// A condition's time is that of its last change of heart, and what others have
// written stays.
func TestConditionsKeepTheirTime(t *testing.T) {
	red := object("red", owns("r"), cardLimit(0))
	l := law([]*v1alpha1.Tenant{red}, nil, "r")
	books := cluster(l.Directory)
	f := find(books.Snapshot(), l.Directory)
	theirs := metav1.Condition{Type: "Audited", Status: metav1.ConditionTrue, Reason: "ByHand", LastTransitionTime: metav1.NewTime(start())}
	red.Status.Conditions = []metav1.Condition{theirs}
	red.Status = f.status(red, l, nil, start())
	if diff := cmp.Diff(theirs, red.Status.Conditions[0]); diff != "" {
		t.Errorf("another's condition (-want +got):\n%s", diff)
	}
	times := func(s v1alpha1.TenantStatus) string {
		var all []string
		for _, c := range s.Conditions[1:] {
			all = append(all, fmt.Sprintf("%s %v", c.Type, c.LastTransitionTime.Sub(start())))
		}
		return strings.Join(all, ", ")
	}
	later := f.status(red, l, nil, start().Add(time.Hour))
	if diff := cmp.Diff(red.Status, later); diff != "" {
		t.Errorf("an hour later, with nothing new (-want +got):\n%s", diff)
	}
	over := f.status(red, l, gpu.Spending{{Vendor: gpu.Nvidia, Devices: 1}}, start().Add(2*time.Hour))
	if got, want := times(over), "NamespacesResolved 0s, CardsSeparated 0s, WithinQuota 2h0m0s"; got != want {
		t.Errorf("since %s, want %s", got, want)
	}
}
