package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	extender "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// throne is a leadership that a test hands over.
type throne struct {
	mu      sync.Mutex
	now     Leading       // guarded by mu
	changed chan struct{} // guarded by mu
}

func (t *throne) State() Leading {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	l := t.now
	l.Changed = t.changed
	return l
}

func (t *throne) set(l Leading) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now = l
	if t.changed != nil {
		close(t.changed)
	}
	t.changed = make(chan struct{})
}

// wires are a network of replicas without TLS: address -> replica listener.
type wires struct {
	mu    sync.Mutex
	to    map[string]http.Handler                // guarded by mu
	asked map[string]int                         // guarded by mu; address -> requests that arrived
	fault func(r *http.Request, sent bool) error // nil: none; sent: after the answer was made
}

func (w *wires) connect(address string, h http.Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to[address] = h
}

func (w *wires) arrived(address string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[address]
}

func (w *wires) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	h, ok := w.to[r.URL.Host]
	w.asked[r.URL.Host]++
	w.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("%w: nobody at %s", errUnreachable, r.URL.Host)
	}
	if w.fault != nil {
		if err := w.fault(r, false); err != nil {
			return nil, err
		}
	}
	answer, done := httptest.NewRecorder(), make(chan struct{})
	there := r.Clone(context.WithoutCancel(r.Context()))
	go func() { defer close(done); h.ServeHTTP(answer, there) }()
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-done:
	}
	if w.fault != nil {
		if err := w.fault(r, true); err != nil {
			return nil, err
		}
	}
	return answer.Result(), nil
}

// member is one of several replicas.
type member struct {
	*rig
	*throne
	address string
}

// members are replicas at the addresses a, b, ... with an engine each. Nobody
// leads yet.
func members(engines ...Engine) (*wires, []member) {
	w := &wires{to: map[string]http.Handler{}, asked: map[string]int{}}
	var all []member
	for i, e := range engines {
		m := member{throne: &throne{}, address: string(rune('a' + i))}
		m.rig = newRig(e, func(c *Config) {
			c.Leadership = m.throne
			c.Replicas = Replicas{Self: m.address, Transport: w, Longest: 25 * time.Second}
		})
		w.to[m.address] = m.server.Replica()
		all = append(all, m)
	}
	return w, all
}

// reign has the member lead, as all of them see it.
func reign(all []member, leader int) {
	for i := range all {
		all[i].set(Leading{Here: i == leader, Leader: all[leader].address})
	}
}

// told returns what extender requests about a pod are answered by this member.
func (m *member) told(t *testing.T, path string) (int, string) {
	return post(t, m.extender, path, questionFor(path))
}

func questionFor(path string) any {
	if path == "/bind" {
		return bindArgs("p", "n1")
	}
	return extender.ExtenderArgs{Pod: newPod("p", 1), NodeNames: names("n1", "n2")}
}

// notLed is the answer of each route while nobody decides.
func notLed(path, why string) (int, string) {
	switch path {
	case "/filter":
		return http.StatusOK, `{"Nodes":null,"NodeNames":null,"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":"NotLeader: ` + why + `"}`
	case "/bind":
		return http.StatusOK, `{"Error":"NotLeader: ` + why + `"}`
	}
	return http.StatusServiceUnavailable, "NotLeader: " + why + "\n"
}

const unreached = "the replica that decides could not be reached"

var paths = []string{"/filter", "/score", "/bind"}

func newEngine() *cluster { return newCluster(map[gpu.NodeID]int{"n1": 1, "n2": 4}) }

