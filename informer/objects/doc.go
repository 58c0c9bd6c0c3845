// Package objects names what every stage of an informer handles: objects, their keys and their states. The pipeline
// looks at an object's metadata only.
//
// Read object.go, then decodeerror.go: the error for an object that cannot be decoded.
package objects
