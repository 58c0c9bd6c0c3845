// Package wire decodes what an API server sends, one object at a time, while it arrives. A first reading of the
// pipeline can skip it.
//
// Read decode.go, one object; frames.go, the events of a watch; list.go with list_json.go and list_protobuf.go, the
// items of a list; state.go, which reads the identity of an object without decoding it. jsonstream.go, protostream.go
// and protobuf.go read the two encodings.
package wire
