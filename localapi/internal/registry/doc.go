// Package registry applies the rules of the Kubernetes API to stored objects: what a create, an update, a patch, a
// delete and a list of a resource mean, for every [resource.Definition] alike.
//
// The rules are those of the generic registry of kube-apiserver. It knows nothing of HTTP; package handlers puts it
// on the wire.
//
// Every write is a loop of three steps: read the current state, compute the next one, store it if the object is still
// at the revision that was read. Nothing is locked meanwhile; who loses the race reads again.
//
// Source: k8s.io/apiserver pkg/registry/generic/registry/store.go, pkg/registry/rest (v0.37.2).
package registry
