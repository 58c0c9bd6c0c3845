package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The groups and versions of the kinds here.
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

// Finalizer holds a Project until its control plane is cleared.
const Finalizer = "resourcemanager.miloapis.com/project-controller"

// Labels on what belongs to a Project.
const (
	ProjectNameLabel = "resourcemanager.miloapis.com/project-name"
	ProjectUIDLabel  = "resourcemanager.miloapis.com/project-uid"
)

// Conditions and reasons of a Project.
const (
	// Ready is True when the control plane can be used.
	Ready = "Ready"
	// ReasonReady, ReasonProvisioning and ReasonNameConflict are why Ready is what it is: it is; the control plane is not ready yet, or
	// not any more; there is a control plane of an earlier Project of that name.
	ReasonReady        = "Ready"
	ReasonProvisioning = "Provisioning"
	ReasonNameConflict = "ProjectNameConflict"

	// ResourceCleanup is True while the contents of a Project that is deleted are cleared away, and False when that is over.
	ResourceCleanup = "ResourceCleanup"
	// ReasonCleanupStarted: it was told to begin. ReasonCleanupAwaiting: everything was told to go, something is still there.
	// ReasonCleanupComplete: nothing is left, or nothing could be done about it, as the message says.
	ReasonCleanupStarted  = "CleanupStarted"
	ReasonCleanupAwaiting = "CleanupAwaitingCompletion"
	ReasonCleanupComplete = "CleanupComplete"
)

// ControlPlaneReady is the condition of a ProjectControlPlane that is True when the API server answers.
const ControlPlaneReady = "ControlPlaneReady"

// Project is a place to work in, with an API server of its own.
type Project struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ProjectSpec `json:"spec"`
	Status            Status      `json:"status,omitzero"`
}

// ProjectSpec says whose it is.
type ProjectSpec struct {
	OwnerRef OwnerRef `json:"ownerRef"`
}

// OwnerRef names who owns a Project.
type OwnerRef struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Status is that of both kinds.
type Status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProjectList is a list of them.
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Project `json:"items"`
}

// ProjectControlPlane asks for the API server of the Project of its name. Whoever runs them says in its status when it answers, and
// takes it away when the ProjectControlPlane is gone.
type ProjectControlPlane struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ProjectControlPlaneSpec `json:"spec"`
	Status            Status                  `json:"status,omitzero"`
}

// ProjectControlPlaneSpec has nothing to choose.
type ProjectControlPlaneSpec struct{}

// ProjectControlPlaneList is a list of them.
type ProjectControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProjectControlPlane `json:"items"`
}
