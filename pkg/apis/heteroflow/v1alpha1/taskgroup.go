package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// How TaskGroups are called where they are served.
const (
	TaskGroupKind     = "TaskGroup"
	TaskGroupResource = "taskgroups"
)

// TaskGroupFinalizer keeps a TaskGroup until what it did to its target has been undone.
const TaskGroupFinalizer = GroupName + "/window"

// TaskGroupType is what kind of work the members do.
//
// +kubebuilder:validation:Enum=inference
type TaskGroupType string

// TaskGroupInference is a service: its members are placed one by one.
const TaskGroupInference TaskGroupType = "inference"

// TaskGroupAction is what is done to the target outside the windows.
//
// +kubebuilder:validation:Enum=pause;scale;stop
type TaskGroupAction string

// The actions.
const (
	TaskGroupPause TaskGroupAction = "pause" // to 0 replicas, and back
	TaskGroupScale TaskGroupAction = "scale" // to some replicas, and back
	TaskGroupStop  TaskGroupAction = "stop"  // to 0 replicas; nothing brings them back by itself
)

// TaskGroup is pods that are one service: those of its namespace with its name in the
// annotation heteroflow.io/task-group.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:path=taskgroups,scope=Namespaced,shortName=tg,categories=heteroflow
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.scaleTargetRef.name`,description="What is scaled"
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`,description="InWindow, Paused, Scaled, Stopped, StayedStopped, AsleepByItself, or what is in the way"
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.next.text`,description="What changes next, when, and the cards that it frees or takes back"
// +kubebuilder:printcolumn:name="Members",type=integer,JSONPath=`.status.members`,description="Pods of the group that have a node"
// +kubebuilder:printcolumn:name="Cards",type=integer,format=int64,JSONPath=`.status.cards`,description="Devices that they hold, a slice counts as one"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must be at most 63 characters"
type TaskGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec TaskGroupSpec `json:"spec"`
	// +optional
	Status TaskGroupStatus `json:"status,omitempty"`
}

// TaskGroupSpec is what its author wants.
//
// +kubebuilder:validation:XValidation:rule="!has(self.windows) || size(self.windows) == 0 || has(self.scaleTargetRef)",fieldPath=".scaleTargetRef",message="is needed where there are windows: it names what is put to sleep outside of them"
// +kubebuilder:validation:XValidation:rule="!has(self.windows) || size(self.windows) == 0 || has(self.windowAction)",fieldPath=".windowAction",message="is needed where there are windows: pause, scale or stop"
// +kubebuilder:validation:XValidation:rule="has(self.replicas) == (has(self.windowAction) && self.windowAction == 'scale')",fieldPath=".replicas",message="goes with windowAction scale, which needs it, and with no other: how many there are outside the windows"
type TaskGroupSpec struct {
	// Type is inference: a service, whose members are placed one by one.
	//
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is not changed; make another TaskGroup"
	Type TaskGroupType `json:"type"`

	// ScaleTargetRef names what makes the members, in the same namespace: anything with
	// a scale subresource. Left out: nothing is scaled.
	//
	// +optional
	ScaleTargetRef *TaskGroupTarget `json:"scaleTargetRef,omitempty"`

	// Windows say when the service is to be awake: while any of them is open. Left
	// out: always. At most 50.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Windows []TaskGroupWindow `json:"windows,omitempty"`

	// WindowAction is what is done to the target outside the windows. "pause": 0
	// replicas, and inside again as before. "scale": replicas of them, and inside again
	// as before. "stop": 0 replicas, and nothing brings them back.
	//
	// +optional
	WindowAction TaskGroupAction `json:"windowAction,omitempty"`

	// Replicas is how many there are outside the windows, with windowAction scale.
	// 1 or more: for none there is pause.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Replicas *int32 `json:"replicas,omitempty"`
}

// TaskGroupTarget names an object with a scale subresource.
type TaskGroupTarget struct {
	// APIVersion of it, as apps/v1.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`
	// Kind of it, as Deployment.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Name of it.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// TaskGroupWindow is a time in which the service is awake: either from and to, on some
