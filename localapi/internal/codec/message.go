package codec

import (
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
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
