// Package wire finds out from requests and answers which object they are about. It decodes no more than it must.
//
// Reading order: place.go, the path of a request; answers.go, an answer; protobuf.go, the same for protobuf;
// selects.go, whether selectors select an object; body.go, a body in memory; errors.go, the Status in an answer, and
// the codecs with which REST clients decode it.
package wire
