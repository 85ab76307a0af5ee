package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
)

// pair is a certificate for the name and its key, both in PEM.
func pair(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// vault is a certificate in files, the server that uses it, and its log.
type vault struct {
	t                 *testing.T
	certFile, keyFile string
	address           string
	cert              *Certificate
	mu                sync.Mutex
	log               bytes.Buffer // guarded by mu
}

func newVault(t *testing.T) *vault {
	dir := t.TempDir()
	v := &vault{t: t, certFile: filepath.Join(dir, "tls.crt"), keyFile: filepath.Join(dir, "tls.key")}
	v.put(pair(t, "first"))
	logger := funcr.New(func(_, line string) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.log.WriteString(line + "\n")
	}, funcr.Options{})
	var err error
	if v.cert, err = ReadCertificate(v.certFile, v.keyFile, logger); err != nil {
		t.Fatal(err)
	}
	v.serve()
	return v
}

func (v *vault) serve() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		v.t.Fatal(err)
	}
	v.address = l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- ServeTLS(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.Proto)) }), time.Second, v.cert)
	}()
	v.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			v.t.Errorf("ServeTLS = %v, want nil", err)
		}
	})
}

func (v *vault) put(cert, key []byte) {
	v.t.Helper()
	v.write(v.certFile, cert)
	v.write(v.keyFile, key)
}

// write puts the text under a new file of that name, as Kubernetes does with
// Secrets.
func (v *vault) write(file string, text []byte) {
	v.t.Helper()
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		v.t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		v.t.Fatal(err)
	}
}

// shown is the name in the certificate that a new connection is shown.
func (v *vault) shown() string {
	v.t.Helper()
	c, err := tls.Dial("tcp", v.address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		v.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName
}

func (v *vault) logged(what string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return strings.Count(v.log.String(), what)
}

func (v *vault) want(name string) {
	v.t.Helper()
	if got := v.shown(); got != name {
		v.t.Errorf("shows certificate %q, want %q", got, name)
	}
}

func TestCertificateIsReadAgain(t *testing.T) {
	v := newVault(t)
	v.want("first")
	v.put(pair(t, "second"))
	v.want("second")
	v.want("second")
	if n := v.logged("certificate read again"); n != 1 {
		t.Errorf("read again %d times, want once", n)
	}
	// In place, with the same length or not: its time has changed.
	cert, key := pair(t, "third_")
	for file, text := range map[string][]byte{v.certFile: cert, v.keyFile: key} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	v.want("third_")
}

// Between the writing of one file and of the other, and for as long as the new
// pair cannot be read, the last good one is shown, and that is said once.
func TestHalfACertificate(t *testing.T) {
	cert, key := pair(t, "second")
	tests := map[string]func(*vault){
		"the key is still the old one":  func(v *vault) { v.write(v.certFile, cert) },
		"the certificate is still old":  func(v *vault) { v.write(v.keyFile, key) },
		"half of a certificate":         func(v *vault) { v.put(cert[:len(cert)/2], key) },
		"an empty key":                  func(v *vault) { v.put(cert, nil) },
		"the certificate has gone":      func(v *vault) { _ = os.Remove(v.certFile) },
		"the key is a folder of a kind": func(v *vault) { _ = os.Remove(v.keyFile); _ = os.Mkdir(v.keyFile, 0o700) },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			v := newVault(t)
			spoil(v)
			v.want("first")
			v.want("first")
			if n := v.logged("the last one stays in use"); n != 1 {
				t.Errorf("said %d times, want once", n)
			}
			_ = os.Remove(v.keyFile)
			v.put(cert, key)
			v.want("second")
			v.put(cert, nil)
			v.want("second")
			if n := v.logged("the last one stays in use"); n != 2 {
				t.Errorf("a second failure: said %d times in all, want twice", n)
			}
		})
	}
}

func TestFirstCertificateHasToBeGood(t *testing.T) {
	v := newVault(t)
	cert, _ := pair(t, "other")
	v.write(v.certFile, cert)
	if _, err := ReadCertificate(v.certFile, v.keyFile, v.cert.logger); err == nil {
		t.Error("a key of another certificate was taken")
	}
	if _, err := ReadCertificate(v.certFile, filepath.Join(t.TempDir(), "none"), v.cert.logger); err == nil {
		t.Error("a key that is not there was taken")
	}
}

// Old versions are refused; HTTP/2 is spoken, as the API server wants.
func TestProtocols(t *testing.T) {
	v := newVault(t)
	if c, err := tls.Dial("tcp", v.address, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		_ = c.Close()
		t.Error("TLS 1.1 was accepted")
	}
	if c, err := tls.Dial("tcp", v.address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}); err != nil {
		t.Errorf("TLS 1.2: %v", err)
	} else {
		_ = c.Close()
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	answer, err := client.Get("https://" + v.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.ProtoMajor != 2 {
		t.Errorf("spoke %s, want HTTP/2", answer.Proto)
	}
}