// A standby answers what the leader answers, errors included, and asks its own
// engine nothing.
func TestStandbyAnswersAsTheLeader(t *testing.T) {
	for path, bodies := range map[string][]any{
		"/filter": {questionFor("/filter"), extender.ExtenderArgs{Pod: newPod("q", 9), Nodes: nodeList("n1")}, "{", `{"Pod":null}`},
		"/score":  {questionFor("/score"), "[]", "{}"},
		"/bind":   {questionFor("/bind"), bindArgs("p", "n3"), `{"PodName":"p"}`, ""},
	} {
		for _, body := range bodies {
			_, all := members(untouchable{}, newEngine())
			reign(all, 1)
			wantCode, want := post(t, newRig(newEngine()).extender, path, body)
			if code, text := post(t, all[0].extender, path, body); code != wantCode || text != want {
				t.Errorf("%s %v = %d %s, want %d %s", path, body, code, text, wantCode, want)
			}
			verb := strings.TrimPrefix(path, "/")
			all[0].wantMetric(t, fmt.Sprintf(`heteroflow_forwarded_requests_total{result="answered",verb=%q} 1`, verb))
			all[0].wantMetric(t, fmt.Sprintf(`heteroflow_request_hold_seconds_count{verb=%q} 0`, verb))
			all[1].wantMetric(t, fmt.Sprintf(`heteroflow_extender_requests_total{code="%d",verb=%q} 1`, wantCode, verb))
		}
	}
}

// The body arrives byte for byte, with its type.
func TestBodyIsNotTouched(t *testing.T) {
	w, all := members(untouchable{}, untouchable{})
	reign(all, 1)
	body := bytes.Repeat([]byte{'\x00', ' ', '\xff', '{'}, 1<<20)
	var got []byte
	var kind string
	w.connect("b", http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		kind = r.Header.Get("Content-Type")
		answer.Header().Set("Content-Type", "text/else")
		answer.WriteHeader(http.StatusTeapot)
		_, _ = answer.Write([]byte("x"))
	}))
	r := httptest.NewRequest(http.MethodPost, "/filter", bytes.NewReader(body))
	r.Header.Set("Content-Type", "text/odd; q=1")
	answer := httptest.NewRecorder()
	all[0].extender.ServeHTTP(answer, r)
	if !bytes.Equal(got, body) || kind != "text/odd; q=1" {
		t.Errorf("arrived: %d bytes of %q", len(got), kind)
	}
	if answer.Code != http.StatusTeapot || answer.Body.String() != "x" || answer.Header().Get("Content-Type") != "text/else" {
		t.Errorf("answer %d %q of %q", answer.Code, answer.Body, answer.Header().Get("Content-Type"))
	}
}

func TestTooLongIsRefusedBeforeItIsSent(t *testing.T) {
	w, all := members(untouchable{}, untouchable{})
	reign(all, 1)
	code, text := post(t, all[0].extender, "/filter", strings.Repeat(" ", mostBody+1))
	if code != http.StatusRequestEntityTooLarge || w.arrived("b") != 0 {
		t.Errorf("= %d %s, sent %d times", code, text, w.arrived("b"))
	}
}

// While nobody leads a request waits 5 s in all, whatever keeps it, and is then
// told that there is no leader. It is not sent in circles.
func TestNobodyDecides(t *testing.T) {
	tests := map[string]struct {
		before func(*wires, []member)
		why    string
	}{
		"nobody is known":       {func(*wires, []member) {}, unreached},
		"the leader is gone":    {func(_ *wires, all []member) { all[0].set(Leading{Leader: "z"}) }, unreached},
		"it is another standby": {func(_ *wires, all []member) { all[0].set(Leading{Leader: "b"}) }, unreached},
		"each thinks the other": {func(_ *wires, all []member) { all[0].set(Leading{Leader: "b"}); all[1].set(Leading{Leader: "a"}) }, unreached},
		"this one, not yet":     {func(_ *wires, all []member) { all[0].set(Leading{Leader: "a", Why: "the fence is open"}) }, "the fence is open"},
		"the other one, not yet": {func(_ *wires, all []member) {
			all[0].set(Leading{Leader: "b"})
			all[1].set(Leading{Leader: "b", Why: "no fence"})
		}, "no fence"},
		"the lease is released": {func(_ *wires, all []member) { all[0].set(Leading{Why: "nobody has it"}) }, "nobody has it"},
	}
	for name, tc := range tests {
		for _, path := range paths {
			t.Run(name+path, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, all := members(untouchable{}, untouchable{})
					tc.before(w, all)
					began := time.Now()
					code, text := all[0].told(t, path)
					wantCode, want := notLed(path, tc.why)
					if code != wantCode || text != want {
						t.Errorf("= %d %s, want %d %s", code, text, wantCode, want)
					}
					if took := time.Since(began); took != holdTime {
						t.Errorf("took %v, want %v", took, holdTime)
					}
					if n := w.arrived("b") + w.arrived("z"); n > 51 || w.arrived("a") > 0 {
						t.Errorf("sent %d times to others, %d times to itself", n, w.arrived("a"))
					}
					verb := strings.TrimPrefix(path, "/")
					all[0].wantMetric(t, fmt.Sprintf(`heteroflow_forwarded_requests_total{result="given_up",verb=%q} 1`, verb))
					all[0].wantMetric(t, fmt.Sprintf(`heteroflow_request_hold_seconds_sum{verb=%q} 5`, verb))
				})
			})
		}
	}
}

