package ledger

import "errors"

// What Reserve, Snapshot.With and Drain answer; each says what the caller does
// next.
var (
	// ErrNoRoom means that the snapshot of the decision is out of date: a card
	// is gone, or somebody else took the room. Decide again.
	ErrNoRoom = errors.New("no room left")
	// ErrBoundary means that the card now has a holder whom the pod may not sit
	// beside. Decide again.
	ErrBoundary = errors.New("a tenant on the card may not be shared with")
	// ErrQuota means that a quota has no room left. Wait until something is given
	// back, or the quota is raised.
	ErrQuota = errors.New("quota exceeded")
	// ErrInactive means that nothing new may come from the pod's namespace.
	ErrInactive = errors.New("the tenant is not active")
	// ErrUnknownNode means that the ledger has no facts about the node: it has
	// been removed, or not been seen yet. Decide again.
	ErrUnknownNode = errors.New("unknown node")
	// ErrHeldElsewhere means that the pod holds something else already. What it
	// holds stands until it is given back: look at it before going on.
	ErrHeldElsewhere = errors.New("the pod holds something else")
	// ErrIllegal means that the pod's state does not allow this. Trying again
	// does not help.
	ErrIllegal = errors.New("illegal in this state")
)
