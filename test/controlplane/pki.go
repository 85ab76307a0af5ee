package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// credentials are the files that one start of the control plane writes.
type credentials struct {
	ca, serverCert, serverKey  string
	accountPublic, accountKey  string // sign and check the tokens of service accounts
	admin, scheduler, extender string // kubeconfigs of those outside the process
	controllerManager          string // kubeconfig of the one inside
	pool                       *x509.CertPool
}

// client is somebody who talks to the API server: whom the certificate names,
// and so what RBAC lets it do.
type client struct {
	file   string
	user   string
	groups []string
}

// clients are all kubeconfigs. The extender is given a service account's name
// and groups, so that RBAC treats it as it would the pod in a real cluster.
var clients = []client{
	{"admin.kubeconfig", "controlplane-admin", []string{"system:masters"}},
	{"scheduler.kubeconfig", "system:kube-scheduler", nil},
	{"extender.kubeconfig", "system:serviceaccount:heteroflow-system:heteroflow-scheduler", []string{
		"system:serviceaccounts", "system:serviceaccounts:heteroflow-system", "system:authenticated"}},
	{"controller-manager.kubeconfig", "system:kube-controller-manager", nil},
}

// writeCredentials makes a new authority and all that it signs, under dir.
func writeCredentials(dir string, port int) (credentials, error) {
	a, err := newAuthority()
	if err != nil {
		return credentials{}, err
	}
	w := writer{dir: dir}
	c := credentials{pool: x509.NewCertPool(), ca: w.write("ca.crt", a.pem)}
	c.pool.AddCert(a.cert)
	c.serverCert, c.serverKey = w.pair("server.crt", "server.key", a.server())
	c.accountPublic, c.accountKey = w.pair("accounts.pub", "accounts.key", newAccountKey())
	paths := make([]string, len(clients))
	for i, who := range clients {
		p := a.client(who)
		w.fail(p.err)
		paths[i] = w.write(who.file, kubeconfig(who.user, port, a.pem, p))
	}
	c.admin, c.scheduler, c.extender, c.controllerManager = paths[0], paths[1], paths[2], paths[3]
	return c, w.err
}

// writer writes files that only their owner may read. The first error stays.
type writer struct {
	dir string
	err error
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *writer) write(name string, content []byte) string {
	path := filepath.Join(w.dir, name)
	w.fail(os.WriteFile(path, content, 0o600))
	return path
}

func (w *writer) pair(public, private string, p pair) (publicPath, privatePath string) {
	w.fail(p.err)
	return w.write(public, p.public), w.write(private, p.private)
}

// pair is a certificate or public key and the private key to it, in PEM.
type pair struct {
	public, private []byte
	err             error
}

// authority signs certificates.
type authority struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	pem    []byte
	serial int64
}

func newAuthority() (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "controlplane-ca"},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(1, 0, 0),
		IsCA:         true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{cert: cert, key: key, pem: encode("CERTIFICATE", der), serial: 1}, err
}

func (a *authority) server() pair {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
	})
}

func (a *authority) client(c client) pair {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: c.user, Organization: c.groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// sign completes the template and signs it.
func (a *authority) sign(template *x509.Certificate) pair {
	key, err := newKey()
	if err != nil {
		return pair{err: err}
	}
	a.serial++
	template.SerialNumber = big.NewInt(a.serial)
	template.NotBefore, template.NotAfter = a.cert.NotBefore, a.cert.NotAfter
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return pair{err: err}
	}
	return keyPair("CERTIFICATE", der, key)
}

func newAccountKey() pair {
	key, err := newKey()
	if err != nil {
		return pair{err: err}
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return pair{err: err}
	}
	return keyPair("PUBLIC KEY", der, key)
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func keyPair(kind string, public []byte, key *ecdsa.PrivateKey) pair {
	private, err := x509.MarshalECPrivateKey(key)
	return pair{encode(kind, public), encode("EC PRIVATE KEY", private), err}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// kubeconfig is a file that holds all it needs, so that it can be moved.
func kubeconfig(user string, port int, ca []byte, p pair) []byte {
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: controlplane
contexts:
- name: controlplane
  context: {cluster: controlplane, user: %[1]q}
clusters:
- name: controlplane
  cluster:
    server: https://127.0.0.1:%[2]d
    certificate-authority-data: %[3]s
users:
- name: %[1]q
  user:
    client-certificate-data: %[4]s
    client-key-data: %[5]s
`, user, port, b64(ca), b64(p.public), b64(p.private))
}
