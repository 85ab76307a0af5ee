package certs

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// renewed is Renew where nothing can go wrong.
func renewed(t testing.TB, s Set, now time.Time, hosts ...string) Set {
	t.Helper()
	r, changed, err := Renew(s, hosts, now)
	if err != nil {
		t.Fatal(err)
	}
	if changed == r.Equal(s) {
		t.Errorf("at %v: changed is %t, Equal says otherwise", now.Sub(start), changed)
	}
	if again, changed, err := Renew(r, hosts, now); err != nil || changed {
		t.Errorf("at %v: what has just been renewed is renewed again (%t, %v)", now.Sub(start), changed, err)
	} else if !again.Usable(now) {
		t.Errorf("at %v: is not usable", now.Sub(start))
	}
	return r
}

// trusts returns nil if a client that trusts the authorities accepts the leaf as
// that host, and a server accepts it as a client.
func trusts(authorities *x509.CertPool, s Set, host string, now time.Time) error {
	_, err := s.leaf.cert.Verify(x509.VerifyOptions{Roots: authorities, CurrentTime: now, DNSName: host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if err == nil {
		_, err = s.leaf.cert.Verify(x509.VerifyOptions{Roots: authorities, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	}
	return err
}

func TestNewSet(t *testing.T) {
	hosts := []string{"hf.ns.svc", "127.0.0.1", "::1"}
	s := renewed(t, Set{}, start, hosts...)
	for _, host := range append(hosts, Subject) {
		if err := trusts(Pool(start, s), s, host, start); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{"other.ns.svc", "ns.svc", "127.0.0.2"} {
		if trusts(Pool(start, s), s, host, start) == nil {
			t.Errorf("%s: is covered", host)
		}
	}
	other := renewed(t, Set{}, start, hosts...)
	if trusts(Pool(start, other), s, Subject, start) == nil {
		t.Error("a leaf of another authority is trusted")
	}
	if s.SameIssuer(other) || !s.SameIssuer(s) || s.SameIssuer(Set{}) || (Set{}).SameIssuer(Set{}) {
		t.Error("SameIssuer does not tell authorities apart")
	}
	if (Set{}).Usable(start) || s.Usable(start.Add(91*day)) || s.Usable(start.Add(-2*time.Hour)) {
		t.Error("usable without a certificate, or outside its time")
	}
}

// The leaf is not an authority: it can sign for nobody.
func TestLeafSignsNothing(t *testing.T) {
	s := renewed(t, Set{}, start)
	forged, err := newLeaf(s.leaf, []string{"evil"}, start)
	if err != nil {
		t.Fatal(err)
	}
	intermediate := x509.NewCertPool()
	intermediate.AddCert(s.leaf.cert)
	if _, err := forged.cert.Verify(x509.VerifyOptions{Roots: Pool(start, s), Intermediates: intermediate, CurrentTime: start}); err == nil {
		t.Error("a certificate signed by a leaf is trusted")
	}
}

// A set through its life, looked at now and then.
func TestLife(t *testing.T) {
	type shape struct {
		authorities int
		newLeaf     bool
		sameIssuer  bool
	}
	steps := []struct {
		at   time.Duration
		want shape
	}{
		{time.Minute, shape{1, false, true}},
		{59 * day, shape{1, false, true}},
		{60 * day, shape{1, true, true}},
		{119 * day, shape{1, false, true}},
		{120 * day, shape{1, true, true}},
		{180 * day, shape{1, true, true}},
		{240 * day, shape{1, true, true}},
		{243 * day, shape{1, false, true}},
		{244 * day, shape{2, false, true}},             // the next authority is announced
		{245*day - time.Minute, shape{2, false, true}}, // and signs nothing yet
		{245 * day, shape{2, true, false}},
		{246*day - time.Minute, shape{2, false, true}}, // somebody may show the old leaf
		{246 * day, shape{1, false, true}},
		{305 * day, shape{1, true, true}},
		{2000 * day, shape{1, true, false}}, // asleep for years: all anew
		{2001 * day, shape{1, false, true}},
	}
	s := renewed(t, Set{}, start)
	for _, step := range steps {
		next := renewed(t, s, start.Add(step.at))
		got := shape{len(next.authorities), !same(next.leaf, s.leaf), next.SameIssuer(s)}
		if got != step.want {
			t.Errorf("at %v: %+v, want %+v", step.at, got, step.want)
		}
		s = next
	}
}

// A leaf that covers too little, is of somebody else, or is for another use.
func TestLeafMadeAnew(t *testing.T) {
	good := renewed(t, Set{}, start, "a")
	with := func(change func(*x509.Certificate)) Set {
		s := good
		template := *s.leaf.cert
		change(&template)
		var err error
		if s.leaf, err = sign(&template, &s.authorities[0]); err != nil {
			t.Fatal(err)
		}
		return s
	}
	stranger := good
	stranger.leaf = renewed(t, Set{}, start, "a").leaf
	for name, s := range map[string]Set{
		"no leaf":              {authorities: good.authorities},
		"another host":         renewed(t, good, start, "b"),
		"of another authority": stranger,
		"of another subject":   with(func(c *x509.Certificate) { c.Subject.CommonName, c.RawSubject = "other", nil }),
		"not for clients":      with(func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }),
		"not valid yet":        with(func(c *x509.Certificate) { c.NotBefore = start.Add(2 * day) }),
	} {
		r := renewed(t, s, start, "a")
		if same(r.leaf, s.leaf) || len(r.authorities) != 1 || !same(r.authorities[0], good.authorities[0]) {
			t.Errorf("%s: the leaf is not made anew by the same authority", name)
		}
	}
}

// watcher is a replica, or who fills the bundle: it looks at the set now and then.
type watcher struct {
	set    Set
	bundle []byte
	looked time.Time
}

func (w *watcher) look(current Set, now time.Time) {
	w.set, w.bundle, w.looked = current, Bundle(w.bundle, now, current), now
}

// Replicas look at the set now and then, some of them late by almost a day, and
// so does whoever fills the bundle; hosts change, and all sleep for weeks. None
// ever shows a leaf that another one, or the bundle, does not trust.
func TestNobodyIsEverDistrusted(t *testing.T) {
	signed := map[[2]string]bool{} // authority, leaf -> it has signed it; that costs most of the time
	trusted := func(by []pair, leaf pair) bool {
		return slices.ContainsFunc(by, func(a pair) bool {
			key := [2]string{string(a.cert.Raw), string(leaf.cert.Raw)}
			is, known := signed[key]
			if !known {
				is = leaf.cert.CheckSignatureFrom(a.cert) == nil
				signed[key] = is
			}
			return is
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		now, current, watchers := start, Set{}, make([]watcher, 4)
		for i := range rapid.IntRange(1, 20).Draw(t, "steps") {
			step := time.Duration(rapid.IntRange(0, 23*60).Draw(t, "minutes")) * time.Minute
			asleep := time.Duration(max(0, rapid.IntRange(-60, 60).Draw(t, "days"))) * day
			for j := range watchers {
				if w := &watchers[j]; i > 0 && now.Add(step).Sub(w.looked) >= Overlap {
					w.look(current, now)
				}
			}
			now = now.Add(step)
			var err error
			if current, _, err = Renew(current, rapid.SampledFrom([][]string{nil, {"a"}}).Draw(t, "hosts"), now); err != nil {
				t.Fatal(err)
			}
			for j := range watchers {
				if i == 0 || rapid.Bool().Draw(t, "looks") {
					watchers[j].look(current, now)
				}
			}
			for j := range watchers {
				leaf := watchers[j].set.leaf
				for k := range watchers {
					if !trusted(watchers[k].set.authorities, leaf) || !trusted(livingIn(watchers[k].bundle, now), leaf) {
						t.Fatalf("what %d shows is not trusted by %d", j, k)
					}
				}
			}
			if asleep > 0 {
				now = now.Add(asleep)
				for j := range watchers {
					watchers[j].look(current, now)
				}
			}
		}
	})
}

// The leaf as TLS uses it, in both roles.
func TestHandshake(t *testing.T) {
	s := renewed(t, Set{}, start)
	at := func() time.Time { return start }
	ours, theirs := net.Pipe()
	server := tls.Server(theirs, &tls.Config{Certificates: []tls.Certificate{*s.Leaf()}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: Pool(start, s), Time: at})
	client := tls.Client(ours, &tls.Config{Certificates: []tls.Certificate{*s.Leaf()}, RootCAs: Pool(start, s), ServerName: Subject, Time: at})
	shaken := make(chan error, 1)
	go func() { shaken <- server.Handshake() }()
	if err := client.Handshake(); err != nil {
		t.Error(err)
	}
	if err := <-shaken; err != nil {
		t.Error(err)
	}
}
