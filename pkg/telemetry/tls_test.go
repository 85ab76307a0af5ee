package telemetry_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"heteroflow.io/heteroflow/pkg/telemetry"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{t: t, key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert = a.signed(template, template, a.key)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a authority) signed(template, by *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, by, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

// issue returns a certificate for 127.0.0.1 and for clients.
func (a authority) issue(name string) tls.Certificate {
	a.t.Helper()
	key := newKey(a.t)
	cert := a.signed(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func (a authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// write writes a file of a block.
func (a authority) write(path, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a authority) writePair(e telemetry.Endpoint, pair tls.Certificate) {
	a.t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(e.CertFile, "CERTIFICATE", pair.Certificate[0])
	a.write(e.KeyFile, "PRIVATE KEY", key)
}

// secured is a Prometheus behind TLS, of which it is noted who asks with what.
type secured struct {
	mu    sync.Mutex
	asked []string // guarded by mu
}

func (s *secured) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := "nobody"
	if certs := r.TLS.PeerCertificates; len(certs) > 0 {
		who = certs[0].Subject.CommonName
	}
	s.asked = append(s.asked, who+" "+r.Header.Get("Authorization"))
	fmt.Fprint(w, vector(both(`"UUID":"A"`, "31", "1000")))
}

func (s *secured) start(t *testing.T, config *tls.Config) string {
	t.Helper()
	server := httptest.NewUnstartedServer(s)
	server.TLS, server.Config.ErrorLog = config, log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// A server is believed whom the authority of caFile vouches for, and nobody else is
// told the token.
func TestServersThatAreNotBelieved(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	dir := t.TempDir()
	ca, token := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	ours.write(ca, "CERTIFICATE", ours.cert.Raw)
	if err := os.WriteFile(token, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		config *tls.Config
		ca     string
		host   string // in place of 127.0.0.1
		want   string // of the error; "" for an answer
	}{
		"ours":           {config: &tls.Config{Certificates: []tls.Certificate{ours.issue("p")}}, ca: ca},
		"of another":     {config: &tls.Config{Certificates: []tls.Certificate{theirs.issue("p")}}, ca: ca, want: "unknown authority"},
		"the system's":   {config: &tls.Config{Certificates: []tls.Certificate{ours.issue("p")}}, want: "unknown authority"},
		"another name":   {config: &tls.Config{Certificates: []tls.Certificate{ours.issue("p")}}, ca: ca, host: "localhost", want: "not valid for any names"},
		"an old version": {config: &tls.Config{Certificates: []tls.Certificate{ours.issue("p")}, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}, ca: ca, want: "protocol version"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var s secured
			c := asking(s.start(t, tc.config))
			if tc.host != "" {
				c.Prometheus.URL = strings.Replace(c.Prometheus.URL, "127.0.0.1", tc.host, 1)
			}
			c.Prometheus.CAFile, c.Prometheus.BearerTokenFile = tc.ca, token
			got, err := read(t, c)
			switch {
			case tc.want == "" && (err != nil || len(got) != 1 || len(s.asked) != 1 || s.asked[0] != "nobody Bearer s3cret"):
				t.Errorf("%v, error %v, asked by %q", got, err, s.asked)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || len(s.asked) > 0):
				t.Errorf("error %v, want one with %q; asked by %q", err, tc.want, s.asked)
			}
		})
	}
}

// Who asks shows his certificate where he is asked for one: that which is in the
// files when the connection is made.
func TestClientCertificate(t *testing.T) {
	a := newAuthority(t)
	var s secured
	c := asking(s.start(t, &tls.Config{Certificates: []tls.Certificate{a.issue("p")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.pool()}))
	dir := t.TempDir()
	c.Prometheus.CAFile = filepath.Join(dir, "ca.crt")
	a.write(c.Prometheus.CAFile, "CERTIFICATE", a.cert.Raw)
	if _, err := read(t, c); err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("without one: error %v", err)
	}
	c.Prometheus.CertFile, c.Prometheus.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	source, err := telemetry.NewPrometheus(c, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "tls.crt") {
		t.Errorf("before there are files: error %v", err)
	}
	a.writePair(c.Prometheus, a.issue("scheduler"))
	if got, err := source.Read(t.Context()); err != nil || len(got) != 1 {
		t.Errorf("with one: %v, error %v", got, err)
	}
	a.writePair(c.Prometheus, newAuthority(t).issue("forger"))
	if _, err := read(t, c); err == nil {
		t.Error("one that another authority has signed is taken")
	}
	if want := "scheduler "; len(s.asked) != 1 || s.asked[0] != want {
		t.Errorf("asked by %q, want %q once", s.asked, want)
	}
}

// A caFile that is not there, or has no certificate in it, is told at the start.
func TestAuthoritiesThatCannotBeRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	c := asking("https://127.0.0.1:1")
	c.Prometheus.CAFile = file
	for range 2 {
		if _, err := telemetry.NewPrometheus(c, time.Now); err == nil || !strings.Contains(err.Error(), "caFile: ") || !strings.Contains(err.Error(), file) {
			t.Errorf("error %v", err)
		}
		if err := os.WriteFile(file, []byte("none"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
