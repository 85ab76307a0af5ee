package faults

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// upstream is a server that notes what arrives; a watch gets two events and then
// what is put into more.
type upstream struct {
	*httptest.Server
	more chan string

	mu      sync.Mutex
	arrived []string // guarded by mu
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{more: make(chan string)}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		u.mu.Lock()
		u.arrived = append(u.arrived, r.Method+" "+r.URL.Path+" "+string(body))
		u.mu.Unlock()
		if !Watch(r) {
			_, _ = io.WriteString(w, "answer to "+string(body))
			return
		}
		frame := func(text string) []byte { return []byte(text + "\n") }
		if r.URL.Query().Get("as") == "protobuf" {
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
			frame = func(text string) []byte {
				return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
			}
		}
		_, _ = w.Write(frame("one"))
		_, _ = w.Write(frame("two"))
		w.(http.Flusher).Flush()
		for {
			select {
			case text := <-u.more:
				_, _ = w.Write(frame(text))
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) seen() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return strings.Join(u.arrived, "; ")
}

func newProxy(t *testing.T, u *upstream) *Proxy {
	t.Helper()
	p, err := New(u.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// post returns what comes back: "code body", or "cut".
func post(p *Proxy, path, body string) string {
	answer, err := http.Post(p.URL()+path, "application/json", strings.NewReader(body))
	if err != nil {
		return "cut"
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "cut"
	}
	return fmt.Sprintf("%d %s", answer.StatusCode, text)
}

const binding = "/api/v1/namespaces/ns/pods/p-1/binding"

func TestActions(t *testing.T) {
	tests := map[string]struct {
		act     Action
		want    string
		arrived bool
	}{
		"drop":        {Drop, "cut", false},
		"lose answer": {LoseAnswer, "cut", true},
		"conflict":    {Answer(409, "busy"), `409 {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"busy","code":409}` + "\n", false},
		"delay":       {Delay(time.Millisecond), "200 answer to b", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t)
			p := newProxy(t, u)
			p.On(Binding("p-"), 1, tc.act)
			if got := post(p, "/other", "x"); got != "200 answer to x" {
				t.Errorf("a request that no rule is for: %q", got)
			}
			if got := post(p, binding, "b"); got != tc.want {
				t.Errorf("answer %q, want %q", got, tc.want)
			}
			if got := strings.Contains(u.seen(), "binding"); got != tc.arrived {
				t.Errorf("arrived %t, want %t", got, tc.arrived)
			}
			if got := post(p, binding, "again"); got != "200 answer to again" {
				t.Errorf("after the rule: %q", got)
			}
		})
	}
}

func TestLaterRulesGoFirst(t *testing.T) {
	u := newUpstream(t)
	p := newProxy(t, u)
	p.On(Path("/a"), 0, Answer(500, "always"))
	p.On(Path("/a"), 2, Answer(503, "twice"))
	for i, want := range []string{"503", "503", "500", "500"} {
		if got := post(p, "/a", ""); !strings.HasPrefix(got, want) {
			t.Errorf("request %d: %q, want %s", i, got, want)
		}
	}
	p.Clear()
	if got := post(p, "/a", "x"); got != "200 answer to x" {
		t.Errorf("without rules: %q", got)
	}
}

// A step stops a request on its way there, or on its way back.
func TestStep(t *testing.T) {
	for name, tc := range map[string]struct {
		at      func(*Step) Action
		arrived bool // while it is stopped
	}{
		"before": {func(s *Step) Action { return s.Before }, false},
		"after":  {func(s *Step) Action { return s.After }, true},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t)
			p, s := newProxy(t, u), NewStep()
			p.On(Binding(""), 0, tc.at(s))
			got := make(chan string, 1)
			go func() { got <- post(p, binding, "b") }()
			<-s.Reached
			if arrived := u.seen() != ""; arrived != tc.arrived {
				t.Errorf("arrived %t, want %t", arrived, tc.arrived)
			}
			s.Release()
			if answer := <-got; answer != "200 answer to b" {
				t.Errorf("answer %q", answer)
			}
		})
	}
}

// What is on its way arrives, although whoever sent it has long gone.
func TestRequestsOutliveTheirClients(t *testing.T) {
	for name, act := range map[string]func(*Step) Action{
		"stopped": func(s *Step) Action { return s.Before },
		"delayed": func(s *Step) Action {
			return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
				s.Reached <- struct{}{}
				Delay(50*time.Millisecond)(w, r, pass)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t)
			p, s := newProxy(t, u), NewStep()
			p.On(Binding(""), 1, act(s))
			ctx, leave := context.WithCancel(t.Context())
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL()+binding, strings.NewReader("late"))
				if err != nil {
					t.Error(err)
					return
				}
				if answer, err := http.DefaultClient.Do(request); err == nil {
					_ = answer.Body.Close()
					t.Error("the client has an answer")
				}
			}()
			<-s.Reached
			leave()
			<-gone
			s.Release()
			for !strings.Contains(u.seen(), "late") { // go test's own deadline ends a test that waits in vain
				runtime.Gosched()
			}
		})
	}
}

// watching opens a watch and returns how to read the next event of it.
func watching(t *testing.T, p *Proxy, as string, frames func(*bufio.Reader) ([]byte, error)) (next func() string) {
	t.Helper()
	answer, err := http.Get(p.URL() + "/api/v1/pods?watch=true&as=" + as)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	from := bufio.NewReader(answer.Body)
	return func() string {
		frame, err := frames(from)
		if err != nil {
			return "cut"
		}
		return strings.Trim(string(frame), "\n\x00\x03")
	}
}

func TestWatches(t *testing.T) {
	for as, frames := range map[string]func(*bufio.Reader) ([]byte, error){"json": line, "protobuf": delimited} {
		t.Run(as, func(t *testing.T) {
			u := newUpstream(t)
			p := newProxy(t, u)
			next := watching(t, p, as, frames)
			want := func(texts ...string) {
				t.Helper()
				for _, text := range texts {
					if got := next(); got != text {
						t.Errorf("event %q, want %q", got, text)
					}
				}
			}
			want("one", "two")
			go p.Replay("one")
			want("one")
			u.more <- "six"
			want("six")
			if n := p.CutWatches(); n != 1 {
				t.Errorf("%d watches were open, want 1", n)
			}
			want("cut")
		})
	}
}
