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
	events
)

// moves is the whole state machine: state and event -> the state after it. The
// same state again means that nothing happens. It is read only.
//
// A lingering pod cannot reserve: its hold ends by itself, which a hold that
// somebody relies on must not do.
var moves = [...][events]State{
	// reserve, unreserve, confirm, drain, linger, release, expire
	none:      {Held, none, Bound, illegal, none, none, none},
	Held:      {Held, none, Bound, illegal, Lingering, none, Held},
	Bound:     {Bound, Bound, Bound, Draining, Lingering, none, Bound},
	Draining:  {Draining, Draining, Draining, Draining, Lingering, none, Draining},
	Lingering: {illegal, Lingering, Bound, illegal, Lingering, none, none},
}

// after returns the state that e leads to, or illegal.
func (s State) after(e event) State { return moves[s][e] }

// Hold is a pod's entry in the books. It never changes: a move replaces it.
type Hold struct {
	gpu.Placement
	State State
	Until time.Time // when a Lingering hold ends by itself

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
	case h.State.after(reserve) != h.State:
		return fmt.Errorf("the pod is %s: %w", h.State, ErrIllegal)
	case h.Node != p.Node || !slices.Equal(h.uses, p.Uses()) || !slices.Equal(h.Foreign, p.Foreign):
		return fmt.Errorf("%s on %s: %w", h.State, h.Node, ErrHeldElsewhere)
	}
	return nil
}
