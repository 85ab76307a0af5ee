package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	extender "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/pkg/certs"
	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// passport is an identity that a test changes.
type passport struct {
	mu   sync.Mutex
	leaf *tls.Certificate // guarded by mu; nil: there is none yet
	pool *x509.CertPool   // guarded by mu
}

func (p *passport) Current() (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leaf == nil {
		return nil, errors.New("no certificate yet")
	}
	return p.leaf, nil
}

func (p *passport) Authorities() *x509.CertPool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pool
}

func (p *passport) change(leaf certs.Set, trusted ...certs.Set) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaf, p.pool = leaf.Leaf(), certs.Pool(time.Now(), leaf, trusted...)
}

// newSet is a new authority and a leaf of it.
func newSet(t testing.TB) certs.Set {
	t.Helper()
	s, _, err := certs.Renew(certs.Set{}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func passportOf(s certs.Set) *passport {
	p := &passport{}
	p.change(s)
	return p
}

// counting counts the connections that a listener has taken.
type counting struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn // guarded by mu
}

func (c *counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

func (c *counting) taken() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

// kill ends the listener and cuts all its connections, as a process that is
// killed does.
func (c *counting) kill() {
	_ = c.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// serveReplica has the leader answer on a port of this machine.
func serveReplica(t *testing.T, r *rig, id Identity) *counting {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{Listener: l}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- ServeReplicas(ctx, c, r.server.Replica(), 30*time.Second, id) }()
	t.Cleanup(func() { stop(); <-ended })
	return c
}

func leading(c *Config) { c.Leadership = &throne{now: Leading{Here: true}} }

// standbyOf is a replica that sends requests on to what its throne says.
func standbyOf(t *testing.T, leader string, id Identity, change ...func(*http.Transport)) (*rig, *throne) {
	transport := ReplicaTransport(id)
	for _, c := range change {
		c(transport)
	}
	t.Cleanup(transport.CloseIdleConnections)
	seat := &throne{now: Leading{Leader: leader}}
	return newRig(untouchable{}, func(c *Config) {
		c.Leadership = seat
		c.Replicas = Replicas{Self: "self:1", Transport: transport, Longest: 25 * time.Second}
	}), seat
}

// Over the real thing: one connection for all, of HTTP/2 and TLS 1.3, in both
// directions of trust.
func TestForwardingOverTLS(t *testing.T) {
	set := newSet(t)
	c := newEngine()
	leader := newRig(c, leading)
	l := serveReplica(t, leader, passportOf(set))
	standby, _ := standbyOf(t, l.Addr().String(), passportOf(set))
	for range 20 {
		if got := askFilter(t, standby, extender.ExtenderArgs{Pod: newPod("p", 1), NodeNames: names("n1", "n2")}); len(*got.NodeNames) != 2 {
			t.Fatalf("filter %+v", got)
		}
	}
	if got := askBind(t, standby, "p", "n1"); got != "" || c.on("uid-p") != "n1" {
		t.Errorf("bind %q, bound to %q", got, c.on("uid-p"))
	}
	if n := l.taken(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// Three hundred at once, some with all nodes of a large cluster.
func TestManyAtOnceOverTLS(t *testing.T) {
	set := newSet(t)
	c := newCluster(map[gpu.NodeID]int{"n1": 100})
	l := serveReplica(t, newRig(c, leading), passportOf(set))
	standby, _ := standbyOf(t, l.Addr().String(), passportOf(set))
	many := make([]string, 2000)
	for i := range many {
		many[i] = fmt.Sprintf("node-%d.of-a-large-cluster", i)
	}
	var group sync.WaitGroup
	for i := range 300 {
		group.Go(func() {
			if i%10 == 0 {
				if got := askFilter(t, standby, extender.ExtenderArgs{Pod: newPod("f", 1), NodeNames: &many}); len(got.FailedNodes) != len(many) {
					t.Errorf("filter %q, %d failed", got.Error, len(got.FailedNodes))
				}
				return
			}
			if got := askBind(t, standby, fmt.Sprintf("p%d", i), "n1"); got != "" && !strings.HasPrefix(got, "InsufficientGPUCount") {
				t.Errorf("bind %q", got)
			}
		})
	}
	group.Wait()
	if len(c.bound) != 100 {
		t.Errorf("%d bound, want 100", len(c.bound))
	}
	if n := l.taken(); n > 4*mostConns { // so many at once; some are closed as one is enough
		t.Errorf("%d connections, want at most %d", n, 4*mostConns)
	}
}

// certificateOf is one of the set's authority, with another name in it.
func certificateOf(t *testing.T, s certs.Set, name string) *tls.Certificate {
	t.Helper()
	files, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	authority, err := tls.X509KeyPair(files["ca.crt"], files["ca.key"])
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name, certs.Subject},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, key.Public(), authority.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Whoever has no certificate of a replica reaches nothing, not even /healthz.
func TestReplicaListenerIsForReplicas(t *testing.T) {
	set, other := newSet(t), newSet(t)
	l := serveReplica(t, newRig(untouchable{}, leading), passportOf(set))
	trust := certs.Pool(time.Now(), set)
	config := func(change func(*tls.Config)) *tls.Config {
		c := &tls.Config{RootCAs: trust, ServerName: certs.Subject, Certificates: []tls.Certificate{*set.Leaf()}}
		change(c)
		return c
	}
	tests := map[string]struct {
		config *tls.Config
		ok     bool
	}{
		"a replica":        {config(func(*tls.Config) {}), true},
		"no certificate":   {config(func(c *tls.Config) { c.Certificates = nil }), false},
		"other authority":  {config(func(c *tls.Config) { c.Certificates = []tls.Certificate{*other.Leaf()} }), false},
		"other subject":    {config(func(c *tls.Config) { c.Certificates = []tls.Certificate{*certificateOf(t, set, "kube-scheduler")} }), false},
		"the old protocol": {config(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }), false},
		"signed by itself": {config(func(c *tls.Config) { c.Certificates = []tls.Certificate{*selfSigned(t)} }), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: tc.config}}
			defer client.CloseIdleConnections()
			for _, path := range []string{"/healthz", "/bind"} {
				answer, err := client.Post("https://"+l.Addr().String()+path, "application/json", strings.NewReader("{}"))
				if (err == nil) != tc.ok {
					t.Errorf("%s = %v, want an answer: %t", path, err, tc.ok)
				}
				if err == nil {
					_ = answer.Body.Close()
				}
			}
		})
	}
	t.Run("plain HTTP", func(t *testing.T) {
		if answer, err := http.Get("http://" + l.Addr().String() + "/healthz"); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				t.Error("answered")
			}
		}
	})
}

