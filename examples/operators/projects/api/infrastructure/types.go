package infrastructure

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of ProjectControlPlane.
var GroupVersion = schema.GroupVersion{Group: "infrastructure.miloapis.com", Version: "v1alpha1"}

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &ProjectControlPlane{}, &ProjectControlPlaneList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// ControlPlaneReady is a condition of a ProjectControlPlane. It is True if the API server answers.
const ControlPlaneReady = "ControlPlaneReady"

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name=ControlPlaneReady,type=string,JSONPath=`.status.conditions[?(@.type=="ControlPlaneReady")].status`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="ControlPlaneReady")].reason`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp

// ProjectControlPlane requests the API server of the Project of the same name. The provider reports in the status when
// the server answers, and removes the server when the ProjectControlPlane is gone.
type ProjectControlPlane struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +kubebuilder:default={}
	// +required
	Spec   ProjectControlPlaneSpec `json:"spec"`
	Status Status                  `json:"status,omitzero"`
}

// ProjectControlPlaneSpec has no fields.
type ProjectControlPlaneSpec struct{}

// +kubebuilder:object:root=true

// ProjectControlPlaneList is a list of ProjectControlPlanes.
type ProjectControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProjectControlPlane `json:"items"`
}

// Status is the observed state of a ProjectControlPlane.
type Status struct {
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