// A pod that asks for no card passes even when nobody leads, and what cannot be
// understood is refused, not waited for again.
func TestNobodyDecidesButItNeedNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := members(untouchable{})
		passed := askFilter(t, all[0].rig, extender.ExtenderArgs{Pod: newPod("p", 0), NodeNames: names("n1")})
		if diff := cmp.Diff(extender.ExtenderFilterResult{NodeNames: names("n1")}, passed); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if code, _ := post(t, all[0].extender, "/bind", "{"); code != http.StatusBadRequest {
			t.Errorf("a bad request = %d", code)
		}
	})
}

// Whatever the change is: as soon as somebody decides, the request is answered.
func TestHeldUntilSomebodyDecides(t *testing.T) {
	tests := map[string]struct{ before, after func(*wires, []member) }{
		"a leader becomes known": {func(*wires, []member) {}, func(_ *wires, all []member) { reign(all, 1) }},
		"this one becomes it":    {func(*wires, []member) {}, func(_ *wires, all []member) { reign(all, 0) }},
		"this one gets ready":    {func(_ *wires, all []member) { all[0].set(Leading{Leader: "a"}) }, func(_ *wires, all []member) { reign(all, 0) }},
		"the other gets ready": {
			func(_ *wires, all []member) { all[0].set(Leading{Leader: "b"}); all[1].set(Leading{Leader: "b"}) },
			func(_ *wires, all []member) { all[1].set(Leading{Here: true, Leader: "b"}) }, // nothing changes for the first
		},
		"the leader answers again": {
			func(w *wires, all []member) { reign(all, 1); w.mu.Lock(); delete(w.to, "b"); w.mu.Unlock() },
			func(w *wires, all []member) { w.connect("b", all[1].server.Replica()) },
		},
	}
	for name, tc := range tests {
		for _, path := range paths {
			t.Run(name+path, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, all := members(newEngine(), newEngine())
					tc.before(w, all)
					go func() { time.Sleep(3 * time.Second); tc.after(w, all) }()
					began := time.Now()
					code, text := all[0].told(t, path)
					if code != http.StatusOK || strings.Contains(text, "NotLeader") {
						t.Errorf("= %d %s", code, text)
					}
					if took := time.Since(began); took < 3*time.Second || took > 3*time.Second+againTime {
						t.Errorf("took %v, want 3s", took)
					}
				})
			})
		}
	}
}

// A bind has 20 s from its arrival at the first replica, wherever it is decided
// and however long it was held before.
func TestBindKeepsItsDeadline(t *testing.T) {
	for name, leader := range map[string]int{"on another replica": 1, "here in the end": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newEngine()
				c.before = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
				_, all := members(c, c)
				go func() { time.Sleep(4 * time.Second); reign(all, leader) }()
				began := time.Now()
				if got := askBind(t, all[0].rig, "p", "n1"); got != context.DeadlineExceeded.Error() {
					t.Errorf("error %q", got)
				}
				if took := time.Since(began); took != 20*time.Second {
					t.Errorf("took %v, want 20s", took)
				}
			})
		})
	}
}

