package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The group and version as manifests spell them.
const (
	GroupName  = "heteroflow.io"
	Version    = "v1alpha1"
	APIVersion = GroupName + "/" + Version
)

// There is one SchedulerPolicy in a cluster, and this is its name.
const (
	SchedulerPolicyKind = "SchedulerPolicy"
	SchedulerPolicyName = "default"
)

// SchedulerPolicy says how the scheduler decides. It is cluster-wide, and the
// only one is called "default". What it leaves out keeps its default; one with
// a fault anywhere is refused as a whole.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type SchedulerPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec SchedulerPolicySpec `json:"spec"`
}

// SchedulerPolicySpec is what the administrator wants.
type SchedulerPolicySpec struct {
	// Preset is what the plugins are before Plugins changes them: "packing" uses as
	// much of the cluster as possible, "heterogeneous" weighs fit, temperature and
	// nearness. Left out: the defaults.
	Preset string `json:"preset,omitempty"`

	// Plugins changes plugins by name. A plugin that is not listed keeps its
	// default, or what it is in the preset; no plugin is listed twice.
	Plugins []PluginPolicy `json:"plugins,omitempty"`

	// MemoryReserve is kept free of slices on every card, for the driver and
	// for what the bounds do not see. Whole cards are given out with it.
	MemoryReserve *MemoryReserve `json:"memoryReserve,omitempty"`

	// DeviceMemoryScaling multiplies the memory that slices may take together:
	// above 1.0 it is overcommitted. Never applied to whole cards or to
	// partitions. 1.0 to 10, at most three decimals. Default 1.0.
	DeviceMemoryScaling *float64 `json:"deviceMemoryScaling,omitempty"`

	// DeviceCoreScaling does the same for compute.
	DeviceCoreScaling *float64 `json:"deviceCoreScaling,omitempty"`

	// DefaultSliceCores is the compute of a slice that names none:
	// "proportional" to its memory, or "none" reserved. Left out: proportional
	// for the neutral form, none for the vendors' forms.
	DefaultSliceCores string `json:"defaultSliceCores,omitempty"`

	// Injection is how containers are shown their cards where no component of
	// the node does it: "downwardAPI" has admission add the vendors'
	// visibility variables to them. Left out: not at all.
	Injection string `json:"injection,omitempty"`

	// Shortlist is how many of the nodes that fit kube-scheduler is told, the
	// best ones: handing hundreds of names back and forth halves its speed.
	// All are told to pods with soft preferences of their own. 0 to 5000, 0
	// for all, which another extender beside this one needs. Default 16.
	Shortlist *int64 `json:"shortlist,omitempty"`

	// LoadThresholds say from which load on a node, or a card, takes nothing more.
	LoadThresholds *LoadThresholds `json:"loadThresholds,omitempty"`

	// DefaultTaskTimeout is how long a pod may run that does not say so itself, as 90m
	// or 2h, by when it is told; inference is exempt. 0s: for ever. At most 8760h.
	// Default 2h.
	DefaultTaskTimeout *string `json:"defaultTaskTimeout,omitempty"`

	// EnforceTaskTimeout has it stopped then. Default false.
	EnforceTaskTimeout *bool `json:"enforceTaskTimeout,omitempty"`
}

// LoadThresholds are by what is measured: at or above one of them nothing more is
// placed there. What is not measured is not at its threshold. 0: there is none.
type LoadThresholds struct {
	// CPUPercent is of the node's. 0 to 100. Default 90.
	CPUPercent *int64 `json:"cpuPercent,omitempty"`
	// MemoryPercent is of the node's main memory. 0 to 100. Default 90.
	MemoryPercent *int64 `json:"memoryPercent,omitempty"`
	// GPUMemoryPercent is of a card's memory. 0 to 100. Default 95.
	GPUMemoryPercent *int64 `json:"gpuMemoryPercent,omitempty"`
	// GPUUtilizationPercent is of the time that a card computes. 0 to 100.
	// Default 95.
	GPUUtilizationPercent *int64 `json:"gpuUtilizationPercent,omitempty"`
	// GPUTemperatureCelsius is a card's. 0 to 150. Default 79.
	GPUTemperatureCelsius *int64 `json:"gpuTemperatureCelsius,omitempty"`
}

// PluginPolicy changes one plugin.
type PluginPolicy struct {
	// Name is the plugin's, as its documentation has it: "spread", "binpack".
	Name string `json:"name"`
	// Enabled switches it on or off. Left out: as by default.
	Enabled *bool `json:"enabled,omitempty"`
	// Weight is its share in a node's score: 0 to 1000, decimals allowed. Left
	// out: as by default.
	Weight *float64 `json:"weight,omitempty"`
	// Args is an object whose fields are the plugin's own. It replaces the
	// default arguments wholly.
	Args *runtime.RawExtension `json:"args,omitempty"`
}

// MemoryReserve is the larger of two figures, taken from each card.
type MemoryReserve struct {
	// Percent of the card's memory, rounded up. 0 to 90. Default 10.
	Percent *int64 `json:"percent,omitempty"`
	// FixedMiB is for the whole node, in MiB, and is shared out evenly among
	// its cards. Default 500.
	FixedMiB *int64 `json:"fixedMiB,omitempty"`
}
