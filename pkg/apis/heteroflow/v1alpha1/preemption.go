package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// How Preemptions are called where they are served.
const (
	PreemptionKind     = "Preemption"
	PreemptionResource = "preemptions"
)

// PreemptionPhase is how far a preemption has come.
//
// +kubebuilder:validation:Enum=Planned;Draining;Held;Bound;RolledBack;Expired
type PreemptionPhase string

// The phases. The last three are ends; what is owed to victims is done all the same.
const (
	PreemptionPlanned    PreemptionPhase = "Planned"    // written down, the cards are kept, and nobody has been asked to go
	PreemptionDraining   PreemptionPhase = "Draining"   // victims are being ended
	PreemptionHeld       PreemptionPhase = "Held"       // they have gone, and the cards are kept for the preemptor
	PreemptionBound      PreemptionPhase = "Bound"      // the preemptor has its node
	PreemptionRolledBack PreemptionPhase = "RolledBack" // given up: who had not been ended yet is spared
	PreemptionExpired    PreemptionPhase = "Expired"    // the preemptor did not come
)

// Active reports whether room is kept for the preemptor. A preemption that nobody has
// gone on with yet has no phase, and is Planned.
func (p PreemptionPhase) Active() bool {
	switch p {
	case "", PreemptionPlanned, PreemptionDraining, PreemptionHeld:
		return true
	}
	return false
}

// VictimState is how far a victim has come.
//
// +kubebuilder:validation:Enum=Chosen;Evicting;Gone;Succeeded;Spared;Refused
type VictimState string

// The states of a victim.
const (
	VictimChosen    VictimState = "Chosen"    // nothing has been done to it
	VictimEvicting  VictimState = "Evicting"  // it has been asked to go
	VictimGone      VictimState = "Gone"      // its containers have ended; whoever makes it anew has not yet
	VictimSucceeded VictimState = "Succeeded" // there is a successor, or its owner needs none
	VictimSpared    VictimState = "Spared"    // it was left alone, or had ended by itself
	VictimRefused   VictimState = "Refused"   // it cannot be made anew; tried again, see message
)

// VictimMode is how a victim is ended.
//
// +kubebuilder:validation:Enum=Evict;Suspend
type VictimMode string

// The modes.
const (
	VictimEvict   VictimMode = "Evict"
	VictimSuspend VictimMode = "Suspend" // the Job that owns it is suspended, and resumed later
)

// Preemption is pods being ended so that another can run. The scheduler's leader
// writes it, before it does anything, and the next leader goes on from what it says.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:path=preemptions,scope=Cluster,shortName=pre,categories=heteroflow
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.preemptor.namespace`,description="Of the pod for which others are ended"
// +kubebuilder:printcolumn:name="Preemptor",type=string,JSONPath=`.spec.preemptor.name`,description="The pod for which others are ended"
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.node`
// +kubebuilder:printcolumn:name="Victims",type=integer,JSONPath=`.spec.victimCount`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Preemption struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PreemptionSpec `json:"spec"`
	// +optional
	Status PreemptionStatus `json:"status,omitempty"`
}

// PreemptionSpec is the plan.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a plan is not changed; there is another preemption for another"
type PreemptionSpec struct {
	Preemptor PreemptionPod `json:"preemptor"`
	// Node is where the preemptor is to run.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// Allocation is the cards that are kept for the preemptor, as the annotation
	// heteroflow.io/allocation has them.
	//
	// +kubebuilder:validation:MaxLength=65536
	Allocation string `json:"allocation"`
	// MilliCPU and MemoryBytes are what is kept beside the cards.
	//
	// +kubebuilder:validation:Minimum=0
	MilliCPU int64 `json:"milliCPU"`
	// +kubebuilder:validation:Minimum=0
	MemoryBytes int64 `json:"memoryBytes"`
	// Victims are those who are ended, at least one. VictimCount is how many.
	//
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Victims     []Victim `json:"victims"`
	VictimCount int32    `json:"victimCount"`
	// Rule says in words by which rule they were chosen, and what was rejected.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Rule string `json:"rule,omitempty"`
}

// PreemptionPod names a pod.
type PreemptionPod struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Priority is 0 to 100.
	Priority int32 `json:"priority"`
	// Lineage is the UID of the owner, or of the pod where it has none.
	Lineage string `json:"lineage"`
}

// Victim is a pod that is ended, and what is owed to it.
type Victim struct {
	PreemptionPod `json:",inline"`

	// Node is where it runs.
	Node string `json:"node"`
	// Tenant is whose it is; empty: nobody's.
	//
	// +optional
	Tenant string `json:"tenant,omitempty"`
	// GraceSeconds is how long its containers have to end.
	//
	// +kubebuilder:validation:Minimum=0
	GraceSeconds int64      `json:"graceSeconds"`
	Mode         VictimMode `json:"mode"`
	// Count is how often its lives were ended for others, with this one.
	//
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count"`
	// Owner is the controller that makes it anew. Left out: nobody does, and we make it
	// anew from Pod.
	//
	// +optional
	Owner *metav1.OwnerReference `json:"owner,omitempty"`
	// Pod is the manifest from which a pod without an owner is made anew.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Pod *runtime.RawExtension `json:"pod,omitempty"`
}

// PreemptionStatus is how far it has come.
type PreemptionStatus struct {
	// Phase is empty at first, which is Planned.
	//
	// +optional
	Phase PreemptionPhase `json:"phase,omitempty"`
	// Message says why it ended so, or what it waits for.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// DrainingSince, HeldSince and EndedAt are when those phases began.
	//
	// +optional
	DrainingSince *metav1.MicroTime `json:"drainingSince,omitempty"`
	// +optional
	HeldSince *metav1.MicroTime `json:"heldSince,omitempty"`
	// +optional
	EndedAt *metav1.MicroTime `json:"endedAt,omitempty"`
	// Victims are in the order of the spec.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Victims []VictimStatus `json:"victims,omitempty"`
}

// VictimState returns how far the i-th victim has come; Chosen while nobody has written
// it down.
func (p *Preemption) VictimState(i int) VictimState {
	if i >= len(p.Status.Victims) {
		return VictimChosen
	}
	return p.Status.Victims[i].State
}

// VictimStatus is how far a victim has come.
type VictimStatus struct {
	State VictimState `json:"state"`
	// Since is when that state began.
	//
	// +optional
	Since *metav1.MicroTime `json:"since,omitempty"`
	// ForcedAt is when it was deleted without grace, as it did not go.
	//
	// +optional
	ForcedAt *metav1.MicroTime `json:"forcedAt,omitempty"`
	// Successor is the UID of the pod that was made in its place.
	//
	// +optional
	Successor types.UID `json:"successor,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// PreemptionList is a list of Preemptions, as the API server answers.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PreemptionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Preemption `json:"items"`
}