// A slow leader is waited for as long as it may take.
func TestSlowLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newEngine()
		c.before = func(context.Context) error { time.Sleep(24 * time.Second); return nil }
		_, all := members(untouchable{}, c)
		reign(all, 1)
		if got := askBind(t, all[0].rig, "p", "n1"); got != "" || c.on("uid-p") != "n1" {
			t.Errorf("error %q, bound to %q", got, c.on("uid-p"))
		}
	})
}

// A leader that never answers, neither this nor anything else, is given up when
// another one leads; or when the time is over, and then nobody knows.
func TestFrozenLeader(t *testing.T) {
	frozen := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { time.Sleep(time.Hour) })
	for _, path := range paths {
		t.Run("another leads"+path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, all := members(untouchable{}, untouchable{}, newEngine())
				w.connect("b", frozen)
				reign(all, 1)
				go func() {
					time.Sleep(10 * time.Second)
					all[0].set(Leading{}) // nobody has the lease: the old one may answer still
					time.Sleep(5 * time.Second)
					reign(all, 2)
				}()
				began := time.Now()
				if code, text := all[0].told(t, path); code != http.StatusOK || strings.Contains(text, "NotLeader") {
					t.Errorf("= %d %s", code, text)
				}
				if took := time.Since(began); took < 15*time.Second || took > 16*time.Second {
					t.Errorf("took %v, want 15s", took)
				}
				all[0].wantMetric(t, fmt.Sprintf(`heteroflow_forwarded_requests_total{result="overtaken",verb=%q} 1`, strings.TrimPrefix(path, "/")))
				time.Sleep(time.Hour) // the frozen handler's
			})
		})
		t.Run("nobody else does"+path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, all := members(untouchable{}, untouchable{})
				w.connect("b", frozen)
				reign(all, 1)
				began := time.Now()
				code, text := all[0].told(t, path)
				why := unreached
				if path == "/bind" {
					why += "; the bind may have happened"
				}
				if wantCode, want := notLed(path, why); code != wantCode || text != want {
					t.Errorf("= %d %s, want %d %s", code, text, wantCode, want)
				}
				if took := time.Since(began); took != 25*time.Second {
					t.Errorf("took %v, want 25s", took)
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

var errBroken = errors.New("connection reset")

// The connection breaks before the request has got there, or after the leader has
// bound the pod. Either way it is asked again, and the pod is bound once.
func TestConnectionBreaks(t *testing.T) {
	for name, after := range map[string]bool{"before": false, "after": true} {
		for _, path := range paths {
			t.Run(name+path, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newEngine()
					w, all := members(untouchable{}, c)
					reign(all, 1)
					broken := 0
					w.fault = func(_ *http.Request, sent bool) error {
						if sent == after && broken < 3 {
							broken++
							return errBroken
						}
						return nil
					}
					_, want := post(t, newRig(newEngine()).extender, path, questionFor(path))
					if code, text := all[0].told(t, path); code != http.StatusOK || text != want {
						t.Errorf("= %d %s, want %s", code, text, want)
					}
					if path == "/bind" && (len(c.bound) != 1 || c.free["n1"] != 0) {
						t.Errorf("bound %v, free %v", c.bound, c.free)
					}
					all[0].wantMetric(t, fmt.Sprintf(`heteroflow_forwarded_requests_total{result="broken",verb=%q} 3`, strings.TrimPrefix(path, "/")))
				})
			})
		}
	}
}