// days, or start and end.
//
// +kubebuilder:validation:XValidation:rule="has(self.from) == has(self.to) && has(self.start) == has(self.end) && has(self.from) != has(self.start)",message="has either from and to, or start and end"
// +kubebuilder:validation:XValidation:rule="!has(self.days) || has(self.from)",fieldPath=".days",message="goes with from and to; a cron expression has days of its own"
type TaskGroupWindow struct {
	// Days are those on which it opens: Mon, Tue, Wed, Thu, Fri, Sat, Sun. Left out:
	// every day.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=7
	// +kubebuilder:validation:items:Enum=Mon;Tue;Wed;Thu;Fri;Sat;Sun
	Days []string `json:"days,omitempty"`
	// From is when it opens, by the clock of timeZone: 08:00.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	From string `json:"from,omitempty"`
	// To is when it closes: on the next day where it is not after from, and after a
	// whole day where it is the same. 24:00 is the end of the day.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$`
	To string `json:"to,omitempty"`
	// Start is a cron expression of five fields, as in a CronJob: it opens then.
	//
	// +optional
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=128
	Start string `json:"start,omitempty"`
	// End is a cron expression of five fields: it closes then.
	//
	// +optional
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=128
	End string `json:"end,omitempty"`
	// TimeZone is a name of the tz database, as Europe/Berlin. Left out: UTC.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}

// The conditions of a TaskGroup.
const (
	// TaskGroupAccepted is False where the spec cannot be gone by; the one before holds
	// no more either, and nothing is done to the target.
	TaskGroupAccepted = "Accepted"
	// TaskGroupAwake is True while the service is to be awake, by its windows.
	TaskGroupAwake = "Awake"
	// TaskGroupUndisturbed is False where somebody or something else is in the way of
	// what the windows ask for: an edit by hand, an inactive tenant, no target.
	TaskGroupUndisturbed = "Undisturbed"
)

// TaskGroupStatus is what the scheduler found and did. Action and Kept decide what it
// does next.
type TaskGroupStatus struct {
	// ObservedGeneration is the generation of the spec that the rest is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// State is the reason of the condition Awake.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	State string `json:"state,omitempty"`
	// Next is what the windows change next. Left out: nothing in the next 400 days.
	//
	// +optional
	Next *TaskGroupChange `json:"next,omitempty"`
	// Members are the pods of the group that have a node.
	//
	// +optional
	Members int32 `json:"members"`
	// Cards are the devices that they hold, a slice counts as one.
	//
	// +optional
	Cards int64 `json:"cards"`
	// Action is what was done to the target and is to be undone. Left out: nothing.
	//
	// +optional
	Action *TaskGroupRecord `json:"action,omitempty"`
	// Kept are the cards that the group takes back when it wakes.
	//
	// +optional
	Kept *TaskGroupKept `json:"kept,omitempty"`
	// Conditions are Accepted, Awake and Undisturbed.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TaskGroupChange is a moment at which the windows open or close.
type TaskGroupChange struct {
	// At is when.
	At metav1.Time `json:"at"`
	// Opens says whether they open or close then.
	Opens bool `json:"opens"`
	// Cards are the devices that this frees or takes back, as far as is known.
	Cards int64 `json:"cards"`
	// Until is when a change that frees cards is undone. Left out: never, or not in the
	// next 400 days.
	//
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// Replicas are how many stay when the windows close.
	//
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// TimeZone is that of the windows, for people; empty: UTC.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
	// Text says it in words: "closes Mon 30 Nov 22:00 CET, frees 16 cards".
	//
	// +kubebuilder:validation:MaxLength=256
	Text string `json:"text"`
}

// TaskGroupRecord is what is remembered of an action, from before its first step until
// after its last.
type TaskGroupRecord struct {
	// Target is to what it was done, and TargetUID which of that name it was.
	Target    TaskGroupTarget `json:"target"`
	TargetUID types.UID       `json:"targetUID"`
	// Action is which one.
	Action TaskGroupAction `json:"action"`
	// Before is how the target was, and becomes again.
	Before TaskGroupScaling `json:"before"`
	// Set is what was, or is being, set.
	Set TaskGroupScaling `json:"set"`
	// Phase is how far it has come. "Acting": it is being set, or was and is not seen
	// to stay so yet. "Acted": it was seen so; what differs now was changed by others.
	// "Restoring": it is being written back.
	//
	// +kubebuilder:validation:Enum=Acting;Acted;Restoring
	Phase string `json:"phase"`
	// Tries is how often all of it was written in this phase.
	//
	// +optional
	Tries int32 `json:"tries,omitempty"`
	// Written is when all of it was written last.
	//
	// +optional
	Written *metav1.Time `json:"written,omitempty"`
}

// TaskGroupScaling is all of a target that a window may change.
type TaskGroupScaling struct {
	// Replicas is those of its scale.
	Replicas int32 `json:"replicas"`
	// MinReplicas and MaxReplicas are those of its HorizontalPodAutoscaler. Left out:
	// it has none.
	//
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`
	// +optional
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`
	// PausedReplicas is the annotation autoscaling.keda.sh/paused-replicas of its
	// ScaledObject; empty: it has none. Left out: there is no ScaledObject.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	PausedReplicas *string `json:"pausedReplicas,omitempty"`
	// Asleep says that its HorizontalPodAutoscaler had scaled it to 0 by itself.
	//
	// +optional
	Asleep bool `json:"asleep,omitempty"`
}

// TaskGroupKept is what a group takes back when it wakes. Until then it is given to
// those who will have ended by then, and to nobody else.
type TaskGroupKept struct {
	// From is when it is taken back: when the windows open.
	From metav1.Time `json:"from"`
	// Members are those who had it.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Members []TaskGroupMember `json:"members"`
}

// TaskGroupMember is what one member had.
type TaskGroupMember struct {
	UID  types.UID `json:"uid"`
	Node string    `json:"node"`
	// Allocation is its cards, as the annotation heteroflow.io/allocation has them.
	//
	// +kubebuilder:validation:MaxLength=65536
	Allocation string `json:"allocation"`
}

// TaskGroupList is a list of TaskGroups, as the API server answers.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type TaskGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []TaskGroup `json:"items"`
}
