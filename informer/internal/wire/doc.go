// Package wire decodes what an API server sends, object by object and as it comes in. It is a side room: a reader
// of the pipeline may skip it.
//
// Read decode.go; decode_json.go and jsonstream.go for lists in JSON; decode_protobuf.go and protostream.go for
// lists in protobuf; frames.go for watches in either.
package wire
