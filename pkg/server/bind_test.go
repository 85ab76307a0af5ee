package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	extender "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
)

func bindArgs(pod, node string) extender.ExtenderBindingArgs {
	return extender.ExtenderBindingArgs{PodName: pod, PodNamespace: "ns", PodUID: types.UID("uid-" + pod), Node: node}
}

func askBind(t testing.TB, r *rig, pod, node string) string {
	t.Helper()
	return ask[extender.ExtenderBindingResult](t, r.extender, "/bind", bindArgs(pod, node)).Error
}

func TestBind(t *testing.T) {
	failing := func(err error) *cluster {
		c := newCluster(nil)
		c.before = func(context.Context) error { return err }
		return c
	}
	refusal := func(reason gpu.Reason, cause error) error {
		return fmt.Errorf("bind: %w", &engine.Refusal{Reason: reason, Detail: "why", Cause: cause})
	}
	tests := map[string]struct {
		engine  *cluster
		unready bool
		want    string // the error's text
		outcome string
	}{
		"bound":            {engine: newCluster(map[gpu.NodeID]int{"n1": 1}), outcome: "bound"},
		"no room any more": {engine: newCluster(nil), want: "InsufficientGPUCount: node no longer fits", outcome: "conflict"},
		"changed":          {engine: failing(refusal(gpu.BindConflict, nil)), want: "bind: BindConflict: why", outcome: "conflict"},
		"API server says no": {engine: failing(refusal(gpu.BindConflict, engine.ErrRefused)),
			want: "bind: BindConflict: why: binding refused", outcome: "refused"},
		"may have happened": {engine: failing(refusal(gpu.BindConflict, engine.ErrUnknown)),
			want: "bind: BindConflict: why: outcome of binding unknown", outcome: "unknown"},
		"invalid":       {engine: failing(refusal(gpu.InvalidRequest, nil)), want: "bind: InvalidRequest: why", outcome: "refused"},
		"anything else": {engine: failing(errors.New("out of luck")), want: "out of luck", outcome: "error"},
		"not ready":     {engine: failing(errors.New("asked")), unready: true, want: notReady},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(tc.engine, func(c *Config) { c.Ready = func() bool { return !tc.unready } })
			if got := askBind(t, r, "p", "n1"); got != tc.want {
				t.Errorf("error %q, want %q", got, tc.want)
			}
			if tc.outcome != "" {
				r.wantMetric(t, fmt.Sprintf(`heteroflow_bind_outcomes_total{outcome=%q} 1`, tc.outcome))
			}
			r.wantMetric(t, `heteroflow_bind_in_flight 0`)
		})
	}
}

func TestRepeatedBindIsSuccessAndToldOnce(t *testing.T) {
	r := newRig(newCluster(map[gpu.NodeID]int{"n1": 1}))
	for range 3 {
		if got := askBind(t, r, "p", "n1"); got != "" {
			t.Errorf("error %q", got)
		}
	}
	if diff := cmp.Diff([]string{"ns/p bound to n1"}, r.notes.read()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	r.wantMetric(t, `heteroflow_bind_outcomes_total{outcome="already"} 2`)
}

// A bind that hangs is stopped 20 s after its arrival, by its own clock.
func TestBindHasItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(map[gpu.NodeID]int{"n1": 1})
		c.before = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		arrived := time.Now()
		if got := askBind(t, newRig(c), "p", "n1"); got != context.DeadlineExceeded.Error() {
			t.Errorf("error %q", got)
		}
		if took := time.Since(arrived); took != 20*time.Second {
			t.Errorf("took %v, want 20s", took)
		}
	})
}

