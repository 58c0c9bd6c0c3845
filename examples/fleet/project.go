package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groupVersion is the group and version of Project.
var groupVersion = schema.GroupVersion{Group: "resourcemanager.miloapis.com", Version: "v1alpha1"}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster

// Project is a cluster of the fleet, with the fields of a real one that the fleet reads.
type Project struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            ProjectStatus `json:"status,omitempty,omitzero"`
}

// +kubebuilder:object:generate=true

// ProjectStatus is the observed state of a Project.
type ProjectStatus struct {
	// Conditions has the type Ready: the control plane answers.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true

// ProjectList is a list of Projects.
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Project `json:"items"`
}

// addToScheme registers the type.
func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &Project{}, &ProjectList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}
