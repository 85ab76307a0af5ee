package gpu

import "slices"

// Reason is a stable code that says why a node, or all nodes, refused a pod. It
// is API: in events, metric labels and documents. Codes are added, never renamed.
type Reason string

// The codes, in the order of Reasons.
const (
	InvalidRequest        Reason = "InvalidRequest"
	NodeUnavailable       Reason = "NodeUnavailable"
	NodeNotRegistered     Reason = "NodeNotRegistered"
	TenantNodeMismatch    Reason = "TenantNodeMismatch"
	DeviceTypeMismatch    Reason = "DeviceTypeMismatch"
	DeviceModelMismatch   Reason = "DeviceModelMismatch"
	DeviceUnhealthy       Reason = "DeviceUnhealthy"
	DeviceCordoned        Reason = "DeviceCordoned"
	UUIDFiltered          Reason = "UUIDFiltered"
	NUMAUnsatisfied       Reason = "NUMAUnsatisfied"
	NVLinkUnsatisfied     Reason = "NVLinkUnsatisfied"
	RDMAUnsupported       Reason = "RDMAUnsupported"
	InsufficientGPUCount  Reason = "InsufficientGPUCount"
	InsufficientGPUMemory Reason = "InsufficientGPUMemory"
	InsufficientGPUCores  Reason = "InsufficientGPUCores"
	InsufficientGPUSlots  Reason = "InsufficientGPUSlots"
	NoTenantEligibleGPU   Reason = "NoTenantEligibleGPU"
	QuotaExceeded         Reason = "QuotaExceeded"
	TenantInactive        Reason = "TenantInactive"
	LoadThresholdExceeded Reason = "LoadThresholdExceeded"
	Overheated            Reason = "Overheated"
	IsolationUnavailable  Reason = "IsolationUnavailable"
	InsufficientPorts     Reason = "InsufficientPorts"
	GPUTypeUnavailable    Reason = "GPUTypeUnavailable"
	GangIncomplete        Reason = "GangIncomplete"
	HeldForOther          Reason = "HeldForOther"
	PreemptionPending     Reason = "PreemptionPending"
	NoSchedulableNodes    Reason = "NoSchedulableNodes"
	InsufficientResources Reason = "InsufficientResources"
	LedgerMismatch        Reason = "LedgerMismatch"
	NotLeader             Reason = "NotLeader"
	BindConflict          Reason = "BindConflict"
)

// ReasonInfo is what people are told about a code.
type ReasonInfo struct {
	Reason   Reason
	Sentence string // what is the case
	Hint     string // what to do about it
	// Unit is that of the figures that go with the code ("MiB", "percent",
	// "cards", "slots"); empty when none do.
	Unit string
	// Final says that no pod has to end for this to change, and none that
	// ends would change it: waiting or evicting does not help.
	Final bool
}

// Reasons lists all codes with their explanation, in a fixed order. The list is
// the caller's own.
func Reasons() []ReasonInfo { return slices.Clone(reasons[:]) }

// Info returns the explanation of r; the zero value for an unknown code.
func (r Reason) Info() ReasonInfo {
	for i := range reasons {
		if reasons[i].Reason == r {
			return reasons[i]
		}
	}
	return ReasonInfo{}
}

