package codec

import (
	"bytes"
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protowire"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Message is the protobuf message of an object. It is either a whole one, or one from the store together with the
// resource version that goes into it.
//
// The store holds objects without a resource version, because it is the one that assigns it. To put the version between
// the stored bytes is many times cheaper than to encode the object again, and takes no memory.
type Message struct {
	rest []byte // a whole message, or what comes after the metadata

	// before and after are the stored metadata before and after the place of the version. Invariant: a whole message
	// has versionSize 0 and neither of them.
	before, after []byte
	version       [20]byte
	versionSize   int
}

// Open returns the message of an object that [Codec.Encode] encoded. ok is false if the object is not in this envelope.
func (e Envelope) Open(encoded []byte) (m Message, ok bool) {
	m.rest, ok = e.open(encoded)
	return m, ok
}

// Stamp returns the message of an object that [Codec.Stored] encoded as value, with its revision as the resource
// version. ok is false if the object is not in this envelope.
func (e Envelope) Stamp(value []byte, revision int64) (m Message, ok bool) {
	message, ok := e.open(value)
	if !ok {
		return Message{}, false
	}
	number, wireType, n := protowire.ConsumeTag(message)
	if n < 0 || number != objectMetadata || wireType != protowire.BytesType {
		return Message{}, false
	}
	metadata, size := protowire.ConsumeBytes(message[n:])
	if size < 0 {
		return Message{}, false
	}
	if m.before, m.after, ok = cutVersion(metadata); !ok {
		return Message{}, false
	}
	m.rest = message[n+size:]
	m.versionSize = len(strconv.AppendInt(m.version[:0], revision, 10))
	return m, true
}

// cutVersion returns what is before and after the resource version in an object's metadata. Fields are encoded in the
// order of their numbers.
func cutVersion(metadata []byte) (before, after []byte, ok bool) {
	for at := 0; at < len(metadata); {
		number, _, n := protowire.ConsumeField(metadata[at:])
		switch {
		case n < 0:
			return nil, nil, false
		case number == metaResourceVersion:
			return metadata[:at], metadata[at+n:], true
		case number > metaResourceVersion:
			return metadata[:at], metadata[at:], true
		}
		at += n
	}
	return metadata, nil, true
}

func (m *Message) metadataSize() int {
	return len(m.before) + fieldSize(metaResourceVersion, m.versionSize) + len(m.after)
}

func (m *Message) size() int {
	if m.versionSize == 0 {
		return len(m.rest)
	}
	return fieldSize(objectMetadata, m.metadataSize()) + len(m.rest)
}

func (m *Message) append(b []byte) []byte {
	if m.versionSize > 0 {
		b = append(appendHeader(b, objectMetadata, m.metadataSize()), m.before...)
		b = append(appendHeader(b, metaResourceVersion, m.versionSize), m.version[:m.versionSize]...)
		b = append(b, m.after...)
	}
	return append(b, m.rest...)
}

// ItemSize returns the size of the object as an item of a list.
func (m *Message) ItemSize() int { return fieldSize(listItems, m.size()) }

// AppendItem appends the object as an item of a list.
func (m *Message) AppendItem(b []byte) []byte { return m.append(appendHeader(b, listItems, m.size())) }

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

// CheckAliases rejects a YAML document that is larger than limit, in bytes, with its aliases expanded. A few kilobytes
// of YAML can stand for gigabytes, because everything is converted to JSON, where each alias becomes another copy of
// its text. Text that is not YAML passes: the decoder has the better error.
//
// Errors: RequestEntityTooLarge.
func CheckAliases(document []byte, limit int) error {
	if !bytes.ContainsRune(document, '&') {
		return nil // no anchors, no aliases
	}
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil
	}
	m := measure{limit: limit, sizes: map[*yaml.Node]int{}}
	if m.size(&root) > limit {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"with its aliases written out the YAML document is larger than the limit of %d bytes", limit))
	}
	return nil
}

// measure computes the sizes of YAML nodes with their aliases expanded.
type measure struct {
	limit int
	sizes map[*yaml.Node]int // of anchored nodes; -1 while one is being measured
}

// size returns the size of a node. Above the limit it is not exact.
func (m *measure) size(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Anchor == "" {
		return m.sum(n)
	}
	size, known := m.sizes[n]
	switch {
	case !known:
		m.sizes[n] = -1
		size = m.sum(n)
		m.sizes[n] = size
	case size < 0:
		return 0 // an anchor within itself, which the decoder rejects
	}
	return size
}

func (m *measure) sum(n *yaml.Node) int {
	size := len(n.Value) + 1 // plus a separator
	for _, child := range n.Content {
		if size > m.limit {
			break
		}
		size += m.size(child)
	}
	return size
}
