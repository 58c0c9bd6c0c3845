package api

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true

// ImageStream is a named set of tags. Each tag has a history of the images that it pointed at, newest first.
type ImageStream struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ImageStreamSpec   `json:"spec,omitempty,omitzero"`
	Status            ImageStreamStatus `json:"status,omitempty,omitzero"`
}

// ImageStreamSpec is the desired state of an ImageStream.
type ImageStreamSpec struct {
	LookupPolicy LookupPolicy   `json:"lookupPolicy,omitempty,omitzero"`
	Tags         []TagReference `json:"tags,omitempty"`
}

// LookupPolicy decides whether pods of the namespace may name the stream as an image.
type LookupPolicy struct {
	Local bool `json:"local"`
}

// TagReference is the desired state of one tag.
type TagReference struct {
	Name string           `json:"name"`
	From *ObjectReference `json:"from,omitempty"`
	// Reference means that From is not imported: a pull of the tag pulls From.
	Reference       bool              `json:"reference,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
	ReferencePolicy ReferencePolicy   `json:"referencePolicy,omitempty,omitzero"`
}

// ObjectReference names an image, in a registry or in the cluster.
type ObjectReference struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// DockerImage is the kind of a reference to an image in a registry.
const DockerImage = "DockerImage"

// ReferencePolicy decides from where a tag is pulled.
type ReferencePolicy struct {
	// Type is Local, for the cluster's own registry, or Source, for the registry that the image was imported from.
	Type string `json:"type"`
}

// The types of reference policies.
const (
	LocalReference  = "Local"
	SourceReference = "Source"
)

// ImageStreamStatus is the observed state of an ImageStream.
type ImageStreamStatus struct {
	DockerImageRepository string              `json:"dockerImageRepository,omitempty"`
	Tags                  []NamedTagEventList `json:"tags,omitempty"`
}

// NamedTagEventList is the history of one tag.
type NamedTagEventList struct {
	Tag string `json:"tag"`
	// Items are sorted, newest first: the tag points at Items[0].
	Items []TagEvent `json:"items"`
}

// TagEvent is one image that a tag pointed at.
type TagEvent struct {
	Created metav1.Time `json:"created"`
	// Image is the image's digest, "sha256:…".
	Image                string `json:"image"`
	DockerImageReference string `json:"dockerImageReference,omitempty"`
}

// Tag returns the history of a tag, or nil if the stream has no such tag.
func (s *ImageStream) Tag(name string) *NamedTagEventList {
	for i := range s.Status.Tags {
		if s.Status.Tags[i].Tag == name {
			return &s.Status.Tags[i]
		}
	}
	return nil
}

// SpecTag returns the desired state of a tag, or nil if there is none.
func (s *ImageStream) SpecTag(name string) *TagReference {
	for i := range s.Spec.Tags {
		if s.Spec.Tags[i].Name == name {
			return &s.Spec.Tags[i]
		}
	}
	return nil
}

// Point makes the tag point at another image.
func (s *ImageStream) Point(tag string, to TagEvent) {
	history := s.Tag(tag)
	if history == nil {
		s.Status.Tags = append(s.Status.Tags, NamedTagEventList{Tag: tag})
		history = &s.Status.Tags[len(s.Status.Tags)-1]
	}
	history.Items = append([]TagEvent{to}, history.Items...)
}

// +kubebuilder:object:root=true

// Image describes one image. It is cluster-scoped and named by its digest; see [ImageName].
type Image struct {
	metav1.TypeMeta      `json:",inline"`
	metav1.ObjectMeta    `json:"metadata,omitempty"`
	DockerImageReference string `json:"dockerImageReference,omitempty"`
	// DockerLabels are the labels in the image's own configuration.
	DockerLabels map[string]string `json:"labels,omitempty"`
	// Manifests are the images of a manifest list. They are empty for an image for one architecture.
	Manifests []ImageManifest `json:"manifests,omitempty"`
}

// The labels that a build puts into an image.
const (
	CommitLabel = "io.openshift.build.commit.id"
	BranchLabel = "io.openshift.build.commit.ref"
	SourceLabel = "io.openshift.build.source-location"
)

// ImageManifest is one image of a manifest list.
type ImageManifest struct {
	Digest       string `json:"digest"`
	Architecture string `json:"architecture"`
}

// ImageName returns the name of the Image with that digest. The name of a custom resource cannot contain a colon.
func ImageName(digest string) string { return strings.ReplaceAll(digest, ":", "-") }

// +kubebuilder:object:root=true

// ImageStreamImport requests the import of images into tags of the stream that its spec names. It is answered once, in
// its status, and has no effect afterwards.
type ImageStreamImport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ImageStreamImportSpec   `json:"spec"`
	Status            ImageStreamImportStatus `json:"status,omitempty,omitzero"`
}

// ImageStreamImportSpec names the images to import.
type ImageStreamImportSpec struct {
	// Stream is the ImageStream's name, in the same namespace.
	Stream string            `json:"stream"`
	Import bool              `json:"import"`
	Images []ImageImportSpec `json:"images"`
}

// ImageImportSpec names one image to import.
type ImageImportSpec struct {
	From            ObjectReference  `json:"from"`
	To              LocalReferenceTo `json:"to"`
	ReferencePolicy ReferencePolicy  `json:"referencePolicy,omitempty,omitzero"`
	ImportPolicy    ImportPolicy     `json:"importPolicy,omitempty,omitzero"`
}

// LocalReferenceTo names a tag of the stream.
type LocalReferenceTo struct {
	Name string `json:"name"`
}

// ImportPolicy controls how an image is imported.
type ImportPolicy struct {
	// ImportMode is empty or [PreserveOriginal].
	ImportMode string `json:"importMode,omitempty"`
}

// PreserveOriginal is the import mode that keeps manifest lists whole.
const PreserveOriginal = "PreserveOriginal"

// ImageStreamImportStatus has the results, in the order of the spec's images. It is empty until the import was
// answered.
type ImageStreamImportStatus struct {
	Images []ImageImportStatus `json:"images,omitempty"`
}

// ImageImportStatus is the result for one image.
type ImageImportStatus struct {
	// Image is nil if the import failed.
	Image  *ImportedImage `json:"image,omitempty"`
	Status ImportMessage  `json:"status,omitempty,omitzero"`
}

// ImportedImage names the image by its digest.
type ImportedImage struct {
	Name string `json:"name"`
}

// ImportMessage is the reason why an import failed.
type ImportMessage struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// +kubebuilder:object:root=true

// ImageStreamList is a list of ImageStreams.
type ImageStreamList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ImageStream `json:"items"`
}

// +kubebuilder:object:root=true

// ImageList is a list of Images.
type ImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Image `json:"items"`
}

// +kubebuilder:object:root=true

// ImageStreamImportList is a list of ImageStreamImports.
type ImageStreamImportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ImageStreamImport `json:"items"`
}
