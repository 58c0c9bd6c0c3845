// Package codec speaks the encodings of the Kubernetes API: JSON, YAML and protobuf, what clients may ask for, and what
// the errors of malformed bodies look like.
package codec
