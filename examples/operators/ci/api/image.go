package api

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ImageStream is a named set of tags, each with the images that it pointed at, the newest first.
type ImageStream struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ImageStreamSpec   `json:"spec,omitempty,omitzero"`
	Status            ImageStreamStatus `json:"status,omitempty,omitzero"`
}

// ImageStreamSpec is what people ask of a stream.
type ImageStreamSpec struct {
	LookupPolicy LookupPolicy   `json:"lookupPolicy,omitempty,omitzero"`
	Tags         []TagReference `json:"tags,omitempty"`
}

// LookupPolicy says whether pods of the namespace may name the stream as an image.
type LookupPolicy struct {
	Local bool `json:"local"`
}

// TagReference is what is asked of one tag.
type TagReference struct {
	Name string           `json:"name"`
	From *ObjectReference `json:"from,omitempty"`
	// Reference says that From is not imported: who pulls the tag pulls From.
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

// ReferencePolicy says from where a tag is pulled.
type ReferencePolicy struct {
	// Type is Local, through the cluster's own registry, or Source, from where it was imported.
	Type string `json:"type"`
}

// The types of reference policies.
const (
	LocalReference  = "Local"
	SourceReference = "Source"
)

// ImageStreamStatus is what a stream has.
type ImageStreamStatus struct {
	DockerImageRepository string              `json:"dockerImageRepository,omitempty"`
	Tags                  []NamedTagEventList `json:"tags,omitempty"`
}

// NamedTagEventList is the history of one tag.
type NamedTagEventList struct {
	Tag string `json:"tag"`
	// Items is the newest first: Items[0] is what the tag points at.
	Items []TagEvent `json:"items"`
}

// TagEvent is one image that a tag pointed at.
type TagEvent struct {
	Created metav1.Time `json:"created"`
	// Image is the image's digest, "sha256:…".
	Image                string `json:"image"`
	DockerImageReference string `json:"dockerImageReference,omitempty"`
}

// Tag is the history of a tag; nil if the stream has no such tag.
func (s *ImageStream) Tag(name string) *NamedTagEventList {
	for i := range s.Status.Tags {
		if s.Status.Tags[i].Tag == name {
			return &s.Status.Tags[i]
		}
	}
	return nil
}

// SpecTag is what is asked of a tag; nil if nothing is.
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

// Image is what is known of one image. It lives in no namespace and is named by its digest; see [ImageName].
type Image struct {
	metav1.TypeMeta      `json:",inline"`
	metav1.ObjectMeta    `json:"metadata,omitempty"`
	DockerImageReference string `json:"dockerImageReference,omitempty"`
	// DockerLabels are those that the image's own configuration has.
	DockerLabels map[string]string `json:"labels,omitempty"`
	// Manifests are the images of a manifest list; an image for one architecture has none.
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

// ImageName is the name of the Image with that digest: custom resources cannot have a colon in theirs.
func ImageName(digest string) string { return strings.ReplaceAll(digest, ":", "-") }

// ImageStreamImport asks for images to be imported into tags of the stream that its spec names. It is answered once, by its
// status, and does nothing afterwards.
type ImageStreamImport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ImageStreamImportSpec   `json:"spec"`
	Status            ImageStreamImportStatus `json:"status,omitempty,omitzero"`
}

// ImageStreamImportSpec is what is to be imported.
type ImageStreamImportSpec struct {
	// Stream is the ImageStream's name, in the same namespace.
	Stream string            `json:"stream"`
	Import bool              `json:"import"`
	Images []ImageImportSpec `json:"images"`
}

// ImageImportSpec is one image to be imported.
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

// ImportPolicy says how an image is imported.
type ImportPolicy struct {
	// ImportMode PreserveOriginal keeps manifest lists whole.
	ImportMode string `json:"importMode,omitempty"`
}

// PreserveOriginal is the import mode that keeps manifest lists whole.
const PreserveOriginal = "PreserveOriginal"

// ImageStreamImportStatus is what came of it, in the order of the spec's images. It is empty until somebody has answered.
type ImageStreamImportStatus struct {
	Images []ImageImportStatus `json:"images,omitempty"`
}

// ImageImportStatus is what came of one image.
type ImageImportStatus struct {
	// Image is nil when the import failed.
	Image  *ImportedImage `json:"image,omitempty"`
	Status ImportMessage  `json:"status,omitempty,omitzero"`
}

// ImportedImage names the image by its digest.
type ImportedImage struct {
	Name string `json:"name"`
}

// ImportMessage says why an import failed.
type ImportMessage struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// ImageStreamList is a list of them.
type ImageStreamList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ImageStream `json:"items"`
}

// ImageList is a list of them.
type ImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Image `json:"items"`
}

// ImageStreamImportList is a list of them.
type ImageStreamImportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ImageStreamImport `json:"items"`
}
