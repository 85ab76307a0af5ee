package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"time"
)

// Subject is the one name of all replicas: the common name of the leaf, and a DNS
// name in it.
const Subject = "heteroflow-scheduler"

const (
	// authorityLife is short enough that renewing it is nothing special.
	authorityLife = 365 * 24 * time.Hour
	leafLife      = 90 * 24 * time.Hour
	// Overlap is how long an authority is trusted before it signs and after what
	// it has signed is out of use.
	Overlap = 24 * time.Hour
	// skew is how far clocks may differ: certificates begin so long before they
	// are made.
	skew = time.Hour
)

// pair is a certificate and its key. An authority whose key is nil is trusted,
// and signs nothing.
type pair struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// made is when the certificate was made.
func (p pair) made() time.Time { return p.cert.NotBefore.Add(skew) }

// living reports whether it is valid at that time.
func (p pair) living(now time.Time) bool {
	return !now.Before(p.cert.NotBefore) && now.Before(p.cert.NotAfter)
}

// due reports whether two thirds of its life are over.
func (p pair) due(now time.Time) bool {
	made := p.made()
	return !now.Before(made.Add(p.cert.NotAfter.Sub(made) / 3 * 2))
}

func newAuthority(now time.Time) (pair, error) {
	return sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: Subject + " authority of " + now.UTC().Format(time.DateOnly)},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
	}, nil)
}

// newLeaf makes one for the hosts, names or IP addresses. It does not outlive its
// authority.
func newLeaf(by pair, hosts []string, now time.Time) (pair, error) {
	end := now.Add(leafLife)
	if by.cert.NotAfter.Before(end) {
		end = by.cert.NotAfter
	}
	leaf := &x509.Certificate{
		Subject:               pkix.Name{CommonName: Subject},
		NotBefore:             now.Add(-skew),
		NotAfter:              end,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		DNSNames:              []string{Subject},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, h)
		}
	}
	return sign(leaf, &by)
}

// sign makes a key and its certificate, signed by the authority, or by itself.
func sign(template *x509.Certificate, by *pair) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("make a key: %w", err)
	}
	if by == nil {
		by = &pair{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
	if err != nil {
		return pair{}, fmt.Errorf("sign a certificate of %q: %w", template.Subject.CommonName, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return pair{}, fmt.Errorf("read back a certificate of %q: %w", template.Subject.CommonName, err)
	}
	return pair{cert, key}, nil
}
