package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Limits of one request. A bind takes longest to answer.
const (
	headerTime = 5 * time.Second
	readTime   = 30 * time.Second
	// idleTime lies above the 90 s after which kube-scheduler's client closes
	// an idle connection itself. Were we the first, a request could meet the
	// closing, and a POST is not sent again.
	idleTime = 5 * time.Minute
)

// Serve answers requests on l until ctx ends; then it takes no new ones, and
// returns when those in progress have ended, or after longest. It closes l.
// What longest bounds is also the time that one answer may take.
func Serve(ctx context.Context, l net.Listener, h http.Handler, longest time.Duration) error {
	return serve(ctx, l, h, longest, (*http.Server).Serve)
}

// Shown is the certificate that a listener shows. It may change.
type Shown interface {
	// Current returns the one to show now.
	Current() (*tls.Certificate, error)
}

func getCertificate(c Shown) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.Current() }
}

// ServeTLS is Serve over TLS, with certificates of c.
func ServeTLS(ctx context.Context, l net.Listener, h http.Handler, longest time.Duration, c Shown) error {
	return serve(ctx, l, h, longest, func(srv *http.Server, l net.Listener) error {
		srv.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: getCertificate(c)}
		return srv.ServeTLS(l, "", "")
	})
}

func serve(ctx context.Context, l net.Listener, h http.Handler, longest time.Duration, answer func(*http.Server, net.Listener) error) error {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       readTime,
		WriteTimeout:      longest,
		IdleTimeout:       idleTime,
		BaseContext:       func(net.Listener) context.Context { return ctx }, // for its logger
	}
	ended := make(chan error, 1)
	go func() { ended <- answer(srv, l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), longest)
	defer stop()
	err := srv.Shutdown(grace)
	if err != nil {
		err = fmt.Errorf("stop serving %s: %w", l.Addr(), errors.Join(err, srv.Close()))
	}
	<-ended
	return err
}

// CheckLoopback refuses an address that others than this machine could reach.
func CheckLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q is not a loopback host: whoever reaches this address can bind pods", host)
	}
	return nil
}
