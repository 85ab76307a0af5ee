package metrics

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

func card(id string, index int, change func(*gpu.Card)) gpu.Card {
	c := gpu.Card{
		ID: gpu.CardID(id), Index: index, Vendor: gpu.Nvidia, Model: "m",
		Memory: 1000, Usable: 900, Cores: 100, UsableCores: 100, MaxSlices: 10,
		NUMA: gpu.NoNUMA, Healthy: true, Mode: gpu.ModeSlice, Isolation: gpu.IsolationDriver,
	}
	if change != nil {
		change(&c)
	}
	return c
}

func placement(pod, card string, exclusive bool) gpu.Placement {
	share := gpu.Share{Card: gpu.CardID(card), Vendor: gpu.Nvidia, Memory: 300, Cores: 30}
	if exclusive {
		share = gpu.Share{Card: gpu.CardID(card), Vendor: gpu.Nvidia, Memory: 1000, Cores: 100, Exclusive: true}
	}
	return gpu.Placement{
		Pod: gpu.PodID(pod), Namespace: "ns", Name: pod, Node: "n1", Tenant: "t",
		Grants: []gpu.Grant{{Container: "c", Shares: []gpu.Share{share}}},
	}
}

// world is a ledger with one card in each state and one hold in each.
func world(t *testing.T) *ledger.Ledger {
	t.Helper()
	l := ledger.New(tenancy.Separate{})
	l.SetNode(ledger.Facts{ID: "n1", Cards: []gpu.Card{
		card("free", 0, nil),
		card("whole", 1, nil),
		card("sliced", 2, nil),
		card("sick", 3, func(c *gpu.Card) { c.Healthy = false }),
		card("cordoned", 4, func(c *gpu.Card) { c.Cordoned = true }),
		card("kept", 6, nil),
		card("other", 5, func(c *gpu.Card) { c.Vendor = gpu.Musa }),
	}})
	if err := l.Reserve(placement("a", "whole", true)); err != nil {
		t.Fatal(err)
	}
	for _, pod := range []string{"b", "c", "d"} {
		l.Confirm(placement(pod, "sliced", false))
	}
	if err := l.Drain("c"); err != nil {
		t.Fatal(err)
	}
	l.Linger("d", time.Unix(100, 0))
	if err := l.Claim(placement("e", "kept", false), nil); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestCollectorReadsTheLedger(t *testing.T) {
	m := New(View{Ledger: world(t).Snapshot, Ready: func() bool { return true }})
	want := `
# HELP heteroflow_card_memory_mib Card memory in MiB: usable for slices, and held. Held may pass usable, for a whole card takes the reserve too.
# TYPE heteroflow_card_memory_mib gauge
heteroflow_card_memory_mib{kind="held",vendor="musa"} 0
heteroflow_card_memory_mib{kind="held",vendor="nvidia"} 1900
heteroflow_card_memory_mib{kind="usable",vendor="musa"} 900
heteroflow_card_memory_mib{kind="usable",vendor="nvidia"} 5400
# HELP heteroflow_cards Cards in the ledger. Closed: without a holder of ours, but claimed for one that is to come, taken off for a foreign one, or cordoned.
# TYPE heteroflow_cards gauge
heteroflow_cards{state="closed",vendor="musa"} 0
heteroflow_cards{state="closed",vendor="nvidia"} 2
heteroflow_cards{state="exclusive",vendor="musa"} 0
heteroflow_cards{state="exclusive",vendor="nvidia"} 1
heteroflow_cards{state="free",vendor="musa"} 1
heteroflow_cards{state="free",vendor="nvidia"} 1
heteroflow_cards{state="shared",vendor="musa"} 0
heteroflow_cards{state="shared",vendor="nvidia"} 1
heteroflow_cards{state="unhealthy",vendor="musa"} 0
heteroflow_cards{state="unhealthy",vendor="nvidia"} 1
# HELP heteroflow_holds Pods in the ledger by the state of their hold, pods without cards included.
# TYPE heteroflow_holds gauge
heteroflow_holds{state="bound"} 1
heteroflow_holds{state="claimed"} 1
heteroflow_holds{state="draining"} 1
heteroflow_holds{state="held"} 1
heteroflow_holds{state="lingering"} 1
# HELP heteroflow_ready 1 when the ledger has been built from the API server, else 0.
# TYPE heteroflow_ready gauge
heteroflow_ready 1
`
	if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), nameCards, nameCardMemory, nameHolds, nameReady); err != nil {
		t.Error(err)
	}
}

