// Package customresource turns CustomResourceDefinitions into API types.
//
// A version of a definition becomes a [resource.Definition] without a Go type ([Definitions]). Its [Schema] does the
// work of a Go type: it drops unknown fields, fills in defaults, and validates values, with the messages of a
// kube-apiserver.
//
//	body → Schema.Coerce (prune, metadata) → Schema.Default → strategy → Schema.Validate → store
//
// Structural rules, pruning and the checks of list types are done by packages of k8s.io/apiextensions-apiserver, and
// values are validated by k8s.io/kube-openapi. CEL rules (x-kubernetes-validations) are not evaluated; authors of
// definitions get a warning ([Warnings]).
package customresource
