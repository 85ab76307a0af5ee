package certs

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"time"
)

// Set is all that the replicas share. It is never changed, only replaced. The
// zero Set has nothing.
type Set struct {
	authorities []pair // oldest first
	leaf        pair
}

// Renew returns the set as it has to be at that time, for a leaf that covers
// those hosts, and whether that is another one.
func Renew(s Set, hosts []string, now time.Time) (renewed Set, changed bool, err error) {
	r := Set{leaf: s.leaf}
	for _, a := range s.authorities {
		if a.living(now) {
			r.authorities = append(r.authorities, a)
		}
	}
	if r.wantsAuthority(now) {
		a, err := newAuthority(now)
		if err != nil {
			return s, false, err
		}
		r.authorities = append(r.authorities, a)
	}
	signer := r.signer(now)
	if !r.serves(r.authorities[signer], hosts, now) {
		if r.leaf, err = newLeaf(r.authorities[signer], hosts, now); err != nil {
			return s, false, err
		}
	}
	if !now.Before(r.leaf.made().Add(Overlap)) {
		r.authorities = r.authorities[signer:] // nobody shows what the others have signed
	}
	return r, !s.Equal(r), nil
}

// wantsAuthority reports whether the next authority has to be made.
func (s Set) wantsAuthority(now time.Time) bool {
	if len(s.authorities) == 0 {
		return true
	}
	newest := s.authorities[len(s.authorities)-1]
	return newest.key == nil || newest.due(now)
}

// signer is the place of the authority that signs: the newest that all have had
// the time to learn of, or, where there is none, the one known longest.
func (s Set) signer(now time.Time) int {
	for i, a := range slices.Backward(s.authorities) {
		if a.key != nil && !now.Before(a.made().Add(Overlap)) {
			return i
		}
	}
	return slices.IndexFunc(s.authorities, func(a pair) bool { return a.key != nil })
}

// serves reports whether the leaf is as it has to be.
func (s Set) serves(by pair, hosts []string, now time.Time) bool {
	l := s.leaf
	return l.cert != nil && l.living(now) && !l.due(now) && l.cert.Subject.CommonName == Subject &&
		l.cert.CheckSignatureFrom(by.cert) == nil && l.covers(hosts)
}

// covers reports whether the certificate is for all these hosts, and for clients
// and servers.
func (p pair) covers(hosts []string) bool {
	for _, h := range append([]string{Subject}, hosts...) {
		if p.cert.VerifyHostname(h) != nil {
			return false
		}
	}
	return slices.Contains(p.cert.ExtKeyUsage, x509.ExtKeyUsageServerAuth) && slices.Contains(p.cert.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
}

// Equal reports whether both sets have the same certificates.
func (s Set) Equal(other Set) bool {
	return same(s.leaf, other.leaf) && slices.EqualFunc(s.authorities, other.authorities, func(a, b pair) bool {
		return same(a, b) && (a.key == nil) == (b.key == nil)
	})
}

func same(a, b pair) bool {
	if a.cert == nil || b.cert == nil {
		return a.cert == b.cert
	}
	return a.cert.Equal(b.cert)
}

// Usable reports whether the leaf, and the authority that has signed it, are
// valid at that time.
func (s Set) Usable(now time.Time) bool {
	by, ok := s.issuer()
	return ok && by.living(now) && s.leaf.living(now)
}

// issuer is the authority that has signed the leaf.
func (s Set) issuer() (pair, bool) {
	if s.leaf.cert == nil {
		return pair{}, false
	}
	i := slices.IndexFunc(s.authorities, func(a pair) bool { return s.leaf.cert.CheckSignatureFrom(a.cert) == nil })
	if i < 0 {
		return pair{}, false
	}
	return s.authorities[i], true
}

// Leaf is what is shown.
func (s Set) Leaf() *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{s.leaf.cert.Raw}, PrivateKey: s.leaf.key, Leaf: s.leaf.cert}
}

// Expiry is when the leaf, and the authority that has signed it, end.
func (s Set) Expiry() (leaf, authority time.Time) {
	if by, ok := s.issuer(); ok {
		return s.leaf.cert.NotAfter, by.cert.NotAfter
	}
	return leaf, authority
}

// SameIssuer reports whether both leaves are of one authority.
func (s Set) SameIssuer(other Set) bool {
	a, ok := s.issuer()
	b, too := other.issuer()
	return ok && too && a.cert.Equal(b.cert)
}

// Pool is what a replica has to trust at that time: the authorities of the
// current set, and until a day after its leaf was made those of the others, as
// some replica may show a leaf of theirs.
func Pool(now time.Time, current Set, others ...Set) *x509.CertPool {
	pool := x509.NewCertPool()
	if now.Before(current.leaf.made().Add(Overlap)) {
		current.authorities = slices.Concat(current.authorities, all(others))
	}
	for _, a := range current.authorities {
		pool.AddCert(a.cert)
	}
	return pool
}

// all are the authorities of these sets.
func all(sets []Set) (authorities []pair) {
	for _, s := range sets {
		authorities = append(authorities, s.authorities...)
	}
	return authorities
}
