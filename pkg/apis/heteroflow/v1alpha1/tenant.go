package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// How Tenants are called where they are served.
const (
	TenantKind     = "Tenant"
	TenantResource = "tenants"
)

// Conditions of a Tenant. Each is True while all is well.
const (
	// TenantNamespacesResolved is False while a namespace that this Tenant claims
	// is also another's: its pods then share cards with nobody. So it is while the
	// spec cannot be read, which counts as inactive and in no sharing group.
	TenantNamespacesResolved = "NamespacesResolved"
	// TenantCardsSeparated is False while pods of this tenant sit on a card beside
	// a tenant that they may not share with, as after the end of a sharing group.
	TenantCardsSeparated = "CardsSeparated"
	// TenantWithinQuota is False while the tenant holds more than a limit of its
	// quota, as after the limit was lowered. Nothing is taken from it.
	TenantWithinQuota = "WithinQuota"
)

// Reasons of a Tenant's conditions, where they are False.
const (
	TenantReasonClaimedTwice         = "ClaimedTwice"         // of NamespacesResolved
	TenantReasonUnreadable           = "SpecUnreadable"       // likewise
	TenantReasonSharedAcrossBoundary = "SharedAcrossBoundary" // of CardsSeparated
	TenantReasonOverLimit            = "OverLimit"            // of WithinQuota
)

// Tenant is who shares cards with whom, and who may take how much: the owner of
// some namespaces. Its name is its identity, and at most 63 characters long
// because labels have it as their value.
//
// A namespace belongs to the Tenant that claims it in its spec, or that the label
// heteroflow.io/tenant of the namespace names, never to one that anything says
// which the author of a pod can write. A namespace that is claimed by none is a
// tenant of its own. The pods of one that two Tenants claim share cards with nobody,
// not even with each other, and count against the quotas of both. A label that names
// no Tenant there is keeps new pods of the namespace from getting cards.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:path=tenants,scope=Cluster,shortName=tn,categories=heteroflow
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Active",type=boolean,JSONPath=`.spec.active`,description="Whether new pods of the tenant may get cards"
// +kubebuilder:printcolumn:name="Namespaces",type=integer,JSONPath=`.status.namespaceCount`,description="Namespaces that belong to the tenant"
// +kubebuilder:printcolumn:name="Cards",type=integer,format=int64,JSONPath=`.status.used.cards`,description="Devices held, a slice counts as one"
// +kubebuilder:printcolumn:name="Card-Limit",type=integer,format=int64,JSONPath=`.spec.quota.cards.limit`,description="Devices that may be held"
// +kubebuilder:printcolumn:name="Memory",type=integer,format=int64,JSONPath=`.status.used.memoryMiB`,description="Memory of cards held, in MiB"
// +kubebuilder:printcolumn:name="Separated",type=string,JSONPath=`.status.conditions[?(@.type=="CardsSeparated")].status`,description="Whether all cards are shared only with whom they may be"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must be at most 63 characters, as it is the value of labels"
type Tenant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the administrator wants. Left out: a tenant of those namespaces
	// whose label names it, without a quota.
	//
	// +optional
	// +kubebuilder:default={}
	Spec TenantSpec `json:"spec"`

	// Status is what the scheduler found, for people: it decides nothing.
	//
	// +optional
	Status TenantStatus `json:"status,omitempty"`
}

