package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"heteroflow.io/heteroflow/pkg/server"
)

func TestHostPort(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1:9444": "10.0.0.1:9444", "[10.0.0.1]:9444": "10.0.0.1:9444", "host.example:1": "host.example:1",
		"fd00::1:9444": "[fd00::1]:9444", "[fd00::1]:9444": "[fd00::1]:9444",
		"": "", ":9444": "", "10.0.0.1": "", "10.0.0.1:": "", "fd00::1]:1": "", "a:b:1": "",
	} {
		got, err := hostPort(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q = %q, %v; want %q", text, got, err, want)
		}
	}
}

// secretStore keeps one Secret in whatever form it comes.
type secretStore struct {
	mu   sync.Mutex
	body []byte // guarded by mu
	kind string // guarded by mu; Content-Type
}

func (s *secretStore) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const path = "/api/v1/namespaces/heteroflow-system/secrets"
	switch r.Method + " " + r.URL.Path {
	case "POST " + path:
		s.body, _ = io.ReadAll(r.Body)
		s.kind = r.Header.Get("Content-Type")
	case "GET " + path + "/certs":
	default:
		http.NotFound(w, r)
		return
	}
	if s.body == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", s.kind)
	_, _ = w.Write(s.body)
}

// With a Secret for certificates the program makes it, is ready when it has it,
// and shows it to other replicas and to the API server.
func TestServesWithSharedCertificates(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	cfg, err := parse([]string{"--kubeconfig", api(t, "", "", (&secretStore{}).serve),
		"--certificates-secret", "certs", "--webhook-configurations", "heteroflow", "--replica-advertise", "127.0.0.1:1"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	p, err := wire(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !cfg.forwards() || !cfg.admits() {
		t.Fatalf("forwards %t, admits %t", cfg.forwards(), cfg.admits())
	}
	l := listeners{extender: listen(t), public: listen(t), webhooks: listen(t), replicas: listen(t)}
	if p.certified() {
		t.Error("certified before the Secret has been made")
	}
	ran := make(chan error, 1)
	go func() { ran <- p.run(ctx, l) }()
	for code := 0; code != http.StatusOK; {
		answer, err := http.Get("http://" + l.public.Addr().String() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		code, _ = read(t, answer)
	}
	if !p.certified() {
		t.Error("ready without a certificate")
	}
	for address, name := range map[string]string{
		l.webhooks.Addr().String(): "heteroflow-scheduler.heteroflow-system.svc", l.replicas.Addr().String(): "heteroflow-scheduler",
	} {
		shown := shownAt(t, address)
		if _, err := shown.Verify(x509.VerifyOptions{Roots: p.identity.Authorities(), DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	through := server.ReplicaTransport(p.identity)
	defer through.CloseIdleConnections()
	request, err := http.NewRequest(http.MethodPost, "https://"+l.replicas.Addr().String()+"/bind", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Heteroflow-Bind-Within-Ms": {"1000"}, "Heteroflow-Hold-Ms": {"0"}}
	answer, err := through.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	if code, text := read(t, answer); code != http.StatusMisdirectedRequest {
		t.Errorf("one that does not lead answers %d %s", code, text)
	}
	stop()
	if err := <-ran; err != nil {
		t.Errorf("run = %v, want nil", err)
	}
}

// shownAt is the certificate that a listener shows.
func shownAt(t *testing.T, address string) *x509.Certificate {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	return c.ConnectionState().PeerCertificates[0]
}
