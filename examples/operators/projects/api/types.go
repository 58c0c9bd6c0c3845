package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The groups and versions of the kinds in this package.
var (
	ResourceManagerGroup = schema.GroupVersion{Group: "resourcemanager.miloapis.com", Version: "v1alpha1"}
	InfrastructureGroup  = schema.GroupVersion{Group: "infrastructure.miloapis.com", Version: "v1alpha1"}
)

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(ResourceManagerGroup, &Project{}, &ProjectList{})
	scheme.AddKnownTypes(InfrastructureGroup, &ProjectControlPlane{}, &ProjectControlPlaneList{})
	metav1.AddToGroupVersion(scheme, ResourceManagerGroup)
	metav1.AddToGroupVersion(scheme, InfrastructureGroup)
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

// ControlPlaneReady is a condition of a ProjectControlPlane. It is True if the API server answers.
const ControlPlaneReady = "ControlPlaneReady"

// Project is a place to work in, with an API server of its own.
type Project struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ProjectSpec `json:"spec"`
	Status            Status      `json:"status,omitzero"`
}

// ProjectSpec names the owner.
type ProjectSpec struct {
	OwnerRef OwnerRef `json:"ownerRef"`
}

// OwnerRef names who owns a Project.
type OwnerRef struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Status is the status of both kinds.
type Status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProjectList is a list of Projects.
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Project `json:"items"`
}

// ProjectControlPlane requests the API server of the Project of the same name. The provider reports in the status when
// the server answers, and removes the server when the ProjectControlPlane is gone.
type ProjectControlPlane struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ProjectControlPlaneSpec `json:"spec"`
	Status            Status                  `json:"status,omitzero"`
}

// ProjectControlPlaneSpec has no fields.
type ProjectControlPlaneSpec struct{}

// ProjectControlPlaneList is a list of ProjectControlPlanes.
type ProjectControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProjectControlPlane `json:"items"`
}
