// Package wire decodes what an API server sends, one object at a time, while it arrives. A first reading of the
// pipeline can skip it.
//
// Read decode.go for one object; frames.go for the events of a watch; list.go, list_json.go and list_protobuf.go for
// the items of a list; and state.go for the identity of an object, which it reads without decoding the object.
// jsonstream.go, protostream.go and protobuf.go read the two encodings.
package wire