func selfSigned(t *testing.T) *tls.Certificate {
	t.Helper()
	cert, key := pair(t, certs.Subject)
	both, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return &both
}

// To others than replicas nothing is sent: what is asked names pods and nodes.
func TestNothingIsSentToOthers(t *testing.T) {
	set := newSet(t)
	for name, shown := range map[string]*tls.Certificate{
		"other authority": newSet(t).Leaf(), "other subject": certificateOf(t, set, "kube-scheduler"), "signed by itself": selfSigned(t),
	} {
		t.Run(name, func(t *testing.T) {
			liar := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("was asked") }))
			liar.TLS = &tls.Config{Certificates: []tls.Certificate{*shown}}
			liar.EnableHTTP2 = true // as a replica does: it is the name that gives it away
			liar.StartTLS()
			defer liar.Close()
			standby, _ := standbyOf(t, liar.Listener.Addr().String(), passportOf(set))
			e := &errand{verb: verbOf("/bind"), path: "/bind", body: []byte("{}"), arrived: time.Now(), hold: hold{left: holdTime}}
			if _, err := standby.server.ask(t.Context(), liar.Listener.Addr().String(), e); !errors.Is(err, errUnreachable) || e.sent {
				t.Errorf("ask = %v, sent %t", err, e.sent)
			}
		})
	}
}

// There is nothing else on this listener.
func TestReplicaRoutes(t *testing.T) {
	h := newRig(untouchable{}, leading).server.Replica()
	for _, path := range []string{"/metrics", "/debug/books", "/readyz", "/webhook/mutate", "/"} {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if answer.Code != http.StatusNotFound {
			t.Errorf("GET %s = %d", path, answer.Code)
		}
	}
}

// Before there is a certificate nobody is trusted and nothing is shown; a new one
// is used from the next connection on.
func TestIdentityChanges(t *testing.T) {
	first, second := newSet(t), newSet(t)
	id, mine := &passport{}, &passport{}
	l := serveReplica(t, newRig(newEngine(), leading), id)
	ask := func(with Identity) error {
		standby, _ := standbyOf(t, l.Addr().String(), with)
		_, err := standby.server.ask(t.Context(), l.Addr().String(), &errand{path: "/score", body: []byte(jsonOf(t, questionFor("/score"))), arrived: time.Now()})
		return err
	}
	mine.change(first)
	if ask(mine) == nil || ask(&passport{}) == nil {
		t.Error("answered without a certificate")
	}
	id.change(first)
	if err := ask(mine); err != nil {
		t.Error(err)
	}
	id.change(first, second) // announced
	if err := errors.Join(ask(mine), ask(passportOf(first))); err != nil {
		t.Error(err)
	}
	mine.change(second, first)
	if err := ask(mine); err != nil {
		t.Errorf("the new one is announced: %v", err)
	}
	id.change(second)
	if err := ask(mine); err != nil {
		t.Error(err)
	}
	if ask(passportOf(first)) == nil {
		t.Error("a forgotten authority is trusted")
	}
}

