package ownwrites

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"iter"
	"mime"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// identified is what an answer says of the object in it.
type identified struct {
	Name            string    `json:"name"`
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion"`
	// What follows tells whether there is an object still.
	DeletionTimestamp *string  `json:"deletionTimestamp"`
	GracePeriod       *int64   `json:"deletionGracePeriodSeconds"`
	Finalizers        []string `json:"finalizers"`
}

// gone says that the object is no more: the write was what its deletion had waited for. (A server sets the grace period of what it
// deletes, but for Namespaces, which stay until they are empty.)
func (i identified) gone() bool {
	return i.DeletionTimestamp != nil && len(i.Finalizers) == 0 && i.GracePeriod != nil && *i.GracePeriod == 0
}

// identify reads the answer to a write: an object, or a Status that names one. It reads no more of it than it must.
func identify(contentType string, body []byte) identified {
	media, _, err := mime.ParseMediaType(contentType)
	if err == nil && media == runtime.ContentTypeProtobuf {
		return identifyProtobuf(body)
	}
	var object struct {
		Kind     string     `json:"kind"`
		Metadata identified `json:"metadata"`
		Details  identified `json:"details"`
	}
	if err := json.Unmarshal(body, &object); err != nil {
		return identified{}
	}
	if object.Kind == "Status" {
		return object.Details
	}
	return object.Metadata
}

// The numbers of fields in Kubernetes' protobuf.
//
// Source: apimachinery v0.37.2 pkg/runtime/generated.proto Unknown, TypeMeta; pkg/apis/meta/v1/generated.proto ObjectMeta, Status, StatusDetails.
const (
	protoPrefix       = "k8s\x00"
	unknownTypeMeta   = 1
	unknownRaw        = 2
	typeMetaKind      = 2
	objectMeta        = 1
	metaName          = 1
	metaUID           = 5
	metaVersion       = 6
	metaDeletion      = 9
	metaGrace         = 10
	metaFinalizers    = 14
	statusDetails     = 5
	statusDetailsUID  = 6
	statusDetailsName = 1
)

func identifyProtobuf(body []byte) identified {
	raw, kind := unwrapProtobuf(body)
	if kind == "Status" {
		details := field(raw, statusDetails)
		return identified{Name: string(field(details, statusDetailsName)), UID: types.UID(field(details, statusDetailsUID))}
	}
	return identifyMetadata(field(raw, objectMeta))
}

// unwrapProtobuf takes an object out of what it is sent in.
func unwrapProtobuf(body []byte) (raw []byte, kind string) {
	body, ok := bytes.CutPrefix(body, []byte(protoPrefix))
	if !ok {
		return nil, ""
	}
	return field(body, unknownRaw), string(field(field(body, unknownTypeMeta), typeMetaKind))
}

func identifyMetadata(metadata []byte) identified {
	i := identified{
		Name: string(field(metadata, metaName)), UID: types.UID(field(metadata, metaUID)),
		ResourceVersion: string(field(metadata, metaVersion)),
	}
	if field(metadata, metaDeletion) != nil {
		i.DeletionTimestamp = new(string)
	}
	if seconds, n := binary.Uvarint(field(metadata, metaGrace)); n > 0 {
		grace := int64(seconds)
		i.GracePeriod = &grace
	}
	for name := range fields(metadata, metaFinalizers) {
		i.Finalizers = append(i.Finalizers, string(name))
	}
	return i
}

// field is the first field of that number in a message; nil if there is none.
func field(message []byte, number uint64) []byte {
	for value := range fields(message, number) {
		return value
	}
	return nil
}

// fields are the fields of that number in a message, as their bytes.
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
func identifyItems(contentType string, body []byte) (items []identified) {
	media, _, err := mime.ParseMediaType(contentType)
	if err == nil && media == runtime.ContentTypeProtobuf {
		return identifyProtobufItems(body)
	}
	var list struct {
		Kind  string `json:"kind"`
		Items []struct {
			Metadata identified `json:"metadata"`
		} `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil || !strings.HasSuffix(list.Kind, "List") {
		return nil
	}
	for _, item := range list.Items {
		items = append(items, item.Metadata)
	}
	return items
}

// listItems is the field that holds the items, in every list of the API.
//
// Source: k8s.io/api v0.37.2 core/v1/generated.proto, ConfigMapList and all others.
const listItems = 2

func identifyProtobufItems(body []byte) (items []identified) {
	raw, kind := unwrapProtobuf(body)
	if !strings.HasSuffix(kind, "List") {
		return nil
	}
	for value := range fields(raw, listItems) {
		items = append(items, identifyMetadata(field(value, objectMeta)))
	}
	return items
}
