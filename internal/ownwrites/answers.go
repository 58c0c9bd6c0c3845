package ownwrites

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"iter"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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

	contentType string
	// items are those of a list.
	items []Answer
}

// AnswerOf returns what obj, of that kind, says as an answer.
func AnswerOf(gvk schema.GroupVersionKind, obj metav1.Object, contentType string) Answer {
	return Answer{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, contentType: contentType,
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

// gone reports whether the object is no more: the write was what its deletion had waited for. (A server sets the
// grace period of what it deletes, but for Namespaces, which stay until they are empty.)
//
// Source: k8s.io/apiserver v0.37.2 pkg/registry/generic/registry/store.go, ShouldDeleteDuringUpdate.
func (a Answer) gone() bool {
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

// IsProtobuf reports whether a content type is that of Kubernetes' protobuf.
func IsProtobuf(contentType string) bool {
	return strings.HasPrefix(contentType, runtime.ContentTypeProtobuf)
}

// KindOf returns the kind of the object in an answer.
func KindOf(contentType string, body []byte) string { return identify(contentType, body).Kind }

// identify reads an object, or a Status that names one. It reads no more of it than it must.
func identify(contentType string, body []byte) (a Answer) {
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
	a.contentType = contentType
	return a
}

// ProtobufPrefix begins every object that Kubernetes encodes as protobuf. An envelope follows: message runtime.Unknown.
const ProtobufPrefix = "k8s\x00"

// The numbers of fields in Kubernetes' protobuf.
//
// Source: apimachinery v0.37.2 pkg/runtime/generated.proto Unknown, TypeMeta; pkg/apis/meta/v1/generated.proto
// ObjectMeta, Status, StatusDetails.
const (
	unknownTypeMeta   = 1
	unknownRaw        = 2
	typeMetaVersion   = 1
	typeMetaKind      = 2
	objectMeta        = 1
	metaName          = 1
	metaNamespace     = 3
	metaUID           = 5
	metaVersion       = 6
	metaDeletion      = 9
	metaGrace         = 10
	metaFinalizers    = 14
	statusDetails     = 5
	statusDetailsUID  = 6
	statusDetailsName = 1
)

func identifyProtobuf(body []byte) (a Answer) {
	raw, apiVersion, kind := OpenProtobuf(body)
	if kind == "Status" {
		details := field(raw, statusDetails)
		a = Answer{Name: string(field(details, statusDetailsName)), UID: types.UID(field(details, statusDetailsUID))}
	} else {
		a = identifyMetadata(field(raw, objectMeta))
	}
	a.APIVersion, a.Kind = apiVersion, kind
	return a
}

// OpenProtobuf takes an object out of what it is sent in.
func OpenProtobuf(body []byte) (raw []byte, apiVersion, kind string) {
	body, ok := bytes.CutPrefix(body, []byte(ProtobufPrefix))
	if !ok {
		return nil, "", ""
	}
	meta := field(body, unknownTypeMeta)
	return field(body, unknownRaw), string(field(meta, typeMetaVersion)), string(field(meta, typeMetaKind))
}

func identifyMetadata(metadata []byte) Answer {
	a := Answer{
		Namespace: string(field(metadata, metaNamespace)), Name: string(field(metadata, metaName)),
		UID: types.UID(field(metadata, metaUID)), ResourceVersion: string(field(metadata, metaVersion)),
		Deleting: field(metadata, metaDeletion) != nil,
	}
	if seconds, n := binary.Uvarint(field(metadata, metaGrace)); n > 0 {
		grace := int64(seconds)
		a.GracePeriod = &grace
	}
	for range fields(metadata, metaFinalizers) {
		a.Finalizers++
	}
	return a
}

// field returns the first field of that number in a message; nil if there is none.
func field(message []byte, number uint64) []byte {
	for value := range fields(message, number) {
		return value
	}
	return nil
}

// fields returns the fields of that number in a message, as their bytes.
func fields(message []byte, number uint64) iter.Seq[[]byte] {
	const varint, fixed64, lengthPrefixed, fixed32 = 0, 1, 2, 5
	return func(yield func([]byte) bool) {
		message := message
		for len(message) > 0 {
			tag, n := binary.Uvarint(message)
			if n <= 0 {
				return
			}
			message = message[n:]
			size := uint64(0)
			switch tag & 7 {
			case varint:
				_, n := binary.Uvarint(message)
				size = uint64(max(n, 0)) // no more than ten
			case fixed64:
				size = 8
			case fixed32:
				size = 4
			case lengthPrefixed:
				if size, n = binary.Uvarint(message); n <= 0 {
					return
				}
				message = message[n:]
			}
			if size == 0 && tag&7 != lengthPrefixed || size > uint64(len(message)) {
				return
			}
			if tag>>3 == number && !yield(message[:size]) {
				return
			}
			message = message[size:]
		}
	}
}

// identifyItems reads a list: of each object no more than it must. It is empty for what is no list.
func identifyItems(contentType string, body []byte) (items []Answer) {
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

// listItems is the field that holds the items, in every list of the API.
//
// Source: k8s.io/api v0.37.2 core/v1/generated.proto, ConfigMapList and all others.
const listItems = 2
