package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// GizmoSpec is the desired state of a Gizmo.
type GizmoSpec struct {
	// message is the text of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1000
	Message string `json:"message"`
}

// GizmoStatus is the observed state of a Gizmo.
type GizmoStatus struct {
	// conditions are Ready, Reconciling and Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// configMap is the name of the ConfigMap that has the message.
	// +optional
	ConfigMap string `json:"configMap,omitempty"`
}

// flyball:conversion
// +kubebuilder:storageversion
// flyball:end

// Gizmo is a message that a ConfigMap carries.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=gizmos
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.spec.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Gizmo struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec GizmoSpec `json:"spec"`

	// +optional
	Status GizmoStatus `json:"status,omitzero"`
}

// GizmoList is a list of Gizmos.
//
// +kubebuilder:object:root=true
type GizmoList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Gizmo `json:"items"`
}

func init() {
	SchemeBuilder.Register(func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(GroupVersion, &Gizmo{}, &GizmoList{})
		return nil
	})
}
