// Package source has what feeds a controller: implementations of reconcile.Source.
//
// [Kind] feeds it with the changes that an informer sees, through a handler of package handler. [Chan], [Every] and
// [Output] feed it with keys from elsewhere: a channel, a clock, another controller.
//
// Reading order: kind.go, then sources.go.
//
// Source: controller-runtime v0.25.2 pkg/source, for the name of the package.
package source
