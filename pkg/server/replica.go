package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/julienschmidt/httprouter"

	"heteroflow.io/heteroflow/pkg/certs"
)

// Identity is what a replica shows the others, and whom it believes them.
type Identity interface {
	Shown
	// Authorities are those whose certificates are believed now.
	Authorities() *x509.CertPool
}

// What a replica tells the one that it sends a request to, in milliseconds: how
// long a bind may still write, and how long the request may be held.
const (
	withinHeader = "Heteroflow-Bind-Within-Ms"
	holdHeader   = "Heteroflow-Hold-Ms"
)

func mark(h http.Header, within, hold time.Duration) {
	h.Set(withinHeader, strconv.FormatInt(max(0, within.Milliseconds()), 10))
	h.Set(holdHeader, strconv.FormatInt(max(0, hold.Milliseconds()), 10))
}

// marked reads a mark: never more than most, whatever the sender says.
func marked(h http.Header, name string, most time.Duration) (time.Duration, error) {
	ms, err := strconv.ParseUint(h.Get(name), 10, 32)
	if err != nil {
		return 0, bad("%s: %q is no number of milliseconds", name, h.Get(name))
	}
	return min(most, time.Duration(ms)*time.Millisecond), nil
}

// forwarded answers what another replica sends on. It is not sent on again: one
// that does not decide says so, and the sender looks anew who does.
func (s *Server) forwarded(decide handler) httprouter.Handle {
	return func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		arrived := time.Now()
		within, err := marked(r.Header, withinHeader, s.cfg.BindTimeout)
		if err != nil {
			refuse(w, err)
			return
		}
		left, err := marked(r.Header, holdHeader, holdTime)
		if err != nil {
			refuse(w, err)
			return
		}
		if why, ok := s.comesToDecide(r.Context(), hold{left: left}); !ok {
			http.Error(w, why, http.StatusMisdirectedRequest)
			return
		}
		decide(w, r, s.here(arrived.Add(within)))
	}
}

// comesToDecide waits until this replica decides, if it leads already.
func (s *Server) comesToDecide(ctx context.Context, h hold) (why string, ok bool) {
	for {
		seen := s.leading()
		switch {
		case seen.Here:
			return "", true
		case seen.Leader != s.cfg.Replicas.Self || seen.Leader == "":
			return "", false
		case !h.wait(ctx, seen, holdTime):
			return seen.Why, false
		}
	}
}

// ServeReplicas is Serve for other replicas alone: over TLS 1.3, to clients with
// a certificate of one of id's authorities and of the one subject.
func ServeReplicas(ctx context.Context, l net.Listener, h http.Handler, longest time.Duration, id Identity) error {
	return serve(ctx, l, h, longest, func(srv *http.Server, l net.Listener) error {
		srv.TLSConfig = &tls.Config{
			MinVersion: tls.VersionTLS13,
			// Asked anew for each connection, since authorities come and go.
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return listening(id), nil },
		}
		srv.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: mostStreams}
		return srv.ServeTLS(l, "", "")
	})
}

func listening(id Identity) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS13,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: getCertificate(id),
		ClientAuth:     tls.RequireAndVerifyClientCert,
		ClientCAs:      authorities(id),
		// A session that is taken up again would outlive its authority.
		SessionTicketsDisabled: true,
		VerifyConnection:       isReplica,
	}
}

// authorities are never nil, which would stand for those of the machine.
func authorities(id Identity) *x509.CertPool {
	if pool := id.Authorities(); pool != nil {
		return pool
	}
	return x509.NewCertPool()
}

// isReplica refuses certificates of our authorities that are not for a replica:
// where they are somebody else's, they may have signed others.
func isReplica(c tls.ConnectionState) error {
	if len(c.PeerCertificates) == 0 {
		return errors.New("no certificate")
	}
	if name := c.PeerCertificates[0].Subject.CommonName; name != certs.Subject {
		return fmt.Errorf("certificate of %q, want %q", name, certs.Subject)
	}
	return nil
}

// Limits of a connection to another replica.
const (
	dialTime = 2 * time.Second
	// A connection of which nothing comes any more is noticed after quietTime and
	// pingTime, not when an answer is overdue. Not sooner: a peer that is merely
	// busy would be cut off with all that it works on.
	quietTime = 5 * time.Second
	pingTime  = 5 * time.Second
	// mostStreams lets all that a replica may send on share one connection.
	mostStreams = 2 * mostWaiting / leastWaiting
	// mostConns keeps the requests that have waited for a new leader from all
	// shaking hands with it at once.
	mostConns = 4
	// idlePeer lies below idleTime, for the reason given there.
	idlePeer = 90 * time.Second
)

// ReplicaTransport leads to the replica listeners of others.
func ReplicaTransport(id Identity) *http.Transport {
	return &http.Transport{
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialReplica(ctx, network, address, id)
		},
		ForceAttemptHTTP2:   true,
		DisableCompression:  true,
		MaxConnsPerHost:     mostConns,
		MaxIdleConnsPerHost: mostConns,
		IdleConnTimeout:     idlePeer,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: quietTime, PingTimeout: pingTime},
	}
}

func dialReplica(ctx context.Context, network, address string, id Identity) (net.Conn, error) {
	ctx, stop := context.WithTimeout(ctx, dialTime)
	defer stop()
	own, err := id.Current()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	dialer := tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
		Certificates: []tls.Certificate{*own},
		RootCAs:      authorities(id), ServerName: certs.Subject, VerifyConnection: isReplica,
	}}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	return conn, nil
}

// newClient follows no redirects: a replica gives none.
func newClient(through http.RoundTripper) http.Client {
	return http.Client{
		Transport:     through,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
