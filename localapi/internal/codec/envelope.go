package codec

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// protobufPrefix begins every object in protobuf. An envelope follows: the message runtime.Unknown.
const protobufPrefix = "k8s\x00"

// EnvelopeEnd is the end of every envelope: contentEncoding and contentType, which are empty.
const EnvelopeEnd = "\x1a\x00\x22\x00"

// The field numbers of Kubernetes' messages.
//
// Source: k8s.io/apimachinery v0.37.2 pkg/runtime/generated.proto Unknown, pkg/apis/meta/v1/generated.proto ObjectMeta,
// and k8s.io/api, where metadata is the first field of every object and list, and items are the second of every list.
const (
	unknownTypeMeta     = 1
	unknownRaw          = 2
	objectMetadata      = 1
	metaResourceVersion = 6
	listMetadata        = 1
	listItems           = 2
)

// Envelope is what protobuf has around the message of an object of some kind.
type Envelope struct {
	before []byte // what comes before the field that holds the message
}

// NewEnvelope returns the envelope of a kind.
func NewEnvelope(kind schema.GroupVersionKind) Envelope {
	apiVersion, name := kind.ToAPIVersionAndKind()
	meta := runtime.TypeMeta{APIVersion: apiVersion, Kind: name}
	encoded, err := meta.Marshal()
	if err != nil {
		panic(err) // cannot fail: two strings
	}
	before := appendHeader([]byte(protobufPrefix), unknownTypeMeta, len(encoded))
	return Envelope{append(before, encoded...)}
}

// open returns the message in an encoded object. ok is false if the object is not protobuf or has another kind.
func (e Envelope) open(encoded []byte) (message []byte, ok bool) {
	rest, ok := bytes.CutPrefix(encoded, e.before)
	if !ok {
		return nil, false
	}
	number, _, n := protowire.ConsumeTag(rest)
	if n < 0 || number != unknownRaw {
		return nil, false
	}
	message, n = protowire.ConsumeBytes(rest[n:])
	return message, n >= 0
}

// size returns the size of an object whose message has the given size.
func (e Envelope) size(message int) int {
	return len(e.before) + fieldSize(unknownRaw, message) + len(EnvelopeEnd)
}

// append appends the envelope up to a message of the given size. EnvelopeEnd comes after the message.
func (e Envelope) append(b []byte, message int) []byte {
	return appendHeader(append(b, e.before...), unknownRaw, message)
}

// Seal returns the object in its envelope, as [Codec.Encode] does.
func (e Envelope) Seal(m *Message) []byte {
	size := m.size()
	b := make([]byte, 0, e.size(size))
	return append(m.append(e.append(b, size)), EnvelopeEnd...)
}

// AppendList appends a list in its envelope up to the items, whose sizes add up to items. The items and EnvelopeEnd
// come after that. size is that of the whole list.
func (e Envelope) AppendList(b []byte, meta *metav1.ListMeta, items int) (list []byte, size int) {
	encoded, err := meta.Marshal()
	if err != nil {
		panic(err) // cannot fail: strings and a number
	}
	message := fieldSize(listMetadata, len(encoded)) + items
	b = appendHeader(e.append(b, message), listMetadata, len(encoded))
	return append(b, encoded...), e.size(message)
}

// fieldSize returns the size of a field whose value has the given size.
func fieldSize(number protowire.Number, value int) int {
	return protowire.SizeTag(number) + protowire.SizeBytes(value)
}

// appendHeader appends what precedes a field's value of the given size.
func appendHeader(b []byte, number protowire.Number, value int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.BytesType), uint64(value))
}