// An answer that breaks off in the middle is none.
func TestHalfAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, all := members(untouchable{}, newEngine())
		reign(all, 1)
		half := 2
		through := all[1].server.Replica()
		all[0].server.peers.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			answer, err := w.RoundTrip(r)
			if half--; half >= 0 {
				answer.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"NodeNames":["n1"`), failing{}))
			}
			return answer, err
		})
		w.connect("b", through)
		got := askFilter(t, all[0].rig, extender.ExtenderArgs{Pod: newPod("p", 1), NodeNames: names("n1", "n2")})
		if got.Error != "" || got.NodeNames == nil || len(*got.NodeNames) != 2 {
			t.Errorf("answer %+v", got)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errBroken }

// A bind whose time is used up is not sent any more.
func TestNoTimeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, all := members(untouchable{}, untouchable{})
		reign(all, 1)
		w.fault = func(*http.Request, bool) error { time.Sleep(19999 * time.Millisecond); return errBroken }
		if got := askBind(t, all[0].rig, "p", "n1"); got != "NotLeader: "+unreached+"; the bind may have happened" {
			t.Errorf("error %q", got)
		}
		if n := w.arrived("b"); n != 1 {
			t.Errorf("sent %d times, want once", n)
		}
	})
}

// Nothing that a sender says gives it more than the leader's own limits.
func TestMarks(t *testing.T) {
	const most = 10 * time.Second
	for text, want := range map[string]time.Duration{
		"0": 0, "1": time.Millisecond, "9999": 9999 * time.Millisecond, "10001": most, "4294967295": most,
		"": -1, "-1": -1, "1s": -1, "1.5": -1, "4294967296": -1, "99999999999999999999": -1, "0x1": -1, " 1": -1,
	} {
		h := http.Header{}
		h.Set(withinHeader, text)
		got, err := marked(h, withinHeader, most)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q = %v, %v; want %v", text, got, err, want)
		}
	}
	_, all := members(untouchable{})
	reign(all, 0)
	for _, missing := range []string{withinHeader, holdHeader} {
		r := httptest.NewRequest(http.MethodPost, "/bind", strings.NewReader("{}"))
		mark(r.Header, time.Second, time.Second)
		r.Header.Del(missing)
		answer := httptest.NewRecorder()
		all[0].server.Replica().ServeHTTP(answer, r)
		if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), missing) {
			t.Errorf("without %s: %d %s", missing, answer.Code, answer.Body)
		}
	}
}

// At most 256 requests are on their way, and fewer if they are large; the others
// wait their turn, and are told so when it does not come.
func TestCrowd(t *testing.T) {
	tests := map[string]struct{ requests, size, most int }{
		"small ones": {300, 100, 256},
		"large ones": {17, mostBody, 16},
		"unstated":   {17, -1, 16},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, all := members(untouchable{}, untouchable{})
				reign(all, 1)
				var now, most, answered atomic.Int32
				w.connect("b", http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
					for n := now.Add(1); n > most.Load(); {
						most.Store(n)
					}
					time.Sleep(time.Second)
					now.Add(-1)
				}))
				var group sync.WaitGroup
				for range tc.requests {
					group.Go(func() {
						r := httptest.NewRequest(http.MethodPost, "/filter", strings.NewReader("{}"))
						r.ContentLength = int64(tc.size) // as it says
						answer := httptest.NewRecorder()
						if all[0].extender.ServeHTTP(answer, r); answer.Code == http.StatusOK {
							answered.Add(1)
						}
					})
				}
				group.Wait()
				if int(answered.Load()) != tc.requests || int(most.Load()) != tc.most {
					t.Errorf("%d of %d answered, %d at once, want %d", answered.Load(), tc.requests, most.Load(), tc.most)
				}
			})
		})
	}
	t.Run("for too long", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, all := members(untouchable{}, untouchable{})
			reign(all, 1)
			w.connect("b", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Second) }))
			var group sync.WaitGroup
			for range 256 {
				group.Go(func() { post(t, all[0].extender, "/filter", "{}") })
			}
			synctest.Wait()
			began := time.Now()
			code, text := post(t, all[0].extender, "/filter", "{}")
			if code != http.StatusServiceUnavailable || !strings.Contains(text, "NotLeader: too many requests wait") || time.Since(began) != holdTime {
				t.Errorf("= %d %s after %v", code, text, time.Since(began))
			}
			group.Wait()
		})
	})
}

// kube-scheduler hangs up, or this replica is told to stop: a bind that is on its
// way is seen to its end all the same.
func TestForwardingOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newEngine()
		c.before = func(context.Context) error { time.Sleep(2 * time.Second); return nil }
		w, all := members(untouchable{}, c)
		reign(all, 1)
		broken := false
		w.fault = func(_ *http.Request, sent bool) error { // the first try is lost on the way
			if !sent && !broken {
				broken = true
				return errBroken
			}
			return nil
		}
		ctx, hangUp := context.WithCancel(t.Context())
		go func() { time.Sleep(50 * time.Millisecond); hangUp() }()
		r := httptest.NewRequest(http.MethodPost, "/bind", strings.NewReader(jsonOf(t, bindArgs("p", "n1")))).WithContext(ctx)
		all[0].extender.ServeHTTP(httptest.NewRecorder(), r)
		if c.on("uid-p") != "n1" {
			t.Errorf("bound to %q, want n1", c.on("uid-p"))
		}
	})
}

// Replicas come and go while requests arrive at all of them: none fails, and no
// card is given twice. Engines share their books, as new leaders read them anew.
func TestRollingChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(map[gpu.NodeID]int{"n1": 100})
		w, all := members(c, c, c)
		reign(all, 0)
		var errs []string
		var mu sync.Mutex
		var group sync.WaitGroup
		for i := range 150 {
			group.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				if got := askBind(t, all[i%3].rig, fmt.Sprintf("p%d", i), "n1"); got != "" && !strings.HasPrefix(got, "InsufficientGPUCount") {
					mu.Lock()
					defer mu.Unlock()
					errs = append(errs, got)
				}
			})
		}
		for next := range 3 {
			time.Sleep(4 * time.Second)
			old := (next + 2) % 3
			for i := range all {
				all[i].set(Leading{})
			}
			time.Sleep(time.Second)
			for i := range all { // one leads, and gets ready
				all[i].set(Leading{Leader: all[next].address})
			}
			w.mu.Lock()
			delete(w.to, all[old].address) // and one restarts
			w.mu.Unlock()
			time.Sleep(time.Second)
			w.connect(all[old].address, all[old].server.Replica())
			reign(all, next)
		}
		group.Wait()
		if len(errs) > 0 {
			t.Errorf("%d failed: %v", len(errs), errs[0])
		}
		if len(c.bound) != 100 || c.free["n1"] != 0 {
			t.Errorf("%d bound, %d free", len(c.bound), c.free["n1"])
		}
	})
}

// A leader whose ledger is not built answers as one that decides alone does.
func TestLeaderNotReady(t *testing.T) {
	w := &wires{to: map[string]http.Handler{}, asked: map[string]int{}}
	leader := newRig(untouchable{}, unready, func(c *Config) { c.Leadership = &throne{now: Leading{Here: true}} })
	w.connect("b", leader.server.Replica())
	standby := newRig(untouchable{}, func(c *Config) {
		c.Leadership = &throne{now: Leading{Leader: "b"}}
		c.Replicas = Replicas{Self: "a", Transport: w, Longest: time.Minute}
	})
	if got := askBind(t, standby, "p", "n1"); got != notReady {
		t.Errorf("error %q, want %q", got, notReady)
	}
}

// Without a way to other replicas a standby holds requests, and gives them up.
func TestNoWayToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(untouchable{}, func(c *Config) {
			c.Leadership = &throne{now: Leading{Leader: "b"}}
			c.Replicas = Replicas{Longest: time.Minute}
		})
		if got := askBind(t, r, "p", "n1"); got != "NotLeader: "+unreached {
			t.Errorf("error %q", got)
		}
	})
}
