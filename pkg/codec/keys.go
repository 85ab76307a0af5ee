package codec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// own is the prefix of every name that is ours, and hami of HAMi's.
const (
	own  = "heteroflow.io/"
	hami = "hami.io/"
)

// Resources of the neutral form, in container limits.
const (
	ResourceGPU    corev1.ResourceName = own + "gpu"        // whole cards
	ResourceMemory corev1.ResourceName = own + "gpu-memory" // MiB
	ResourceCores  corev1.ResourceName = own + "gpu-cores"  // percent of one card
)

// Annotations that a pod's author may write.
const (
	AnnotationGPUType       = own + "gpu-type"
	AnnotationModel         = own + "gpu-model"
	AnnotationNotModel      = own + "gpu-model-exclude"
	AnnotationUUIDInclude   = own + "gpu-uuid-include"
	AnnotationUUIDExclude   = own + "gpu-uuid-exclude"
	AnnotationNUMA          = own + "numa"
	AnnotationNUMABind      = own + "numa-bind"
	AnnotationPriority      = own + "priority"
	AnnotationTaskType      = own + "task-type"
	AnnotationPreemptible   = own + "preemptible"
	AnnotationNVLink        = own + "nvlink"
	AnnotationRDMA          = own + "rdma"
	AnnotationRegion        = own + "region"
	AnnotationZone          = own + "zone"
	AnnotationRack          = own + "rack"
	AnnotationNodePolicy    = own + "node-policy"
	AnnotationCardPolicy    = own + "card-policy"
	AnnotationTaskGroup     = own + "task-group"
	AnnotationMaxRuntime    = own + "max-runtime"
	AnnotationBorrow        = own + "borrow"
	AnnotationPreemptSignal = own + "preempt-signal"
	AnnotationPreemptMode   = own + "preempt-mode"
	AnnotationPorts         = own + "ports"
	AnnotationServedModel   = own + "model"
)

// Annotations that the scheduler and its admission write on a pod; <n> stands
// for the number of a container.
const (
	AnnotationAllocation   = own + "allocation"
	AnnotationContainers   = own + "containers" // {"<container>":<n>}
	AnnotationEpoch        = own + "epoch"
	AnnotationPreemptCount = own + "preempt-count"
	AnnotationPort         = own + "port"

	// Of who is ended so that another can run, and of the pod that we make in its
	// place: the UID of that which was.
	AnnotationPreemptedBy   = own + "preempted-by"
	AnnotationPreemptedFrom = own + "preempted-from"

	visibleDevices = own + "visible-devices-" // <n>
	memoryLimit    = own + "mem-limit-"       // <n>
	coreLimit      = own + "core-limit-"      // <n>

	// For readers of HAMi's names.
	AnnotationHAMiNode      = hami + "bind-node"
	AnnotationHAMiAllocated = hami + "device-allocated"
)

// SchedulerName is the schedulerName of the pods that are for us.
const SchedulerName = "heteroflow-scheduler"

// Every Binding of ours puts this label on its pod.
const (
	BoundByLabel = own + "bound-by"
	BoundByValue = "heteroflow"
)

// AnnotationSuspendedBy on a Job names the Preemption by which it was suspended.
const AnnotationSuspendedBy = own + "suspended-by"

// TenantLabel on a namespace says which Tenant claims it, on a node for which
// tenant it is kept.
const TenantLabel = own + "tenant"

// Annotations on a node.
const (
	AnnotationDevices    = own + "devices"
	AnnotationTopology   = own + "gpu-topology"
	AnnotationCordon     = own + "device-cordon"
	AnnotationHAMiCordon = "hami.io/device-cordon"
	AnnotationHAMiScore  = "hami.io/node-nvidia-score"
)

// Labels on a node that say where it is and how its network is. People write the
// last two without our prefix as well.
const (
	LabelRegion    = corev1.LabelTopologyRegion
	LabelZone      = corev1.LabelTopologyZone
	LabelRack      = own + "rack"
	LabelRDMA      = own + "rdma"
	LabelRDMASpeed = own + "rdma-speed" // Gbps
)

// LabelJobID on a pod names the training job that it is part of.
const LabelJobID = "ai.training/job-id"

// isOurs reports whether a key of a pod or a node is one of ours.
func isOurs(key string) bool { return strings.HasPrefix(key, own) }

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
