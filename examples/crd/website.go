package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groupVersion is the group and version of Website.
var groupVersion = schema.GroupVersion{Group: "examples.flyball.dev", Version: "v1"}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=web
// +kubebuilder:printcolumn:name=URL,type=string,JSONPath=.status.url
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`

// Website is a page under a domain.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WebsiteSpec   `json:"spec"`
	Status            WebsiteStatus `json:"status,omitempty,omitzero"`
}

// +kubebuilder:object:generate=true

// WebsiteSpec is the desired state of a Website.
type WebsiteSpec struct {
	// Domain is the domain of the page. Only one Website may have it.
	// +kubebuilder:validation:MinLength=1
	Domain string `json:"domain"`
	// HTML is the page.
	HTML string `json:"html"`
}

// +kubebuilder:object:generate=true

// WebsiteStatus is the observed state of a Website.
type WebsiteStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// URL is where the page is shown.
	URL string `json:"url,omitempty"`
}

// +kubebuilder:object:root=true

// WebsiteList is a list of Websites.
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Website `json:"items"`
}

// addToScheme registers the type.
func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}
