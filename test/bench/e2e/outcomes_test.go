package e2e

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/metrics"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// extenderMetrics are those of a real extender, so that a new name is noticed.
func extenderMetrics() *metrics.Metrics {
	books := ledger.New(tenancy.Separate{})
	return metrics.New(metrics.View{Ledger: books.Snapshot, Ready: func() bool { return true }})
}

func TestOutcomesOfAnExtender(t *testing.T) {
	m := extenderMetrics()
	for outcome, n := range map[metrics.BindOutcome]int{
		metrics.BindBound: 10, metrics.BindAlready: 2, metrics.BindConflict: 3, metrics.BindRefused: 4, metrics.BindUnknown: 1, metrics.BindError: 1,
	} {
		for range n {
			m.BindStarted()
			m.Bound(outcome)
		}
	}
	server := httptest.NewServer(m.Handler())
	defer server.Close()
	got, err := outcomes(t.Context(), server.URL, 13)
	if err != nil {
		t.Fatal(err)
	}
	want := Outcomes{"bound": 10, "already": 2, "conflict": 3, "refused": 4, "unknown": 1, "error": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if got.Binds() != 21 || got.Conflicts() != 9 {
		t.Errorf("%d of %d binds are conflicts, want 9 of 21", got.Conflicts(), got.Binds())
	}
}

// TestOutcomesWaitForTheLastBind: a pod is seen bound before its bind is counted.
func TestOutcomesWaitForTheLastBind(t *testing.T) {
	m := extenderMetrics()
	m.BindStarted()
	m.Bound(metrics.BindBound)
	m.BindStarted()
	var looks atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if looks.Add(1) == 2 {
			m.Bound(metrics.BindBound)
		}
		m.Handler().ServeHTTP(w, r)
	}))
	defer server.Close()
	got, err := outcomes(t.Context(), server.URL, 2)
	if err != nil || got["bound"] != 2 || looks.Load() != 2 {
		t.Errorf("outcomes = %v, %v after %d looks, want 2 bound after 2", got, err, looks.Load())
	}

	ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	if got, err := outcomes(ctx, server.URL, 3); err == nil {
		t.Errorf("outcomes = %v of 3 pods, want an error", got)
	}
}

func TestParseOutcomesRefuses(t *testing.T) {
	tests := map[string]string{
		"nothing":             "",
		"a bind is under way": "heteroflow_bind_in_flight 1\nheteroflow_bind_outcomes_total{outcome=\"bound\"} 1\n",
		"no gauge":            "heteroflow_bind_outcomes_total{outcome=\"bound\"} 1\n",
		"no counter":          "heteroflow_bind_in_flight 0\n",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := parseOutcomes(text); err == nil {
				t.Errorf("parseOutcomes = %v, want an error", got)
			}
		})
	}
}

func TestFetchTellsOfStatus(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "text")
	}))
	defer server.Close()
	if got, err := fetch(t.Context(), server.URL); err == nil {
		t.Errorf("fetch = %q, want an error", got)
	}
}
