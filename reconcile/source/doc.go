// Package source has implementations of reconcile.Source, from which a controller gets its keys.
//
// [Kind] turns the events of an informer into keys, with a handler of package handler. The keys of [Chan], [Every] and
// [Output] come from a channel, a clock and another controller.
//
// Reading order: kind.go, then sources.go.
//
// Source: controller-runtime v0.25.2 pkg/source, for the name of the package.
package source
