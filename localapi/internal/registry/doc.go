// Package registry applies the rules of the Kubernetes API to stored objects. It implements create, update, patch,
// delete and list for every [resource.Definition] alike.
//
// The rules are those of the generic registry of kube-apiserver. The package knows nothing of HTTP; package handlers
// does.
//
// Every write is a loop of three steps: read the current state, compute the next one, and store it if the object is
// still at the revision that was read. No lock is held meanwhile. A writer that loses the race reads again.
//
// Source: k8s.io/apiserver pkg/registry/generic/registry/store.go, pkg/registry/rest (v0.37.2).
package registry
