package wire

import (
	"bytes"
	"encoding/binary"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// IsProtobuf reports whether a content type is Kubernetes' protobuf.
func IsProtobuf(contentType string) bool {
	return strings.HasPrefix(contentType, runtime.ContentTypeProtobuf)
}

// ProtobufPrefix begins every object that Kubernetes encodes as protobuf. An envelope follows: message runtime.Unknown.
const ProtobufPrefix = "k8s\x00"

// The field numbers in Kubernetes' protobuf messages.
//
// Source: apimachinery v0.37.2 pkg/runtime/generated.proto Unknown, TypeMeta; pkg/apis/meta/v1/generated.proto
// ObjectMeta, Status, StatusDetails, DeleteOptions.
const (
	unknownTypeMeta      = 1
	unknownRaw           = 2
	typeMetaVersion      = 1
	typeMetaKind         = 2
	objectMeta           = 1
	metaName             = 1
	metaNamespace        = 3
	metaUID              = 5
	metaVersion          = 6
	metaDeletion         = 9
	metaGrace            = 10
	metaFinalizers       = 14
	statusReason         = 4
	optionsPreconditions = 2
	optionsDryRun        = 5
	statusDetails        = 5
	statusDetailsUID     = 6
	statusDetailsName    = 1
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

// OpenProtobuf unwraps an object from its envelope.
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
				size = uint64(max(n, 0)) // A varint has at most ten bytes.
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

// listItems is the number of the items field in every list of the API.
//
// Source: k8s.io/api v0.37.2 core/v1/generated.proto, ConfigMapList and all others.
const listItems = 2
