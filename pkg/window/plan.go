package window

// Plan is what Decide says. Its steps are done in their order, each only after the one
// before has succeeded; what is left over is planned anew in the next pass.
type Plan struct {
	Open       bool // as the schedule says
	Steps      []Step
	Conditions []Condition // what to report; the first is the state, those after it are to be seen as well
}

// Step is one write: a Save, SetHPA, SetKEDA, SetReplicas or Forget.
type Step interface{ step() }

// The steps.
type (
	// Save puts the record into the group's status.
	Save Record
	// SetHPA writes minReplicas and maxReplicas of the HPA.
	SetHPA Bounds
	// SetKEDA writes the annotation paused-replicas of the ScaledObject; "" removes it.
	SetKEDA string
	// SetReplicas writes the target's scale.
	SetReplicas int32
	// Forget removes the record from the group's status.
	Forget struct{}
)

func (Save) step()        {}
func (SetHPA) step()      {}
func (SetKEDA) step()     {}
func (SetReplicas) step() {}
func (Forget) step()      {}

// Reason is one word for what is the case.
type Reason string

// The reasons of a Condition.
const (
	AlwaysOpen     Reason = "AlwaysOpen"     // no windows, or windows that fill the week
	InWindow       Reason = "InWindow"       // awake; nothing is kept of an earlier action
	Paused         Reason = "Paused"         // set, or being set, to 0 replicas
	Scaled         Reason = "Scaled"         // set, or being set, to the rule's replicas
	Stopped        Reason = "Stopped"        // set, or being set, to 0 replicas for good
	Restored       Reason = "Restored"       // being written back
	StayedStopped  Reason = "StayedStopped"  // inside its windows again, and left stopped
	EditedByHand   Reason = "EditedByHand"   // others have changed what was set; left so
	AsleepByItself Reason = "AsleepByItself" // the HPA has scaled to 0; nothing is done
	TenantInactive Reason = "TenantInactive" // what is to be done adds replicas: it waits
	TargetMissing  Reason = "TargetMissing"
	TargetTaken    Reason = "TargetTaken" // an older group rules it
	TargetBusy     Reason = "TargetBusy"  // a younger group has yet to let go of it
	TargetRemade   Reason = "TargetRemade"
)

// Condition is something to report. Its message has no times and no counts of passes: it
// changes only when the facts do.
type Condition struct {
	Reason  Reason
	Message string
}
