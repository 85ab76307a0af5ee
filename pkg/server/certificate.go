package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"

	"k8s.io/klog/v2"
)

// Certificate is a certificate and its key in two files, and for a replica in a
// third the authorities that it believes. They are read again when they have
// changed: whoever renews certificates need not know of us. While the new ones
// cannot be read (one is written before the other) the last good ones stay in use.
type Certificate struct {
	files  []string // certificate, key, perhaps authorities
	logger klog.Logger

	mu      sync.Mutex
	pair    *tls.Certificate // guarded by mu
	pool    *x509.CertPool   // guarded by mu; empty without a file of authorities
	read    []os.FileInfo    // guarded by mu; the files that pair and pool were read from
	failing bool             // guarded by mu; at the last look, which was logged
}

// ReadCertificate reads the files for the first time, when both have to be good.
func ReadCertificate(certFile, keyFile string, logger klog.Logger) (*Certificate, error) {
	return readFiles([]string{certFile, keyFile}, logger)
}

// ReadIdentity does that for a replica.
func ReadIdentity(certFile, keyFile, caFile string, logger klog.Logger) (*Certificate, error) {
	return readFiles([]string{certFile, keyFile, caFile}, logger)
}

func readFiles(files []string, logger klog.Logger) (*Certificate, error) {
	c := &Certificate{files: files, logger: logger}
	info, err := c.look()
	if err != nil {
		return nil, err
	}
	return c, c.load(info)
}

// Current returns the certificate as the files have it now.
func (c *Certificate) Current() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh()
	return c.pair, nil
}

// Authorities returns those that the file has now.
func (c *Certificate) Authorities() *x509.CertPool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh()
	return c.pool
}

// refresh renews if it can, and says once if it cannot.
func (c *Certificate) refresh() {
	err := c.renew()
	if err != nil && !c.failing {
		c.logger.Error(err, "the new certificate cannot be read, the last one stays in use", "files", c.files)
	}
	c.failing = err != nil
}

// renew reads the files if they are others than those that were read.
func (c *Certificate) renew() error {
	info, err := c.look()
	if err != nil || same(info, c.read) {
		return err
	}
	if err := c.load(info); err != nil {
		return err
	}
	c.logger.Info("certificate read again", "file", c.files[0])
	return nil
}

// look is done before reading: a file that changes in between differs from it,
// and is read once more.
func (c *Certificate) look() (info []os.FileInfo, err error) {
	info = make([]os.FileInfo, len(c.files))
	for i, file := range c.files {
		if info[i], err = os.Stat(file); err != nil {
			return info, err
		}
	}
	return info, nil
}

func (c *Certificate) load(info []os.FileInfo) error {
	pair, err := tls.LoadX509KeyPair(c.files[0], c.files[1])
	if err != nil {
		return err
	}
	pool, err := c.loadPool()
	if err != nil {
		return err
	}
	c.pair, c.pool, c.read = &pair, pool, info
	return nil
}

func (c *Certificate) loadPool() (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if len(c.files) == 2 {
		return pool, nil
	}
	text, err := os.ReadFile(c.files[2])
	if err == nil && !pool.AppendCertsFromPEM(text) {
		err = fmt.Errorf("%s: no certificate in it", c.files[2])
	}
	return pool, err
}

func same(a, b []os.FileInfo) bool {
	for i := range a {
		if !os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() || !a[i].ModTime().Equal(b[i].ModTime()) {
			return false
		}
	}
	return true
}
