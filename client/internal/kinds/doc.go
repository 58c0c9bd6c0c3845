// Package kinds finds the kind of a Go value, and encodes and decodes objects.
//
// Reading order: kind.go, the kind of a value and its form; codec.go, JSON and protobuf.
package kinds
