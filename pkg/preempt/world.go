package preempt

import (
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

// Stage says which pods may be ended for others.
type Stage string

// The stages, as a policy writes them.
const (
	Disabled    Stage = "disabled"  // nobody
	OfScheduled Stage = "scheduled" // who is bound and does not run yet
	OfRunning   Stage = "running"   // who runs
)

// Rules are those of the policy.
type Rules struct {
	Stage      Stage
	MinRuntime time.Duration // a pod has this long before it may be ended
	MaxGrace   time.Duration // a pod that has longer to end is not ended; 0: any
	PerHour    int           // pods of one tenant that may be ended within an hour; 0: any number
	Cooldown   time.Duration // between two times that the same one has the same other ended
	Bare       bool          // pods that nobody but us would make anew may be ended
}

// Eviction is one that was done lately.
type Eviction struct {
	By, Of string // lineages
	Tenant gpu.TenantID
	At     time.Time
}

// Trial says whether an Asker fits a node of a state of the cluster, by the pipeline
// that is in force, quotas and thresholds included. Processors, main memory and
// the number of pods are no part of it, and neither is what Suits says.
type Trial interface {
	Fits(in ledger.Snapshot, node gpu.NodeID) bool
	Place(in ledger.Snapshot, node gpu.NodeID) (gpu.Placement, bool)
}

// World is what a round of planning goes by. It is made anew for each round, as what
// was worked out of it is kept with it. State alone may be replaced within one: once
// the ledger has the claim of an Asker that a plan was made for, its victims count as
// Ending for those who come after.
type World struct {
	State   ledger.Snapshot
	Pods    map[gpu.NodeID][]Pod // all that are bound there
	History []Eviction
	Blocked map[gpu.PodID]time.Time // who is not to be ended before then: a PodDisruptionBudget keeps it
	Now     time.Time
	Rules   Rules
	// Suits reports whether kube-scheduler's own filters would let the pod onto the
	// node whoever is there: taints, selectors, affinity to nodes.
	Suits func(a *Asker, node gpu.NodeID) bool
	Trial func(r *gpu.Request, in ledger.Snapshot) Trial
	// Policy is what Trial goes by beside the state: comparable, and another value
	// whenever it might answer otherwise. nil: nothing is remembered of its answers.
	Policy any

	round *round // nil: nothing was worked out yet
}

// Outcome is what came of planning for one Asker.
type Outcome int

// The outcomes.
const (
	Planned  Outcome = iota
	FitsNow          // without anybody being ended
	Waits            // for pods that are being ended already
	Hopeless         // whoever may be ended, it would not fit
	Exempt           // nobody is ended for it
	Early            // there was no time to look at all nodes: the next round goes on
)

// Plan says who is to be ended for whom. With all victims gone the placement fits,
// and without any one of them going it does not.
type Plan struct {
	Asker     Asker
	Placement gpu.Placement // on Placement.Node
	Victims   []Pod         // in the order in which they were chosen; members of units may be on other nodes
	// Rejected says, of some nodes that were looked at, why they were not chosen: for
	// people.
	Rejected []Rejection
}

// Rejection is a node that was not chosen.
type Rejection struct {
	Node gpu.NodeID
	Why  string
}
