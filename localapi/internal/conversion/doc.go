// Package conversion converts custom resources between the versions of their definition by its webhook.
//
// Source: k8s.io/apiextensions-apiserver v0.37.2 pkg/apiserver/conversion.
package conversion
