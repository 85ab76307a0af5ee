package ledger

import (
	"fmt"
	"slices"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// State is how far a hold has come. Every state counts in full.
type State int

// The states of a hold. A pod without a hold has none of them.
const (
	none      State = iota
	Held            // reserved; the API server has not said yet that the pod is bound
	Bound           // the API server says so
	Draining        // bound, and being stopped
	Lingering       // the pod object is gone, its containers perhaps not
	Claimed         // kept for a pod while others make room for it; nobody of it is there

	illegal State = -1
)

func (s State) String() string {
	switch s {
	case none:
		return "none"
	case Held:
		return "held"
	case Bound:
		return "bound"
	case Draining:
		return "draining"
	case Lingering:
		return "lingering"
	case Claimed:
		return "claimed"
	}
	return fmt.Sprintf("State(%d)", int(s))
}

// event is what happens to a hold.
type event int

const (
	reserve event = iota
	unreserve
	confirm
	drain
	linger
	release
	expire
	claim
	unclaim
	events
)

// moves is the whole state machine: state and event -> the state after it. The
// same state again means that nothing happens. It is read only.
//
// A lingering pod cannot reserve: its hold ends by itself, which a hold that
// somebody relies on must not do. A held one that stands on a claim is claimed again
// after unreserve: see Hold.after.
var moves = [...][events]State{
	// reserve, unreserve, confirm, drain, linger, release, expire, claim, unclaim
	none:      {Held, none, Bound, illegal, none, none, none, Claimed, none},
	Held:      {Held, none, Bound, illegal, Lingering, none, Held, Held, Held},
	Bound:     {Bound, Bound, Bound, Draining, Lingering, none, Bound, illegal, Bound},
	Draining:  {Draining, Draining, Draining, Draining, Lingering, none, Draining, illegal, Draining},
	Lingering: {illegal, Lingering, Bound, illegal, Lingering, none, none, illegal, Lingering},
	Claimed:   {Held, Claimed, Bound, illegal, none, none, Claimed, Claimed, none},
}

// after returns the state that e leads to, or illegal.
func (s State) after(e event) State { return moves[s][e] }

// after returns the state that e leads the hold to, or illegal.
func (h *Hold) after(e event) State {
	if e == unreserve && h.State == Held && h.claim != nil {
		return Claimed
	}
	return h.State.after(e)
}

// Hold is a pod's entry in the books. It never changes: a move replaces it.
type Hold struct {
	gpu.Placement
	State State
	Until time.Time // when a Lingering hold ends by itself

	claim *claimed // of a Claimed hold, and of a Held one that stands on a claim

	// Worked out once: each build of the node needs the one, each change of the
	// rules the other.
	uses     []gpu.CardUse // Placement.Uses()
	spending gpu.Spending  // Placement.Spending()
}

func newHold(p gpu.Placement, s State) *Hold {
	return &Hold{Placement: p, State: s, uses: p.Uses(), spending: p.Spending()}
}

// in returns the hold in another state, with the time that goes with it.
func (h *Hold) in(s State, until time.Time) *Hold {
	other := *h
	other.State, other.Until = s, until
	if s != Held && s != Claimed {
		other.claim = nil
	}
	return &other
}

// of returns the hold as one of another tenant's.
func (h *Hold) of(tenant gpu.TenantID) *Hold {
	other := *h
	other.Tenant = tenant
	return &other
}

// again answers a Reserve of a pod that has this hold already: nil when it asks
// for what it has.
func (h *Hold) again(p *gpu.Placement) error {
	switch {
	case h.State.after(reserve) == illegal:
		return fmt.Errorf("the pod is %s: %w", h.State, ErrIllegal)
	case h.Node != p.Node || !slices.Equal(h.uses, p.Uses()) || !slices.Equal(h.Foreign, p.Foreign):
		return fmt.Errorf("%s on %s: %w", h.State, h.Node, ErrHeldElsewhere)
	}
	return nil
}
