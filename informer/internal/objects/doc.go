// Package objects holds what every stage of an informer knows of an object: its name, which state of it one is, and
// which of two states is the later. An object itself is opaque to the pipeline.
//
// Read object.go, then decodeerror.go: an object that cannot be decoded is named by the error.
package objects
