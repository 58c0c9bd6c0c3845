// Package source implements reconcile.Source. A controller gets its keys from sources.
//
// [Kind] turns the events of an informer into keys, with a handler of package handler. The keys of [Chan], [Every] and
// [Output] come from a channel, a clock and another controller.
//
// Reading order: kind.go, then sources.go.
//
// Source: controller-runtime v0.25.2 pkg/source, for the name of the package.
package source