// kube-scheduler hangs up after its httpTimeout; the bind goes on.
func TestBindOutlivesItsCaller(t *testing.T) {
	c := newCluster(map[gpu.NodeID]int{"n1": 1})
	started, goOn := make(chan struct{}), make(chan struct{})
	c.before = func(ctx context.Context) error {
		close(started)
		<-goOn
		return ctx.Err()
	}
	hungUp, ended := make(chan struct{}), make(chan struct{})
	r := newRig(c)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		go func() { <-request.Context().Done(); close(hungUp) }()
		r.extender.ServeHTTP(w, request)
		close(ended)
	}))
	defer server.Close()

	ctx, hangUp := context.WithCancel(t.Context())
	go func() { <-started; hangUp() }()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/bind",
		strings.NewReader(`{"PodName":"p","PodNamespace":"ns","PodUID":"uid-p","Node":"n1"}`))
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := http.DefaultClient.Do(request); err == nil {
		_ = answer.Body.Close()
		t.Fatal("the client got an answer")
	}
	<-hungUp
	close(goOn)
	<-ended
	if got := c.on("uid-p"); got != "n1" {
		t.Errorf("bound to %q, want n1", got)
	}
}

func TestStoppingLetsBindsEnd(t *testing.T) {
	c := newCluster(map[gpu.NodeID]int{"n1": 1})
	started, goOn := make(chan struct{}), make(chan struct{})
	c.before = func(ctx context.Context) error { close(started); <-goOn; return ctx.Err() }
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, listener, newRig(c).extender, time.Minute) }()

	codes := make(chan int, 1)
	go func() {
		answer, err := http.Post("http://"+listener.Addr().String()+"/bind", "application/json",
			strings.NewReader(`{"PodName":"p","PodNamespace":"ns","PodUID":"uid-p","Node":"n1"}`))
		if err != nil {
			codes <- 0
			return
		}
		_ = answer.Body.Close()
		codes <- answer.StatusCode
	}()
	<-started
	stop()
	for refused := false; !refused; { // the listener closes first
		conn, err := net.Dial("tcp", listener.Addr().String())
		if refused = err != nil; !refused {
			_ = conn.Close()
		}
	}
	select {
	case err := <-served:
		close(goOn)
		t.Fatalf("Serve ended with a bind in flight: %v", err)
	default:
	}
	close(goOn)
	if code := <-codes; code != http.StatusOK {
		t.Errorf("the bind in flight got %d, want 200", code)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
	if got := c.on("uid-p"); got != "n1" {
		t.Errorf("bound to %q, want n1", got)
	}
}

func TestServeEndsWhenItsListenerDoes(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), listener, http.NotFoundHandler(), time.Minute); err == nil {
		t.Error("Serve = nil, want an error")
	}
}

// For -race: everything at once, and no card given twice.
func TestConcurrently(t *testing.T) {
	c := newCluster(map[gpu.NodeID]int{"n1": 4, "n2": 4})
	r := newRig(c)
	var group sync.WaitGroup
	var mu sync.Mutex
	bound := 0
	for i := range 20 {
		group.Go(func() {
			pod, node := fmt.Sprintf("p%d", i), fmt.Sprintf("n%d", 1+i%2)
			askFilter(t, r, extender.ExtenderArgs{Pod: newPod(pod, 1), NodeNames: names("n1", "n2", "n3")})
			post(t, r.extender, "/score", extender.ExtenderArgs{Pod: newPod(pod, 1), NodeNames: names("n1", "n2")})
			r.scrape(t)
			if askBind(t, r, pod, node) == "" {
				mu.Lock()
				defer mu.Unlock()
				bound++
			}
		})
	}
	group.Wait()
	if bound != 8 {
		t.Errorf("%d pods bound, want 8", bound)
	}
}

func TestCheckLoopback(t *testing.T) {
	for address, ok := range map[string]bool{
		"127.0.0.1:9000": true, "127.3.2.1:9000": true, "[::1]:9000": true, "localhost:9000": true,
		":9000": false, "0.0.0.0:9000": false, "[::]:9000": false, "10.0.0.1:9000": false,
		"example.org:9000": false, "127.0.0.1": false, "": false,
	} {
		if err := CheckLoopback(address); (err == nil) != ok {
			t.Errorf("CheckLoopback(%q) = %v, want ok %v", address, err, ok)
		}
	}
}
