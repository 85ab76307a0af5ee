package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/metrics"
)

// Replicas is how this replica reaches the others.
type Replicas struct {
	// Self is where the others reach this one, as it stands in Leading.Leader.
	Self string
	// Transport leads to the replica listeners of the others; nil: there is no
	// way, so a replica that does not lead has no answers.
	Transport http.RoundTripper
	// Longest is how long after its arrival a request's answer is waited for. It
	// has to lie above what the leader takes for a bind, and below
	// kube-scheduler's httpTimeout.
	Longest time.Duration
}

const (
	// holdTime is how long a request waits for a leader, in all. A new leader
	// takes a second or two; kube-scheduler's loop stands still as long.
	holdTime = 5 * time.Second
	// againTime is how soon a leader is asked again that could not be reached.
	againTime = 100 * time.Millisecond
	// mostWaiting bounds what requests on their way hold in memory, and as each
	// counts as leastWaiting at least, how many there are: 256.
	mostWaiting  = 256 << 20
	leastWaiting = 1 << 20
	// mostAnswer bounds an answer: it is the question's nodes and a text for each.
	mostAnswer = 2 * mostBody
)

// What became of one try to have a request answered by the leader.
var (
	errNotLeading  = errors.New("the replica that was asked does not decide")
	errUnreachable = errors.New("no connection") // so nothing was sent
	errOvertaken   = errors.New("another replica has become the leader")
)

// errand is a request that the leader is to answer.
type errand struct {
	verb    metrics.Verb
	path    string
	kind    string // Content-Type
	body    []byte
	arrived time.Time
	hold    hold
	why     string // what the leader says that keeps it from deciding
	sent    bool   // something may have come of it
}

// answered is what the leader has said.
type answered struct {
	code int
	kind string // Content-Type
	body []byte
}

