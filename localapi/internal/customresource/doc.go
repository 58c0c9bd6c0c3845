// Package customresource turns CustomResourceDefinitions into API types.
//
// A version of a definition becomes a [resource.Definition] without a Go type ([Definitions]). Its [Schema] does the
// work of a Go type: it drops unknown fields, fills in defaults, and validates values, with the messages of a
// kube-apiserver.
//
//	body → Schema.Coerce (prune, metadata) → Schema.Default → strategy → Schema.Validate → store
//
// Structural rules, pruning and the checks of list types are done by packages of k8s.io/apiextensions-apiserver, and
// values are validated by k8s.io/kube-openapi. The [expressions.Evaluator] that [Definitions]
// receives evaluates rules in CEL (x-kubernetes-validations). Without one they are not evaluated, and package crd warns
// clients that create a definition with rules.
package customresource
