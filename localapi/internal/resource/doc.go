// Package resource describes an API type to the embedded API server: its names, its scope, and the rules that a
// real kube-apiserver keeps in that type's registry strategy (defaults, validation, what a status write may touch,
// how deletion is delayed, how the object is printed).
//
// A [Definition] is data and pure functions. The server owns everything that is the same for every type: metadata,
// resource versions, managed fields, patches, finalizers, propagation, selectors, watches, encodings. Adding a type
// to the server is therefore one [Definition] in one place.
//
// The order in which the server calls a definition's functions for a write is fixed:
//
//	create         decode → Default → PrepareCreate → Allocate → Validate → store
//	update, patch  decode → Default → PrepareUpdate → Allocate → Validate + ValidateUpdate → store (or nothing, if equal)
//	status write   decode → Default → PrepareStatusUpdate → ValidateStatusUpdate → store (or nothing, if equal)
//	subresource    Project → client's change → Merge into a copy of the object → as update, without PrepareUpdate,
//	               judged by the subresource's Validate if it has one
//	delete         Grace → PrepareDelete → store, or removal when Finalizing and metadata.finalizers allow it
package resource
