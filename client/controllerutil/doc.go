// Package controllerutil has what a reconciler often does to an object: create it or update it, own it, put a
// finalizer on it, patch what changed. All of it is written with the methods of [client.Client].
//
// Reading order: ensure.go, CreateOrUpdate; ownerreference.go; finalizer.go; patchhelper.go, which sends what changed
// and nothing else; retry.go, for what has to be written now.
package controllerutil
