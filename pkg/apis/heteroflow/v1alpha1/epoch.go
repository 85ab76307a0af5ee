package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// There is one Epoch in a cluster, and this is its name.
const (
	EpochKind     = "Epoch"
	EpochResource = "epochs"
	EpochName     = "scheduler"
)

// Epoch says which term of which scheduler may bind. A new leader raises it, and
// from then on the API server refuses the Bindings of every earlier one, also of
// one that does not know yet that it was replaced.
//
// +genclient
// +genclient:nonNamespaced
// +genclient:noStatus
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:path=epochs,scope=Cluster
// +kubebuilder:printcolumn:name="Epoch",type=integer,format=int64,JSONPath=`.spec.number`
// +kubebuilder:printcolumn:name="Holder",type=string,JSONPath=`.spec.holder`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'scheduler'",message="there is one Epoch, and its name is scheduler"
type Epoch struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec EpochSpec `json:"spec"`
}

// EpochSpec is a term. Every change of it is a new one: what could be written
// under the old number by another holder would be bound under it.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf || self.number > oldSelf.number",message="an epoch only grows"
type EpochSpec struct {
	// Number grows with every term and never goes back. It is the value of the
	// annotation heteroflow.io/epoch in the Bindings of that term.
	//
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number"`
	// Holder is the identity of the leader whose term it is.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Holder string `json:"holder"`
}

// EpochList is a list of Epochs, as the API server answers.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type EpochList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Epoch `json:"items"`
}
