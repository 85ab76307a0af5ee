package faults

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Proxy forwards requests, as far as its rules let it. All methods are safe for
// concurrent use.
type Proxy struct {
	server   *http.Server
	listener net.Listener
	forward  *httputil.ReverseProxy

	mu      sync.Mutex
	rules   []*rule         // guarded by mu; the first that matches counts
	watches map[*watch]bool // guarded by mu; those that are open
}

// rule is for so many requests; forever if left is negative.
type rule struct {
	matches Match
	left    int
	act     Action
}

// Match says for which requests a rule is.
type Match func(*http.Request) bool

// Action does something with one request. Without a call of pass it is never
// forwarded.
type Action func(w http.ResponseWriter, r *http.Request, pass http.Handler)

// New starts a proxy on a loopback port. Requests go to upstream by transport,
// nil being the default one.
func New(upstream string, transport http.RoundTripper) (*Proxy, error) {
	to, err := url.Parse(upstream)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, watches: map[*watch]bool{}}
	p.forward = &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // a watch is told at once
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Header.Set("Accept-Encoding", "identity") // the frames of a watch are looked for
		},
		ModifyResponse: p.follow,
		ErrorLog:       log.New(io.Discard, "", 0), // cut connections are what it is for
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

// URL is where the proxy answers.
func (p *Proxy) URL() string { return "http://" + p.listener.Addr().String() }

// Close ends the proxy and all that goes through it.
func (p *Proxy) Close() { _ = p.server.Close() }

// On adds a rule for the next so many requests that match, all of them if times
// is 0. A later rule goes before an earlier one.
func (p *Proxy) On(matches Match, times int, act Action) {
	if times == 0 {
		times = -1
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append([]*rule{{matches, times, act}}, p.rules...)
}

// Clear drops all rules.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
}

// CutWatches closes the connections of all open watches, and says how many.
func (p *Proxy) CutWatches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.watches {
		w.cut()
	}
	return len(p.watches)
}

// Replay sends, to every open watch, the events again that it has been sent
// before and that contain the text; it says how many.
func (p *Proxy) Replay(text string) (sent int) {
	p.mu.Lock()
	open := make([]*watch, 0, len(p.watches))
	for w := range p.watches {
		open = append(open, w)
	}
	p.mu.Unlock()
	for _, w := range open {
		sent += w.replay(text)
	}
	return sent
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if act := p.take(r); act != nil {
		act(w, r, p.forward)
		return
	}
	p.forward.ServeHTTP(w, r)
}

// take returns what to do with the request, nil for nothing special.
func (p *Proxy) take(r *http.Request) Action {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, rule := range p.rules {
		if rule.left != 0 && rule.matches(r) {
			rule.left--
			return rule.act
		}
	}
	return nil
}

// follow keeps hold of watches.
func (p *Proxy) follow(response *http.Response) error {
	if !Watch(response.Request) || response.StatusCode != http.StatusOK {
		return nil
	}
	w := newWatch(response)
	p.mu.Lock()
	p.watches[w] = true
	p.mu.Unlock()
	context.AfterFunc(response.Request.Context(), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watches, w)
	})
	return nil
}

// Watch matches watches.
func Watch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

// Binding matches the Bindings of pods whose name begins so.
func Binding(name string) Match {
	return func(r *http.Request) bool {
		_, rest, ok := strings.Cut(r.URL.Path, "/pods/")
		return ok && r.Method == http.MethodPost && strings.HasPrefix(rest, name) && strings.HasSuffix(rest, "/binding")
	}
}

// Path matches a path.
func Path(path string) Match {
	return func(r *http.Request) bool { return r.URL.Path == path }
}
