package wire

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Answer is the identity and the state of the object in an answer, or of the object that a Status names.
type Answer struct {
	APIVersion, Kind string
	Namespace, Name  string
	UID              types.UID
	ResourceVersion  string
	// These fields tell whether the object still exists.
	Deleting    bool
	GracePeriod *int64
	Finalizers  int

	ContentType string
}

// AnswerOf returns the Answer that describes obj.
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

// Gone reports whether the object no longer exists, because this write removed what its deletion waited for. (A server
// sets the grace period of objects it deletes, but not of Namespaces, which stay until they are empty.)
//
// Source: k8s.io/apiserver v0.37.2 pkg/registry/generic/registry/store.go, ShouldDeleteDuringUpdate.
func (a Answer) Gone() bool {
	return a.Deleting && a.Finalizers == 0 && a.GracePeriod != nil && *a.GracePeriod == 0
}

// jsonMeta is the part of an object's metadata, or of a Status's details, that Answer needs.
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

// Identify reads an object, or a Status that names one. It decodes no more than it must.
func Identify(contentType string, body []byte) (a Answer) {
	if IsProtobuf(contentType) {
		a = identifyProtobuf(body)
	} else {
		var object struct {
			APIVersion string          `json:"apiVersion"`
			Kind       string          `json:"kind"`
			Metadata   jsonMeta        `json:"metadata"`
			Details    json.RawMessage `json:"details"` // A custom resource may have anything there.
		}
		if err := json.Unmarshal(body, &object); err != nil {
			return Answer{}
		}
		if object.Kind == "Status" {
			object.Metadata = jsonMeta{}
			_ = json.Unmarshal(object.Details, &object.Metadata) // Without details, it names no object.
		}
		a = object.Metadata.answer()
		a.APIVersion, a.Kind = object.APIVersion, object.Kind
	}
	a.ContentType = contentType
	return a
}

// ReasonOf returns the reason that a Status gives; "" if there is none.
func ReasonOf(contentType string, body []byte) metav1.StatusReason {
	if IsProtobuf(contentType) {
		raw, _, kind := OpenProtobuf(body)
		if kind != "Status" {
			return ""
		}
		return metav1.StatusReason(field(raw, statusReason))
	}
	var status struct {
		Kind   string              `json:"kind"`
		Reason metav1.StatusReason `json:"reason"`
	}
	if err := json.Unmarshal(body, &status); err != nil || status.Kind != "Status" {
		return ""
	}
	return status.Reason
}

// Conditional reports whether the server refuses a patch after the object has changed, or after another one has taken
// its place. An apply counts as well: it only sets the same fields to the same values again. A JSON patch has to test
// the version: without that, it may add or remove an element a second time.
func Conditional(contentType string, body []byte) bool {
	switch contentType {
	case string(types.ApplyYAMLPatchType), string(types.ApplyCBORPatchType):
		return true
	case string(types.JSONPatchType):
		var operations []struct{ Op, Path string }
		return json.Unmarshal(body, &operations) == nil &&
			slices.ContainsFunc(operations, func(o struct{ Op, Path string }) bool {
				return o.Op == "test" && o.Path == "/metadata/resourceVersion"
			})
	}
	a := Identify(contentType, body)
	return a.ResourceVersion != "" || a.UID != ""
}

// Preconditioned reports whether the options of a deletion bind it to one object, or one state of it.
func Preconditioned(contentType string, options []byte) bool {
	if IsProtobuf(contentType) {
		raw, _, _ := OpenProtobuf(options)
		return len(field(raw, optionsPreconditions)) > 0
	}
	var o struct{ Preconditions metav1.Preconditions }
	return json.Unmarshal(options, &o) == nil && o.Preconditions != (metav1.Preconditions{})
}

// DryRun reports whether the options of a deletion ask for a dry run.
func DryRun(contentType string, options []byte) bool {
	if IsProtobuf(contentType) {
		raw, _, _ := OpenProtobuf(options)
		return len(field(raw, optionsDryRun)) > 0
	}
	var o struct{ DryRun []string }
	return json.Unmarshal(options, &o) == nil && len(o.DryRun) > 0
}

// Items reads a list. It decodes no more of each object than it must. It returns nil for anything but a list; an empty
// list is not nil.
func Items(contentType string, body []byte) (items []Answer) {
	if IsProtobuf(contentType) {
		raw, _, kind := OpenProtobuf(body)
		if !strings.HasSuffix(kind, "List") {
			return nil
		}
		items = []Answer{}
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
	items = make([]Answer, len(list.Items))
	for i, item := range list.Items {
		items[i] = item.Metadata.answer()
	}
	return items
}