func TestCounting(t *testing.T) {
	m := New(View{Ledger: ledger.New(tenancy.Separate{}).Snapshot, Ready: func() bool { return false }})
	m.Request(VerbFilter, http.StatusOK, 150*time.Microsecond)
	m.NodesRefused(gpu.InsufficientGPUMemory, 3)
	m.Filtered(Refused)
	m.BindStarted()
	m.BindStarted()
	m.Bound(BindUnknown)
	m.Admitted(Mutate, AdmissionPatched, 150*time.Microsecond)
	m.EventDropped()
	m.InventoryError()
	m.PodTouched()
	m.PodNominated()
	m.Mismatches(3)
	m.Forwarded(VerbBind, ForwardBroken)
	m.Held(VerbScore, 2*time.Second)
	m.Certificates(time.Unix(1000, 0), time.Unix(2000, 0))

	for name, want := range map[string]string{
		nameRequests:        `heteroflow_extender_requests_total{code="200",verb="filter"} 1`,
		nameDuration:        `heteroflow_extender_request_duration_seconds_bucket{verb="filter",le="0.0002"} 1`,
		nameNodesRefused:    `heteroflow_filter_nodes_refused_total{reason="InsufficientGPUMemory"} 3`,
		nameFilterOutcomes:  `heteroflow_filter_outcomes_total{outcome="refused"} 1`,
		nameBindOutcomes:    `heteroflow_bind_outcomes_total{outcome="unknown"} 1`,
		nameBindInFlight:    `heteroflow_bind_in_flight 1`,
		nameAdmissions:      `heteroflow_admission_requests_total{operation="mutate",outcome="patched"} 1`,
		nameAdmissionTime:   `heteroflow_admission_duration_seconds_bucket{operation="mutate",le="0.0002"} 1`,
		nameForwarded:       `heteroflow_forwarded_requests_total{result="broken",verb="bind"} 1`,
		nameHeld:            `heteroflow_request_hold_seconds_sum{verb="score"} 2`,
		nameCertificate:     `heteroflow_certificate_expiry_timestamp_seconds{certificate="served"} 1000`,
		nameEventsDropped:   `heteroflow_events_dropped_total 1`,
		nameInventoryErrors: `heteroflow_inventory_errors_total 1`,
		namePodsTouched:     `heteroflow_pods_touched_total 1`,
		namePodsNominated:   `heteroflow_pods_nominated_total 1`,
		nameMismatches:      `heteroflow_ledger_mismatches 3`,
		nameReady:           `heteroflow_ready 0`,
	} {
		if text := scrape(t, m); !strings.Contains(text, want+"\n") {
			t.Errorf("%s: /metrics lacks %q", name, want)
		}
	}
}

// Every family of the table is served under its name and kind, and nothing of
// ours is served that the table lacks.
func TestTableIsComplete(t *testing.T) {
	m := New(View{Ledger: world(t).Snapshot, Ready: func() bool { return true }, Tenancy: neighbours})
	m.Request(VerbBind, http.StatusOK, time.Millisecond)
	m.NodesRefused(gpu.InvalidRequest, 1)
	m.TelemetryRead(1, nil, time.Second)
	m.TelemetryDropped("stale", 1)
	m.TelemetryFresh("power", 1)
	m.Certificates(time.Unix(1, 0), time.Unix(2, 0)) // 0 would read as long expired

	var want []string
	for _, f := range Families() {
		want = append(want, "# TYPE "+f.Name+" "+string(f.Kind))
	}
	slices.Sort(want)
	var got []string
	for line := range strings.Lines(scrape(t, m)) {
		if strings.HasPrefix(line, "# TYPE heteroflow_") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
}

func TestNamesAndHelpPassTheLinter(t *testing.T) {
	m := New(View{Ledger: world(t).Snapshot, Ready: func() bool { return true }, Tenancy: neighbours})
	var ours []string
	for _, f := range Families() {
		ours = append(ours, f.Name)
	}
	problems, err := testutil.GatherAndLint(m.registry, ours...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if p.Metric == nameCardMemory { // MiB is the unit of every request and annotation here
			continue
		}
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("GET /metrics = %d", answer.Code)
	}
	return answer.Body.String()
}
