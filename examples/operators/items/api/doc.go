//go:generate -command controller-gen go tool -modfile=../../../../tools/go.mod controller-gen
//go:generate controller-gen crd object paths=. output:crd:dir=crds

// +kubebuilder:object:generate=true
// +groupName=stock.flyball.dev
// +versionName=v1

// Package api defines the kinds of a small stock-keeping tool, as Go types and, in the folder crds, as
// CustomResourceDefinitions that "make generate" makes of them. An Item is something on a shelf. A Category is the
// shelf, and numbers its items.
package api
