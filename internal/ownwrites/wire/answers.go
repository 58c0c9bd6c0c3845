package wire

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Answer is what an answer says of the object in it. Of a Status it is what the Status says of an object.
type Answer struct {
	APIVersion, Kind string
	Namespace, Name  string
	UID              types.UID
	ResourceVersion  string
	// What follows tells whether there is an object still.
	Deleting    bool
	GracePeriod *int64
	Finalizers  int

	// ContentType is that of the answer.
	ContentType string
}

// AnswerOf returns what obj, of that kind, says as an answer.
func AnswerOf(gvk schema.GroupVersionKind, obj metav1.Object, contentType string) Answer {
	return Answer{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, ContentType: contentType,
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(),
		Deleting:        obj.GetDeletionTimestamp() != nil, GracePeriod: obj.GetDeletionGracePeriodSeconds(),
		Finalizers: len(obj.GetFinalizers()),
	}
}

// GVK returns the kind of the object.
func (a Answer) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(a.APIVersion, a.Kind)
}

// Gone reports whether the object is no more: the write was what its deletion had waited for. (A server sets the
// grace period of what it deletes, but for Namespaces, which stay until they are empty.)
//
// Source: k8s.io/apiserver v0.37.2 pkg/registry/generic/registry/store.go, ShouldDeleteDuringUpdate.
func (a Answer) Gone() bool {
	return a.Deleting && a.Finalizers == 0 && a.GracePeriod != nil && *a.GracePeriod == 0
}

// jsonMeta is the metadata that an answer is read for, or the details of a Status.
type jsonMeta struct {
	Namespace         string    `json:"namespace"`
	Name              string    `json:"name"`
	UID               types.UID `json:"uid"`
	ResourceVersion   string    `json:"resourceVersion"`
	DeletionTimestamp *string   `json:"deletionTimestamp"`
	GracePeriod       *int64    `json:"deletionGracePeriodSeconds"`
	Finalizers        []string  `json:"finalizers"`
}

func (m jsonMeta) answer() Answer {
	return Answer{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		Deleting: m.DeletionTimestamp != nil, GracePeriod: m.GracePeriod, Finalizers: len(m.Finalizers),
	}
}

// KindOf returns the kind of the object in an answer.
func KindOf(contentType string, body []byte) string { return Identify(contentType, body).Kind }

// Identify reads an object, or a Status that names one. It reads no more of it than it must.
func Identify(contentType string, body []byte) (a Answer) {
	if IsProtobuf(contentType) {
		a = identifyProtobuf(body)
	} else {
		var object struct {
			APIVersion string   `json:"apiVersion"`
			Kind       string   `json:"kind"`
			Metadata   jsonMeta `json:"metadata"`
			Details    jsonMeta `json:"details"`
		}
		if err := json.Unmarshal(body, &object); err != nil {
			return Answer{}
		}
		a = object.Metadata.answer()
		if object.Kind == "Status" {
			a = object.Details.answer()
		}
		a.APIVersion, a.Kind = object.APIVersion, object.Kind
	}
	a.ContentType = contentType
	return a
}

// Items reads a list: of each object no more than it must. It is empty for what is no list.
func Items(contentType string, body []byte) (items []Answer) {
	if IsProtobuf(contentType) {
		raw, _, kind := OpenProtobuf(body)
		if !strings.HasSuffix(kind, "List") {
			return nil
		}
		for value := range fields(raw, listItems) {
			items = append(items, identifyMetadata(field(value, objectMeta)))
		}
		return items
	}
	var list struct {
		Kind  string `json:"kind"`
		Items []struct {
			Metadata jsonMeta `json:"metadata"`
		} `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil || !strings.HasSuffix(list.Kind, "List") {
		return nil
	}
	for _, item := range list.Items {
		items = append(items, item.Metadata.answer())
	}
	return items
}