// The leader is killed while it works on a bind; the next one has read that it
// had happened, and says so.
func TestLeaderIsKilled(t *testing.T) {
	set := newSet(t)
	c := newEngine()
	bound, never := make(chan struct{}), make(chan struct{})
	defer close(never)
	first := newRig(&dying{c, bound, never}, leading)
	l := serveReplica(t, first, passportOf(set))
	next := serveReplica(t, newRig(c, leading), passportOf(set))
	standby, seat := standbyOf(t, l.Addr().String(), passportOf(set))
	go func() {
		<-bound
		l.kill()
		seat.set(Leading{})
		seat.set(Leading{Leader: next.Addr().String()})
	}()
	if got := askBind(t, standby, "p", "n1"); got != "" {
		t.Errorf("error %q", got)
	}
	if c.on("uid-p") != "n1" || c.free["n1"] != 0 {
		t.Errorf("bound to %q, %d left", c.on("uid-p"), c.free["n1"])
	}
}

// dying binds, and then never answers.
type dying struct {
	*cluster
	bound, never chan struct{}
}

func (d *dying) Bind(ctx context.Context, t engine.Target) (engine.Bound, error) {
	b, err := d.cluster.Bind(ctx, t)
	close(d.bound)
	<-d.never
	return b, err
}

// A leader that stops without closing anything, as one that is suspended or cut
// off, is noticed in some seconds, though a bind may take longer to answer.
func TestSuspendedLeaderIsNoticed(t *testing.T) {
	set := newSet(t)
	impatient := func(transport *http.Transport) {
		if c := transport.HTTP2; c.SendPingTimeout != quietTime || c.PingTimeout != pingTime {
			t.Errorf("a quiet connection is looked at after %v and given up after %v", c.SendPingTimeout, c.PingTimeout)
		}
		transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: 100 * time.Millisecond, PingTimeout: 100 * time.Millisecond}
	}
	l := serveReplica(t, newRig(newEngine(), leading), passportOf(set))
	middle := newFreezer(t, l.Addr().String())
	standby, _ := standbyOf(t, middle.Addr().String(), passportOf(set), impatient)
	e := &errand{path: "/score", body: []byte(jsonOf(t, questionFor("/score"))), arrived: time.Now()}
	if _, err := standby.server.ask(t.Context(), middle.Addr().String(), e); err != nil {
		t.Fatal(err)
	}
	middle.freeze()
	began := time.Now()
	if _, err := standby.server.ask(t.Context(), middle.Addr().String(), e); err == nil || errors.Is(err, errUnreachable) {
		t.Errorf("ask = %v, want a connection that breaks", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	began = time.Now()
	if _, err := standby.server.ask(t.Context(), middle.Addr().String(), e); !errors.Is(err, errUnreachable) {
		t.Errorf("ask = %v, want no connection", err)
	}
	if took := time.Since(began); took > dialTime+3*time.Second {
		t.Errorf("took %v", took)
	}
}

// freezer passes bytes on until it is frozen; then it takes connections, and
// nothing comes of them.
type freezer struct {
	net.Listener
	frozen chan struct{}
}

func newFreezer(t *testing.T, to string) *freezer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &freezer{l, make(chan struct{})}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			there, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = there.Close() })
			go f.pass(conn, there)
			go f.pass(there, conn)
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return f
}

func (f *freezer) pass(from io.Reader, to io.Writer) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-f.frozen:
			return
		default:
		}
		if _, failed := to.Write(buf[:n]); err != nil || failed != nil {
			return
		}
	}
}

func (f *freezer) freeze() { close(f.frozen) }

// From files too: they are read again when they change, and one of them alone
// changes nothing.
func TestIdentityFromFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	put := func(s certs.Set, names ...string) {
		files, err := s.Files()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := os.WriteFile(file(name+".new"), files[name], 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(file(name+".new"), file(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	first, second := newSet(t), newSet(t)
	if _, err := ReadIdentity(file("tls.crt"), file("tls.key"), file("ca.crt"), logr.Discard()); err == nil {
		t.Error("read what is not there")
	}
	put(first, "tls.crt", "tls.key", "ca.crt")
	if _, err := ReadIdentity(file("tls.crt"), file("tls.key"), file("tls.key"), logr.Discard()); err == nil {
		t.Error("a key was taken for authorities")
	}
	id, err := ReadIdentity(file("tls.crt"), file("tls.key"), file("ca.crt"), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	want := func(s certs.Set) {
		t.Helper()
		leaf, err := id.Current()
		if err != nil || !leaf.Leaf.Equal(s.Leaf().Leaf) || !id.Authorities().Equal(certs.Pool(time.Now(), s)) {
			t.Errorf("not the set that is wanted (%v)", err)
		}
	}
	want(first)
	put(second, "tls.crt")
	want(first)
	put(second, "tls.key", "ca.crt")
	want(second)
	if err := os.WriteFile(file("ca.crt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	want(second)
}

// A webhook's certificate is no identity: nobody is trusted by it.
func TestCertificateAloneTrustsNobody(t *testing.T) {
	v := newVault(t)
	if !v.cert.Authorities().Equal(x509.NewCertPool()) {
		t.Error("trusts somebody")
	}
}
