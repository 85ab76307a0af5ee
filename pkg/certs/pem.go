package certs

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The names under which a Secret has a set. Those of the leaf are Kubernetes'
// own, for a Secret of type kubernetes.io/tls.
const (
	authoritiesFile = "ca.crt" // oldest first
	signersFile     = "ca.key" // of those that can sign, in any order
	leafFile        = "tls.crt"
	leafKeyFile     = "tls.key"
)

const (
	certBlock = "CERTIFICATE"
	keyBlock  = "PRIVATE KEY" // PKCS 8
)

// Files is the set as a Secret has it: name -> PEM.
func (s Set) Files() (map[string][]byte, error) {
	var signers bytes.Buffer
	for _, a := range s.authorities {
		if a.key == nil {
			continue
		}
		if err := writeKey(&signers, a.key); err != nil {
			return nil, err
		}
	}
	var leaf, key bytes.Buffer
	write(&leaf, certBlock, s.leaf.cert.Raw)
	if err := writeKey(&key, s.leaf.key); err != nil {
		return nil, err
	}
	return map[string][]byte{
		authoritiesFile: bundle(s.authorities), signersFile: signers.Bytes(),
		leafFile: leaf.Bytes(), leafKeyFile: key.Bytes(),
	}, nil
}

func write(to *bytes.Buffer, kind string, der []byte) {
	_ = pem.Encode(to, &pem.Block{Type: kind, Bytes: der}) // a buffer takes everything
}

func writeKey(to *bytes.Buffer, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("write a key: %w", err)
	}
	write(to, keyBlock, der)
	return nil
}

func bundle(of []pair) []byte {
	var b bytes.Buffer
	for _, p := range of {
		write(&b, certBlock, p.cert.Raw)
	}
	return b.Bytes()
}

// Parse reads a set. Its error names the file that is not as it has to be.
func Parse(files map[string][]byte) (Set, error) {
	var s Set
	authorities, err := readCerts(files, authoritiesFile)
	if err != nil {
		return Set{}, err
	}
	for _, cert := range authorities {
		if !cert.IsCA {
			return Set{}, fmt.Errorf("%s: %q is no authority", authoritiesFile, cert.Subject.CommonName)
		}
		s.authorities = append(s.authorities, pair{cert: cert})
	}
	if err := s.readSigners(files); err != nil {
		return Set{}, err
	}
	if err := s.readLeaf(files); err != nil {
		return Set{}, err
	}
	return s, nil
}

func (s *Set) readSigners(files map[string][]byte) error {
	keys, err := readKeys(files, signersFile)
	if err != nil {
		return err
	}
	for _, key := range keys {
		found := false
		for i := range s.authorities {
			if belongs(key, s.authorities[i].cert) {
				s.authorities[i].key, found = key, true
			}
		}
		if !found {
			return fmt.Errorf("%s: has a key of no authority in %s", signersFile, authoritiesFile)
		}
	}
	return nil
}

func (s *Set) readLeaf(files map[string][]byte) error {
	certs, err := readCerts(files, leafFile)
	if err != nil {
		return err
	}
	keys, err := readKeys(files, leafKeyFile)
	if err != nil {
		return err
	}
	if len(certs) != 1 || len(keys) != 1 || !belongs(keys[0], certs[0]) {
		return fmt.Errorf("%s, %s: are not one certificate and its key", leafFile, leafKeyFile)
	}
	s.leaf = pair{certs[0], keys[0]}
	if _, ok := s.issuer(); !ok {
		return fmt.Errorf("%s: is of no authority in %s", leafFile, authoritiesFile)
	}
	return nil
}

func belongs(key crypto.Signer, cert *x509.Certificate) bool {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(cert.PublicKey)
}

// blocks returns what the file has, all of the kind.
func blocks(files map[string][]byte, name, kind string) ([][]byte, error) {
	var all [][]byte
	for rest := files[name]; len(bytes.TrimSpace(rest)) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != kind {
			return nil, fmt.Errorf("%s: is not PEM of the kind %s alone", name, kind)
		}
		all = append(all, block.Bytes)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: is missing or empty", name)
	}
	return all, nil
}

func readCerts(files map[string][]byte, name string) ([]*x509.Certificate, error) {
	ders, err := blocks(files, name, certBlock)
	if err != nil {
		return nil, err
	}
	all := make([]*x509.Certificate, len(ders))
	for i, der := range ders {
		if all[i], err = x509.ParseCertificate(der); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}

func readKeys(files map[string][]byte, name string) ([]crypto.Signer, error) {
	ders, err := blocks(files, name, keyBlock)
	if err != nil {
		return nil, err
	}
	all := make([]crypto.Signer, len(ders))
	for i, der := range ders {
		key, err := x509.ParsePKCS8PrivateKey(der)
		if err == nil {
			var ok bool
			if all[i], ok = key.(crypto.Signer); !ok {
				err = errors.New("a key that cannot sign")
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}

// Bundle is what a client has to trust at that time, as PEM, given what it trusts:
// the authorities of these sets, and until a day after the first one's leaf was
// made also those that were found, as some replica may show a leaf of theirs.
func Bundle(found []byte, now time.Time, current Set, others ...Set) []byte {
	trusted := slices.Clone(current.authorities)
	if now.Before(current.leaf.made().Add(Overlap)) {
		trusted = append(trusted, livingIn(found, now)...) // in their order, or replicas would change it for ever
	}
	return bundle(once(append(trusted, all(others)...)))
}

// once leaves out those that come a second time.
func once(of []pair) (different []pair) {
	for _, p := range of {
		if !slices.ContainsFunc(different, func(known pair) bool { return same(known, p) }) {
			different = append(different, p)
		}
	}
	return different
}

// livingIn are the authorities in a bundle that are valid. What else there is in
// it is of no use to anybody.
func livingIn(found []byte, now time.Time) (living []pair) {
	for block, rest := pem.Decode(found); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err == nil && cert.IsCA && (pair{cert: cert}).living(now) {
			living = append(living, pair{cert: cert})
		}
	}
	return living
}
