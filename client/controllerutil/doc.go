// Package controllerutil has what reconcilers often do with an object: create or update it, set its owner, add a
// finalizer, patch what changed. Everything in it is built on [client.Client].
//
// Reading order: ensure.go, CreateOrUpdate and CreateOrPatch; ownerreference.go, owners; finalizer.go, finalizers;
// patchhelper.go, which sends only what changed; retry.go, updates that must not fail with a conflict.
package controllerutil
