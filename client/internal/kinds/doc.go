// Package kinds tells what kind of object a Go value is, and turns it into what is sent to a server and back.
//
// Reading order: kind.go, the kind of a value and its form; codec.go, JSON and protobuf.
package kinds
