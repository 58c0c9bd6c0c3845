package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ResourceManagerGroup is the group and version of Project.
var ResourceManagerGroup = schema.GroupVersion{Group: "resourcemanager.miloapis.com", Version: "v1alpha1"}

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(ResourceManagerGroup, &Project{}, &ProjectList{})
	metav1.AddToGroupVersion(scheme, ResourceManagerGroup)
	return nil
}

// Finalizer keeps a Project until the content of its control plane is deleted.
const Finalizer = "resourcemanager.miloapis.com/project-controller"

// Labels on what belongs to a Project.
const (
	ProjectNameLabel = "resourcemanager.miloapis.com/project-name"
	ProjectUIDLabel  = "resourcemanager.miloapis.com/project-uid"
)

// Conditions and reasons of a Project.
const (
	// Ready is True if the control plane can be used.
	Ready = "Ready"
	// The reasons of Ready. ReasonReady: it can be used. ReasonProvisioning: the control plane is not ready, or no
	// longer ready. ReasonNameConflict: an earlier Project of that name still has a control plane.
	ReasonReady        = "Ready"
	ReasonProvisioning = "Provisioning"
	ReasonNameConflict = "ProjectNameConflict"

	// ResourceCleanup is True while the content of a deleted Project is being deleted, and False when that is over.
	ResourceCleanup = "ResourceCleanup"
	// ReasonCleanupStarted: the deletion was requested. ReasonCleanupAwaiting: everything was deleted, but some objects
	// are still there. ReasonCleanupComplete: nothing is left, or nothing more can be done; the message tells which.
	ReasonCleanupStarted  = "CleanupStarted"
	ReasonCleanupAwaiting = "CleanupAwaitingCompletion"
	ReasonCleanupComplete = "CleanupComplete"
)

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp

// Project is a place to work in, with an API server of its own.
type Project struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ProjectSpec `json:"spec"`
	// +kubebuilder:default={conditions: {{type: Ready, status: Unknown, reason: Unknown, message: "The controller has not seen it yet.", lastTransitionTime: "1970-01-01T00:00:00Z"}}}
	Status Status `json:"status,omitzero"`
}

// ProjectSpec names the owner.
type ProjectSpec struct {
	// OwnerRef names who owns the Project.
	OwnerRef OwnerRef `json:"ownerRef"`
}

// OwnerRef names who owns a Project.
type OwnerRef struct {
	// +kubebuilder:validation:Enum=Organization
	Kind string `json:"kind"`
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// Status is the observed state of a Project.
type Status struct {
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true

// ProjectList is a list of Projects.
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Project `json:"items"`
}
