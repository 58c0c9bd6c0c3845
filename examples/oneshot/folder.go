package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groupVersion is the group and version of Folder.
var groupVersion = schema.GroupVersion{Group: "examples.flyball.dev", Version: "v1"}

// Folder is a folder of this machine.
type Folder struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              FolderSpec   `json:"spec"`
	Status            FolderStatus `json:"status,omitempty,omitzero"`
}

// FolderSpec names a folder, and counts how often its digest was asked for.
type FolderSpec struct {
	Path  string `json:"path"`
	Round int    `json:"round,omitempty"`
}

// The steps of a round.
const (
	Listed   = "Listed"
	Hashed   = "Hashed"
	Compared = "Compared"
)

// FolderStatus records how far the round is, and its result.
type FolderStatus struct {
	Step     string `json:"step,omitempty"`
	Round    int    `json:"round,omitempty"`
	Files    int    `json:"files,omitempty"`
	Digest   string `json:"digest,omitempty"`
	Previous string `json:"previous,omitempty"`
	Changed  bool   `json:"changed,omitempty"`
}

// FolderList is a list of Folders.
type FolderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Folder `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (f *Folder) DeepCopyObject() runtime.Object {
	c := *f
	f.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *FolderList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = make([]Folder, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*Folder)
	}
	return &c
}

// addToScheme registers the type.
func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &Folder{}, &FolderList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}