// TenantSpec is what the administrator wants of a tenant.
type TenantSpec struct {
	// Namespaces are claimed for the tenant by what is written here. The label
	// heteroflow.io/tenant of a namespace claims it as well. Left out: by label only.
	//
	// +optional
	Namespaces TenantNamespaces `json:"namespaces,omitempty"`

	// Active false keeps new pods of the tenant from getting cards. Those that have
	// some keep them. Default true.
	//
	// +optional
	// +kubebuilder:default=true
	Active *bool `json:"active,omitempty"`

	// SharingGroups are names that tenants have in common: two tenants with a name
	// in common may share a card, all others not. DNS labels of 1 to 63 characters,
	// at most 64. Left out: the tenant shares cards with nobody else.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	SharingGroups []string `json:"sharingGroups,omitempty"`

	// Quota bounds what the pods of the tenant hold together, in all its
	// namespaces. Left out: without bounds.
	//
	// +optional
	Quota *TenantQuota `json:"quota,omitempty"`

	// MaxPriority is the highest heteroflow.io/priority that the tenant's pods may
	// have: those that ask for more get this. 0 to 100. Left out: as high as there is.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxPriority *int32 `json:"maxPriority,omitempty"`

	// Weight is the tenant's share of what is left when all guarantees are met,
	// in proportion to the weights of the others. It is for queueing, which is yet
	// to come: nothing looks at it so far. 1 to 1000. Default 1.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Weight *int32 `json:"weight,omitempty"`
}

// TenantNamespaces claims namespaces: those with one of the names and those that
// the selector selects.
type TenantNamespaces struct {
	// Names of namespaces, which need not exist yet. At most 1024.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Names []string `json:"names,omitempty"`

	// Selector selects namespaces by their labels. Left out: none; empty, {}: all.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",fieldPath=".matchExpressions",message="operator must be In, NotIn, Exists or DoesNotExist"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, (e.operator in ['In', 'NotIn']) == (has(e.values) && size(e.values) > 0))",fieldPath=".matchExpressions",message="In and NotIn must have values, Exists and DoesNotExist none"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// TenantQuota bounds what a tenant holds of each kind.
type TenantQuota struct {
	// Cards counts devices: a card of which a pod has a slice counts as one for
	// that pod, as does a partition.
	//
	// +optional
	Cards *TenantAmount `json:"cards,omitempty"`

	// MemoryMiB is the memory of cards, in MiB; a whole card counts with all it has.
	//
	// +optional
	MemoryMiB *TenantAmount `json:"memoryMiB,omitempty"`

	// Cores is compute, in percent of one card: 100 is a whole card, 250 two and
	// a half.
	//
	// +optional
	Cores *TenantAmount `json:"cores,omitempty"`
}

// TenantAmount is how much of one kind a tenant can count on, and may hold at most.
//
// +kubebuilder:validation:XValidation:rule="!has(self.guaranteed) || !has(self.limit) || self.guaranteed <= self.limit",fieldPath=".guaranteed",message="must not be more than limit"
type TenantAmount struct {
	// Guaranteed is what the tenant can count on. It is for queueing, which is yet
	// to come. 0 or more. Left out: nothing.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1099511627776
	Guaranteed *int64 `json:"guaranteed,omitempty"`

	// Limit is what the tenant may hold at most. 0 or more; with 0 it gets nothing.
	// Left out: as much as there is.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1099511627776
	Limit *int64 `json:"limit,omitempty"`
}

// TenantStatus is what the scheduler found of a tenant.
type TenantStatus struct {
	// ObservedGeneration is the generation of the spec that the rest is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// NamespaceCount is how many namespaces there are that belong to the tenant.
	//
	// +optional
	NamespaceCount int32 `json:"namespaceCount"`

	// Used is what the pods of the tenant hold together.
	//
	// +optional
	Used TenantUsed `json:"used"`

	// Conditions are NamespacesResolved, CardsSeparated and WithinQuota.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TenantUsed is what the pods of a tenant hold together, counted as in its quota.
type TenantUsed struct {
	// Cards counts devices, a slice as one.
	Cards int64 `json:"cards"`
	// MemoryMiB is the memory of cards, in MiB.
	MemoryMiB int64 `json:"memoryMiB"`
	// Cores is compute, in percent of one card.
	Cores int64 `json:"cores"`
}

// TenantList is a list of Tenants, as the API server answers.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Tenant `json:"items"`
}