// pass has the request answered by the leader. If it comes to lead here while
// the request waits, or if no leader is found, it is up to decide.
func (s *Server) pass(w http.ResponseWriter, r *http.Request, arrived time.Time, decide handler) {
	// Neither a caller that hangs up nor our own stopping ends it: otherwise
	// nobody would know what became of a bind.
	ctx, stop := context.WithDeadline(context.WithoutCancel(r.Context()), arrived.Add(s.cfg.Replicas.Longest))
	defer stop()
	e := &errand{verb: verbOf(r.URL.Path), path: r.URL.Path, kind: r.Header.Get("Content-Type"), arrived: arrived, hold: hold{left: holdTime}}
	leave, ok := s.enter(ctx, r.ContentLength, e)
	if !ok {
		http.Error(w, notLeader("too many requests wait for the replica that decides"), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	var err error
	if e.body, err = read(mostBody, w, r); err != nil {
		refuse(w, err)
		return
	}
	answer, turn := s.elsewhere(ctx, e)
	if answer == nil {
		r.Body = io.NopCloser(bytes.NewReader(e.body))
		decide(w, r, turn)
		return
	}
	w.Header().Set("Content-Type", answer.kind)
	w.WriteHeader(answer.code)
	_, _ = w.Write(answer.body)
}

// enter waits for a place among the requests on their way.
func (s *Server) enter(ctx context.Context, length int64, e *errand) (leave func(), ok bool) {
	if length < 0 || length > mostBody { // not stated, or refused while it is read
		length = mostBody
	}
	place := max(leastWaiting, length)
	if s.room.TryAcquire(place) {
		return func() { s.room.Release(place) }, true
	}
	waiting, stop := context.WithTimeout(ctx, holdTime)
	defer stop()
	if err := s.room.Acquire(waiting, place); err != nil {
		s.cfg.Metrics.Forwarded(e.verb, metrics.ForwardGivenUp)
		return nil, false
	}
	return func() { s.room.Release(place) }, true
}

// elsewhere asks the leader until it answers. Without an answer the turn is how
// the request stands here.
//
// What may have been done already is asked for again all the same: filter and
// score change nothing, and a bind that is repeated with the same pod and node is
// a success, or is refused if another leader's Binding came first. The API server
// binds a pod once.
func (s *Server) elsewhere(ctx context.Context, e *errand) (*answered, turn) {
	defer s.tellHeld(e)
	for {
		seen := s.leading()
		if seen.Here {
			return nil, s.here(e.arrived.Add(s.cfg.BindTimeout))
		}
		if e.verb == metrics.VerbBind && s.left(e) <= 0 {
			return nil, s.givenUp(ctx, e)
		}
		atMost := holdTime // a change is told
		if s.asks(seen) {
			began := time.Now()
			answer, err := s.try(ctx, seen.Leader, e)
			switch {
			case err == nil:
				return answer, turn{}
			case errors.Is(err, errNotLeading), errors.Is(err, errUnreachable):
				e.hold.start(began) // it was held there, or on the way there
			}
			atMost = againTime // that it can be reached is not
		} else if seen.Why != "" {
			e.why = seen.Why
		}
		if !e.hold.wait(ctx, seen, atMost) {
			return nil, s.givenUp(ctx, e)
		}
	}
}

// asks reports whether there is somebody else to ask.
func (s *Server) asks(seen Leading) bool {
	return s.cfg.Replicas.Transport != nil && seen.Leader != "" && seen.Leader != s.cfg.Replicas.Self
}

// givenUp is the turn of a request for which no leader was found.
func (s *Server) givenUp(ctx context.Context, e *errand) turn {
	s.cfg.Metrics.Forwarded(e.verb, metrics.ForwardGivenUp)
	text := notLeader(e.why)
	if e.sent && e.verb == metrics.VerbBind {
		text += "; the bind may have happened"
	}
	klog.FromContext(ctx).Info("request given up", "path", e.path, "reason", text)
	return turn{not: text}
}

// left is how long a bind may still write.
func (s *Server) left(e *errand) time.Duration {
	return time.Until(e.arrived.Add(s.cfg.BindTimeout))
}

// tellHeld counts the time that the request has waited for a leader, if it has.
func (s *Server) tellHeld(e *errand) {
	if !e.hold.until.IsZero() {
		s.cfg.Metrics.Held(e.verb, holdTime-e.hold.remains())
	}
}

// try asks the replica at that address once.
func (s *Server) try(ctx context.Context, leader string, e *errand) (*answered, error) {
	asking, stop := s.whileLeading(ctx, leader)
	defer stop()
	answer, err := s.ask(asking, leader, e)
	if err != nil && errors.Is(context.Cause(asking), errOvertaken) {
		err = errOvertaken
	}
	result := forwardResult(err)
	s.cfg.Metrics.Forwarded(e.verb, result)
	if err != nil {
		klog.FromContext(ctx).V(perDecision).Info("not answered by the leader", "path", e.path, "leader", leader, "reason", result, "cause", err)
	}
	return answer, err
}

// whileLeading ends when another replica has come to lead than the one at that
// address, which may be stopped, or cut off, and never answer.
func (s *Server) whileLeading(ctx context.Context, leader string) (context.Context, func()) {
	ctx, stop := context.WithCancelCause(ctx)
	go func() {
		for {
			now := s.leading()
			if now.Here || now.Leader != leader && now.Leader != "" {
				stop(errOvertaken)
				return
			}
			select {
			case <-now.Changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { stop(nil) }
}

// ask sends the request and reads the whole answer: one that breaks off is none.
func (s *Server) ask(ctx context.Context, leader string, e *errand) (*answered, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+leader+e.path, bytes.NewReader(e.body))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	request.Header.Set("Content-Type", e.kind)
	mark(request.Header, s.left(e), e.hold.remains())
	response, err := s.peers.Do(request)
	if err != nil {
		e.sent = e.sent || !errors.Is(err, errUnreachable)
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer+1))
	switch {
	case err != nil:
		e.sent = true
		return nil, err
	case response.StatusCode == http.StatusMisdirectedRequest:
		e.why = string(bytes.TrimSpace(body))
		return nil, errNotLeading
	case len(body) > mostAnswer:
		e.sent = true
		return nil, fmt.Errorf("answer: longer than %d bytes", mostAnswer)
	}
	return &answered{response.StatusCode, response.Header.Get("Content-Type"), body}, nil
}

func forwardResult(err error) metrics.ForwardResult {
	switch {
	case err == nil:
		return metrics.ForwardAnswered
	case errors.Is(err, errNotLeading):
		return metrics.ForwardNotLeading
	case errors.Is(err, errOvertaken):
		return metrics.ForwardOvertaken
	case errors.Is(err, errUnreachable):
		return metrics.ForwardUnreachable
	}
	return metrics.ForwardBroken
}
