package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion is the group and version of all kinds here; generated
// clients look for it by this name.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: Version}

// Resource returns a resource of this group by its name, for the errors of
// generated listers.
func Resource(name string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(name).GroupResource()
}

// AddToScheme makes the kinds that the API server stores known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &Epoch{}, &EpochList{}, &Preemption{}, &PreemptionList{}, &TaskGroup{}, &TaskGroupList{}, &Tenant{}, &TenantList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
