package preempt

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// seen is what is the case for one Preemption.
type seen struct {
	planned   time.Time // when, by this leader; zero: by another
	preemptor whereabouts
	never     string // why nobody is ended for the preemptor; "": some may be
	suits     bool   // the node, the preemptor
	noRoom    string // why the ledger does not keep the room; "": it does
	binding   bool   // it is being bound
	nominated bool   // to the node
	tried     time.Time
	victims   []victim // in the order of the spec
}

// stale reports whether a plan that nobody has begun is given up, as there may be a
// better one. That of another leader is.
func (s *seen) stale(now time.Time) bool { return now.Sub(s.planned) > planTime }

// whereabouts is where the preemptor is.
type whereabouts int

const (
	waiting whereabouts = iota
	here                // bound to the node that is kept for it
	elsewhere
	gone
)

// fate is how far a victim's pod has gone.
type fate int

const (
	absent fate = iota // there is none of that UID
	alive
	ending // being deleted
	ended  // by itself, and not being deleted
)

// victim is what is the case for one victim.
type victim struct {
	pod       *corev1.Pod // that has its name, whatever its UID; nil: none
	fate      fate
	held      bool   // the ledger counts what it has
	marked    bool   // as asked to go
	exempt    string // why it may not be asked; "": it may
	blocked   bool   // by a PodDisruptionBudget
	suspended bool   // its Job, by this Preemption
	fits      bool   // its Job, which is the next to be resumed
	job       *batchv1.Job
	ownerGone bool // or has finished: only of Jobs
	tried     time.Time

	heir       *corev1.Pod // that its owner has made in its place
	heirCounts bool        // it says how often its lives were ended
}

// asked reports whether it goes, or has gone.
func (v *victim) asked() bool { return v.suspended || v.fate == ending || v.fate == absent }

// fateOf returns how far the pod of that name is gone, of the one with the UID.
func fateOf(pod *corev1.Pod, uid types.UID) fate {
	switch {
	case pod == nil || pod.UID != uid:
		return absent
	case pod.DeletionTimestamp != nil:
		return ending
	case codec.Terminal(pod):
		return ended
	}
	return alive
}

// exempt says why a pod, as it is now, may not be ended for one of that priority;
// "" means that it may. It is asked last, and trusts no plan.
func exempt(v *preempt.Pod, priority int32) string {
	switch {
	case !v.Ours:
		return "another scheduler's"
	case v.System:
		return "a pod of the system"
	case v.Type == gpu.Training || v.Type == gpu.Inference:
		return "its task type is " + string(v.Type)
	case !v.Preemptible:
		return "it is not preemptible"
	case v.Count > 0:
		return "it was ended for another before"
	case v.Priority >= priority:
		return "its priority is not lower"
	case v.Bare:
		return v.Unmade
	}
	return ""
}
