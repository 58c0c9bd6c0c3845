package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groupVersion is the group and version of Folder.
var groupVersion = schema.GroupVersion{Group: "examples.flyball.dev", Version: "v1"}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Path,type=string,JSONPath=.spec.path
// +kubebuilder:printcolumn:name=Files,type=integer,JSONPath=.status.files
// +kubebuilder:printcolumn:name=Step,type=string,JSONPath=.status.step

// Folder is a folder of this machine.
type Folder struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              FolderSpec   `json:"spec"`
	Status            FolderStatus `json:"status,omitempty,omitzero"`
}

// +kubebuilder:object:generate=true

// FolderSpec names a folder, and counts how often its digest was asked for.
type FolderSpec struct {
	// Path is the absolute path of the folder.
	// +kubebuilder:validation:MinLength=1
	Path string `json:"path"`
	// Round is how often a digest was asked for.
	Round int `json:"round,omitempty"`
}

// The steps of a round.
const (
	Listed   = "Listed"
	Hashed   = "Hashed"
	Compared = "Compared"
)

// +kubebuilder:object:generate=true

// FolderStatus records how far the round is, and its result.
type FolderStatus struct {
	// Step is the last step that was done.
	// +kubebuilder:validation:Enum=Listed;Hashed;Compared
	Step string `json:"step,omitempty"`
	// Round is the round that Step belongs to.
	Round int `json:"round,omitempty"`
	// Files is the number of files in the folder.
	Files int `json:"files,omitempty"`
	// Digest is the digest of this round, and Previous that of the round before.
	Digest   string `json:"digest,omitempty"`
	Previous string `json:"previous,omitempty"`
	// Changed reports whether the two differ.
	Changed bool `json:"changed,omitempty"`
}

// +kubebuilder:object:root=true

// FolderList is a list of Folders.
type FolderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Folder `json:"items"`
}

// addToScheme registers the type.
func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &Folder{}, &FolderList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}