// reasons is read only, and never handed out.
var reasons = [...]ReasonInfo{
	{InvalidRequest, "The pod's request for cards cannot be understood or contradicts itself.", "Correct the resource or annotation that the event names; the pod has to be created anew.", "", true},
	{NodeUnavailable, "The node is not ready or is cordoned.", "Check the node's conditions and uncordon it.", "", true},
	{NodeNotRegistered, "The node has reported no cards.", "Check that the node agent or device plugin runs there and that the node has cards.", "", true},
	{TenantNodeMismatch, "The node is dedicated to another tenant.", "Use nodes of your own tenant, or have the node's heteroflow.io/tenant label changed.", "", true},
	{DeviceTypeMismatch, "The node has too few cards of the vendor that was asked for.", "Check heteroflow.io/gpu-type and the resource name.", "cards", true},
	{DeviceModelMismatch, "The node has too few cards of the model that was asked for.", "Check heteroflow.io/gpu-model, gpu-model-exclude and the model in the resource name against the nodes' inventories.", "cards", true},
	{DeviceUnhealthy, "Cards that would do are reported unhealthy.", "Have the cards repaired; the node's inventory says which.", "cards", true},
	{DeviceCordoned, "Cards that would do have been taken out by an administrator.", "Wait, or have the device-cordon annotation on the node changed.", "cards", true},
	{UUIDFiltered, "The node's cards are excluded by the pod's UUID lists.", "Check heteroflow.io/gpu-uuid-include and gpu-uuid-exclude.", "cards", true},
	{NUMAUnsatisfied, "The NUMA node that was asked for has too few cards.", "Drop heteroflow.io/numa, or ask for fewer cards.", "cards", true},
	{NVLinkUnsatisfied, "No NVLink domain of the node has enough free cards.", "Ask for fewer cards or make NVLink preferred.", "cards", false},
	{RDMAUnsupported, "The node says that it has no RDMA, or the policy wants it said and it says nothing.", "Use nodes labelled heteroflow.io/rdma=true or make RDMA preferred.", "", true},
	{InsufficientGPUCount, "Too few cards are free.", "Wait until cards are given back, or ask for fewer.", "cards", false},
	{InsufficientGPUMemory, "Too few cards have enough free memory.", "Wait until memory is given back, or ask for less.", "MiB", false},
	{InsufficientGPUCores, "Too few cards have enough free compute.", "Wait until compute is given back, or ask for less.", "percent", false},
	{InsufficientGPUSlots, "The cards already have as many holders as they take.", "Wait until a holder ends, or have maxSlices raised.", "slots", false},
	{NoTenantEligibleGPU, "Cards with room are shared by tenants that this pod may not sit beside.", "Wait for a card without such holders, or have the tenants put into one sharing group.", "cards", false},
	{QuotaExceeded, "The request would pass a quota.", "Free what the tenant holds, or have the quota raised.", "", false},
	{TenantInactive, "The tenant is not active.", "Have the tenant activated.", "", true},
	{LoadThresholdExceeded, "The node or its cards are loaded past the threshold.", "Wait until the load falls.", "", false},
	{Overheated, "Cards are too hot to take more work.", "Wait until they have cooled; check the cooling.", "", false},
	{IsolationUnavailable, "Nothing on the node enforces a slice's bounds.", "Ask for whole cards, or install the node agent, HAMi's plugin or an MPS daemon there.", "cards", true},
	{InsufficientPorts, "The node has too few host ports left in the pool.", "Wait, or ask for fewer ports.", "", false},
	{GPUTypeUnavailable, "No node has cards of the type that the group asks for.", "Check the group's gpuType.", "", true},
	{GangIncomplete, "The TaskGroup that the pod names is not there, or not placed as a whole yet.", "Make the TaskGroup, or put the name right; a pod that is task-type: inference needs none.", "", false},
	{HeldForOther, "The room is held for another pod, or kept for a service that takes it back.", "Wait; a hold ends with that pod's binding or after its time. What a service keeps goes to pods whose max-runtime ends before it wakes.", "", false},
	{PreemptionPending, "Pods are being evicted to make room for this one.", "Wait; they end within their grace period.", "", false},
	{NoSchedulableNodes, "No node can run the pod.", "See the other reasons in the pod's event.", "", false},
	{InsufficientResources, "Nodes fit in kind, but none has enough room.", "Wait, or ask for less.", "", false},
	{LedgerMismatch, "The two books disagree about a card, so it takes nothing new.", "See the event on the node.", "cards", false},
	{NotLeader, "Another replica decides, and could not be reached.", "Retried by itself.", "", false},
	{BindConflict, "The pod changed, or room was taken, while it was being bound.", "Retried by itself.", "", false},
}
