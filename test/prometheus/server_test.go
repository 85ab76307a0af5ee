package prometheus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program finds Prometheus, or skips the test.
func program(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("prometheus"); err == nil {
		return path
	}
	path := filepath.Join(os.Getenv("HETEROFLOW_CACHE"), "prometheus")
	if os.Getenv("HETEROFLOW_CACHE") == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		path = filepath.Join(cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache")), "heteroflow", "prometheus")
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("there is no prometheus here, see test/prometheus/install.sh: telemetry is tested with recorded answers alone")
	}
	return path
}

// page is what an exporter of ours answers. It may change, and be taken away.
type page struct {
	mu   sync.Mutex
	text func(now time.Time) string // nil: the exporter is broken
}

// serve starts an exporter and returns its address.
func (p *page) serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func (p *page) take() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = nil
}

// ServeHTTP implements http.Handler.
func (p *page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.text == nil {
		http.Error(w, "broken", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprint(w, p.text(time.Now()))
}

// fixed is a page that stays as it is.
func fixed(text string) *page {
	return &page{text: func(time.Time) string { return text }}
}

// start runs a Prometheus that scrapes the targets, and returns its URL once it
// answers.
func start(t *testing.T, targets ...string) string {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	// JSON is YAML; %q writes both.
	text := fmt.Sprintf("global: {scrape_interval: 500ms, scrape_timeout: 400ms}\n"+
		"scrape_configs: [{job_name: ours, static_configs: [{targets: [%s]}]}]\n", `"`+strings.Join(targets, `", "`)+`"`)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	cmd := exec.CommandContext(t.Context(), program(t), "--config.file", config,
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", address)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // at the end of the test
	cmd.WaitDelay = 10 * time.Second
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Wait(); err != nil && !errors.Is(err, context.Canceled) || t.Failed() {
			t.Logf("prometheus: %v\n%s", err, log.String())
		}
	})
	url := "http://" + address
	eventually(t, "prometheus to be ready", func() error {
		answer, err := http.Get(url + "/-/ready")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		return nil
	})
	return url
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// eventually ends the test unless check is content in time.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	over := time.After(30 * time.Second) // it takes 5 s to look at its targets at all
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-over:
			t.Fatalf("wait for %s: %v", what, err)
		case <-tick.C:
		}
	}
}
