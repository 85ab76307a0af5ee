package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

// slowDoor takes its time, and counts who is inside.
type slowDoor struct {
	door
	takes time.Duration

	mu           sync.Mutex
	inside, most int // guarded by mu
}

func (d *slowDoor) Mutate(q *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	d.count(1)
	defer d.count(-1)
	time.Sleep(d.takes)
	return d.door.Mutate(q)
}

func (d *slowDoor) count(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inside += n
	d.most = max(d.most, d.inside)
}

// ask has so many ask at once, and returns how many got which answer, and how long
// the last waited.
func (d *slowDoor) ask(n int, path, pod string) (answers map[int]int, retry map[string]int, took time.Duration) {
	r := newRig(untouchable{}, unready, func(c *Config) { c.Admission = d })
	h, began := quietly(r.server.Webhooks()), time.Now()
	answers, retry = map[int]int{}, map[string]int{}
	var all sync.WaitGroup
	var mu sync.Mutex
	for range n {
		all.Go(func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(reviewOf(pod))))
			mu.Lock()
			defer mu.Unlock()
			answers[w.Code]++
			retry[w.Header().Get("Retry-After")]++
		})
	}
	all.Wait()
	return answers, retry, time.Since(began)
}

// A burst gets through, a few at a time, in the time that the API server has.
func TestManyReviewsAtOnce(t *testing.T) {
	for _, pod := range []string{"p", "wrong", "panic"} { // whatever becomes of them
		t.Run(pod, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &slowDoor{takes: 10 * time.Millisecond}
				answers, _, took := d.ask(2000, "/webhook/mutate?timeout=5s", pod)
				if want := map[string]int{"p": 200, "wrong": 400, "panic": 500}[pod]; answers[want] != 2000 {
					t.Errorf("answers: %v", answers)
				}
				if d.most != mostReviews {
					t.Errorf("%d were inside at once, want %d", d.most, mostReviews)
				}
				if took > 500*time.Millisecond {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// Who waits too long is told in time to try again.
func TestTooManyReviews(t *testing.T) {
	for query, wait := range map[string]time.Duration{
		"?timeout=5s": 2500 * time.Millisecond, "?timeout=1s": 500 * time.Millisecond, "": 5 * time.Second,
		"?timeout=30s": 5 * time.Second, "?timeout=-1s": 5 * time.Second, "?timeout=soon": 5 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &slowDoor{takes: time.Minute}
			answers, retry, _ := d.ask(mostReviews+3, "/webhook/mutate"+query, "p")
			if answers[http.StatusOK] != mostReviews || answers[http.StatusTooManyRequests] != 3 || retry["1"] != 3 {
				t.Errorf("%q: answers %v, Retry-After %v", query, answers, retry)
			}
			s := newRig(untouchable{}, unready, func(c *Config) { c.Admission = d }).server
			if err := s.reviews.Acquire(t.Context(), mostReviews); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			_, err := s.reviewTurn(httptest.NewRequest(http.MethodPost, "/webhook"+query, nil))
			if took := time.Since(began); err == nil || took != wait {
				t.Errorf("%q: %v after %v, want to wait %v", query, err, took, wait)
			}
		})
	}
}

// A replica that is told to end answers whom it has let in, those who wait too: the
// context of their requests ends first.
func TestWaitingReviewsAreAnsweredAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDoor{takes: time.Second}
		r := newRig(untouchable{}, unready, func(c *Config) { c.Admission = d })
		if err := r.server.reviews.Acquire(t.Context(), mostReviews); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(2*time.Second, func() { r.server.reviews.Release(mostReviews) })
		ended, end := context.WithCancel(t.Context())
		end()
		w := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodPost, "/webhook/mutate", strings.NewReader(reviewOf("p"))).WithContext(ended)
		quietly(r.server.Webhooks()).ServeHTTP(w, request)
		if w.Code != http.StatusOK {
			t.Errorf("answer %d %s", w.Code, w.Body)
		}
	})
}

// pipe listens for one connection that is made in memory, whose deadlines are in
// the bubble's time.
type pipe struct {
	conn chan net.Conn
	done chan struct{}
}

func (p pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conn:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p pipe) Close() error   { close(p.done); return nil }
func (p pipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// Who lets his turn go by without sending anything does not keep it.
func TestSlowBodiesLoseTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h := newDoor(t)
		ours, theirs := net.Pipe()
		l := pipe{make(chan net.Conn, 1), make(chan struct{})}
		l.conn <- theirs
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- Serve(ctx, l, h, time.Minute) }()
		began := time.Now()
		if _, err := io.WriteString(ours, "POST /webhook/mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(ours)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400") || time.Since(began) != bodyTime {
			t.Errorf("after %v: %s, %v", time.Since(began), answer, err)
		}
		stop()
		if err := <-served; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
}
