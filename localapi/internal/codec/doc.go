// Package codec implements the encodings of the Kubernetes API: JSON, YAML and protobuf. It negotiates them with
// clients, and words the errors of malformed bodies.
package codec
