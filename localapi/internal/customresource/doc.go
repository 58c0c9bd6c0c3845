// Package customresource makes API types out of CustomResourceDefinitions.
//
// A definition's version becomes one [resource.Definition] without a Go type ([Definitions]). Its [Schema] does what the
// Go type does elsewhere: it drops unknown fields, fills in defaults, and judges values in the words of a kube-apiserver.
//
//	body → Schema.Coerce (prune, metadata) → Schema.Default → strategy → Schema.Validate → store
//
// Structural rules, pruning and the checks of list types are k8s.io/apiextensions-apiserver's packages for just that,
// values are judged by k8s.io/kube-openapi's validator. Rules in CEL (x-kubernetes-validations) are not evaluated; who
// writes a definition is warned ([Warnings]).
package customresource
