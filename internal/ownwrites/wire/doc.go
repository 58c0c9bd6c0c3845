// Package wire reads what a request and its answer say of an object, no more of it than it must.
//
// Reading order: place.go, what the path of a request says; answers.go, what an answer says; protobuf.go, the same
// where it is not JSON; selects.go, whether selectors select an object.
package wire
