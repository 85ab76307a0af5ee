package server

import (
	"context"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Leadership says which replica decides. package kube has it.
type Leadership interface{ State() Leading }

// Leading is how that stands at one moment.
type Leading struct {
	// Here: this replica decides.
	Here bool
	// Leader is where the leader's replica listener is, host:port; "" if nobody
	// knows. A leader that does not decide yet names itself, without Here.
	Leader string
	// Why says what keeps the leader from deciding, for those who wait for it; ""
	// if there is nothing to say.
	Why string
	// Changed is closed when this is no longer how it stands.
	Changed <-chan struct{}
}

// turn is what a handler has to know of a request beyond what it says.
type turn struct {
	until time.Time // a bind may write
	not   string    // why nothing is decided now, "" if it is
}

type handler func(http.ResponseWriter, *http.Request, turn)

// leading is how it stands now.
func (s *Server) leading() Leading {
	if s.cfg.Leadership == nil {
		return Leading{Here: true}
	}
	return s.cfg.Leadership.State()
}

// here is a turn for what is decided by this replica.
func (s *Server) here(until time.Time) turn {
	t := turn{until: until}
	if !s.cfg.Ready() {
		t.not = notReady
	}
	return t
}

// led answers by decide on the leader, and by what the leader answers elsewhere.
func (s *Server) led(decide handler) httprouter.Handle {
	return func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		arrived := time.Now()
		if s.leading().Here {
			decide(w, r, s.here(arrived.Add(s.cfg.BindTimeout)))
			return
		}
		s.pass(w, r, arrived, decide)
	}
}

// notLeader is the text of an answer that nobody could decide. It changes with
// the cause only, as it becomes the pod's condition.
func notLeader(why string) string {
	if why == "" {
		why = "the replica that decides could not be reached"
	}
	return string(gpu.NotLeader) + ": " + why
}

// hold is how long a request may still wait for a leader. Only waiting counts:
// the time starts with the first trouble.
type hold struct {
	left  time.Duration
	until time.Time // zero before the first trouble
}

// start returns when the hold is over, which began at the latest at that time.
func (h *hold) start(at time.Time) time.Time {
	if h.until.IsZero() {
		h.until = at.Add(h.left)
	}
	return h.until
}

// remains is how much of it there is.
func (h *hold) remains() time.Duration {
	if h.until.IsZero() {
		return h.left
	}
	return max(0, time.Until(h.until))
}

// wait waits for a change of what was seen, at most so long; false when the hold
// or ctx is over.
func (h *hold) wait(ctx context.Context, seen Leading, atMost time.Duration) bool {
	over := h.start(time.Now())
	pause := time.NewTimer(min(atMost, time.Until(over)))
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-seen.Changed:
	case <-pause.C:
	}
	return time.Now().Before(over)
}
