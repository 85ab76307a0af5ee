package server

import (
	"crypto/tls"
	"os"
	"sync"

	"k8s.io/klog/v2"
)

// Certificate is a certificate and its key in two files, which are read again
// when they have changed: whoever renews certificates need not know of us. While
// the new ones cannot be read (one is written before the other) the last good
// pair stays in use.
type Certificate struct {
	files  [2]string // certificate, key
	logger klog.Logger

	mu      sync.Mutex
	pair    *tls.Certificate // guarded by mu
	read    [2]os.FileInfo   // guarded by mu; the files that pair was read from
	failing bool             // guarded by mu; at the last look, which was logged
}

// ReadCertificate reads the files for the first time, when both have to be good.
func ReadCertificate(certFile, keyFile string, logger klog.Logger) (*Certificate, error) {
	c := &Certificate{files: [2]string{certFile, keyFile}, logger: logger}
	info, err := c.look()
	if err != nil {
		return nil, err
	}
	return c, c.load(info)
}

// get is a tls.Config's GetCertificate.
func (c *Certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.renew()
	if err != nil && !c.failing {
		c.logger.Error(err, "the new certificate cannot be read, the last one stays in use", "file", c.files[0], "key", c.files[1])
	}
	c.failing = err != nil
	return c.pair, nil
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
func (c *Certificate) look() (info [2]os.FileInfo, err error) {
	for i, file := range c.files {
		if info[i], err = os.Stat(file); err != nil {
			return info, err
		}
	}
	return info, nil
}

func (c *Certificate) load(info [2]os.FileInfo) error {
	pair, err := tls.LoadX509KeyPair(c.files[0], c.files[1])
	if err != nil {
		return err
	}
	c.pair, c.read = &pair, info
	return nil
}

func same(a, b [2]os.FileInfo) bool {
	for i := range a {
		if !os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() || !a[i].ModTime().Equal(b[i].ModTime()) {
			return false
		}
	}
	return true
}
